"""Twilio: base64 HMAC-SHA1 over the URL and the form's parameters, or the URL with a digest of the body.

- A form: names sorted, each followed by its values, nothing between. Where a name ends and its value begins
  is not signed; that is Twilio's scheme, and nothing here can mend it.
- Anything else: `bodySHA256` in the query. Without it the body must be a form, so no body goes unsigned.
- The port: Twilio signs with or without it, whatever the URL had, so each form of the URL is tried.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from urllib.parse import parse_qsl

from crossdock.hooks.rules.providers.claims import Encoding, in_headers
from crossdock.hooks.rules.providers.keys import HmacKeys, judged, text_key
from crossdock.hooks.rules.providers.model import Arrival, Refusal, RefusalReason, raw_bytes

PARAMETERS_MAX = 2000

_BODY_DIGEST = re.compile(r"(?:^|&)bodySHA256=([0-9a-fA-F]{64})(?:&|\Z)")
_URL = re.compile(r"(https?)://([^/?#:]+|\[[^\]/?#]*\])(:[0-9]+)?(.*)", re.IGNORECASE | re.DOTALL)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

_ADVICE = " The URL is signed too: PUBLIC_URL must be as Twilio calls it."

_read = in_headers("X-Twilio-Signature", Encoding.BASE64)
_KEYS = HmacKeys("sha1", text_key)


class TwilioScheme:
    def algorithm(self, _: str) -> str:
        return _KEYS.name

    def check(self, secret: str) -> None:
        _KEYS.check(secret)

    def verify(self, arrival: Arrival, secrets: Sequence[str]) -> Refusal | None:
        claim = _read(arrival)
        if isinstance(claim, Refusal):
            return claim
        parameters = _signed_parameters(arrival)
        if isinstance(parameters, Refusal):
            return parameters
        payloads = [raw_bytes(url) + parameters for url in _urls(arrival.url)]
        return judged(
            secrets,
            lambda secret: any(_KEYS.fits(secret, payload, claim.signatures) for payload in payloads),
            _ADVICE,
        )


def _signed_parameters(arrival: Arrival) -> bytes | Refusal:
    if digest := _BODY_DIGEST.search(arrival.url.partition("?")[2]):
        if hmac.compare_digest(hashlib.sha256(arrival.body).hexdigest(), digest[1].lower()):
            return b""
        detail = "The body is not the one whose digest is in the URL (bodySHA256)."
        return Refusal(RefusalReason.SIGNATURE_MISMATCH, detail)
    if not arrival.body:
        return b""
    try:
        # latin-1 in and out: every byte stays what it was, UTF-8 or not.
        pairs = parse_qsl(
            arrival.body.decode("latin-1"),
            keep_blank_values=True,
            strict_parsing=True,
            encoding="latin-1",
            max_num_fields=PARAMETERS_MAX,
        )
    except ValueError:
        detail = "The body is no form, and the URL has no digest of it (bodySHA256)."
        return Refusal(RefusalReason.BODY_MALFORMED, detail)
    return b"".join([(name + value).encode("latin-1") for name, value in sorted(set(pairs))])


def _urls(url: str) -> tuple[str, ...]:
    """The URL as it is, without a port, and with the default one."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return (url,)
    scheme, host, _, rest = parts.groups()
    bare = f"{scheme}://{host}{rest}"
    with_port = f"{scheme}://{host}{_DEFAULT_PORTS[scheme.lower()]}{rest}"
    return tuple(dict.fromkeys((url, bare, with_port)))
