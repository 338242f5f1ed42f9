"""Twilio's own vectors (its Python library's tests), and one made by `openssl dgst -sha1 -hmac`."""

from __future__ import annotations

import hashlib

import pytest
from tests.unit.hooks.providers.senders import arrival, b64, mac

from crossdock.hooks.rules.providers.model import RefusalReason
from crossdock.hooks.rules.providers.recipes import recipe_of

RECIPE = recipe_of("twilio", None)
TOKEN = "12345"
URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
FORM = b"CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212&Caller=%2B14158675309"
JSON = b'{"property": "value", "boolean": true}'
DIGEST = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"


def reason(signature: str, body: bytes, url: str = URL, method: str = "POST") -> RefusalReason | None:
    sent = arrival(body, {"X-Twilio-Signature": signature}, url=url, method=method)
    refusal = RECIPE.verify(sent, [TOKEN])
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("signature", "body", "url"),
    [
        ("RSOYDt4T1cUTdK1PDd93/VVr8B8=", FORM, URL),
        ("RSOYDt4T1cUTdK1PDd93/VVr8B8=", b"&".join(reversed(FORM.split(b"&"))), URL),
        ("RSOYDt4T1cUTdK1PDd93/VVr8B8=", FORM, URL.replace(".com", ".com:1234")),
        ("Zmvh+3yNM1Phv2jhDCwEM3q5ebU=", FORM, URL.replace(".com", ".com:1234").replace("https", "http")),
        ("kvajT1Ptam85bY51eRf/AJRuM3w=", FORM, URL),
        ("0ZXoZLH/DfblKGATFgpif+LLRf4=", FORM, URL.replace("https", "http")),
        ("IK+Dwps556ElfBT0I3Rgjkr1wJU=",
         b"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234", URL),
        ("a9nBmqA0ju/hNViExpshrM61xv4=", JSON, f"{URL}&bodySHA256={DIGEST}"),
        ("NlRIKgELNTXPQVHnRjkefTFw30Y=", b"SmsSid=SM1&From=%2B14158675309&Body=H%C3%A4llo+Welt",
         "https://hooks.example.org/in/src_1?tenant=7"),
    ],
)  # fmt: skip
def test_a_published_signature_is_taken(signature: str, body: bytes, url: str) -> None:
    assert reason(signature, body, url) is None
    assert reason(signature, body.replace(b"1", b"7").replace(b"v", b"w"), url) is not None
    assert reason(signature, body, url.replace("1", "7")) is RefusalReason.SIGNATURE_MISMATCH


def test_a_call_by_get_is_signed_by_its_url_alone() -> None:
    assert reason(b64(mac(TOKEN, URL.encode(), "sha1")), b"", method="GET") is None


@pytest.mark.parametrize("body", [JSON, b"no form", b"a=1&b", b"a=1&&b=2", b"&", b"=&a" * 3000])
def test_a_body_that_is_no_form_needs_its_digest_in_the_url(body: bytes) -> None:
    """Signed by the URL alone it would be anybody's body."""
    assert reason(b64(mac(TOKEN, URL.encode(), "sha1")), body) is RefusalReason.BODY_MALFORMED
    digest = hashlib.sha256(body).hexdigest()
    for query in (f"bodySHA256={digest}", f"foo=1&bodySHA256={digest.upper()}&bar=2"):
        url = f"https://mycompany.com/myapp.php?{query}"
        signature = b64(mac(TOKEN, url.encode(), "sha1"))
        assert reason(signature, body, url) is None
        assert reason(signature, body + b" ", url) is RefusalReason.SIGNATURE_MISMATCH


@pytest.mark.parametrize(
    "place", ["/bodySHA256={}", "/x&bodySHA256={}", "/?xbodySHA256={}", "/?bodySHA256={}0"]
)
def test_a_digest_counts_in_its_own_parameter_only(place: str) -> None:
    url = "https://mycompany.com" + place.format(DIGEST)
    assert reason(b64(mac(TOKEN, url.encode(), "sha1")), JSON, url) is RefusalReason.BODY_MALFORMED


def test_blank_and_unencoded_values_are_signed_too() -> None:
    url = "https://hooks.example.org/in/src_1"
    for body, text in [
        (b"Body=&A=x", "AxBody"),
        (b"A=%zz", "A%zz"),
        ("A=ä".encode(), "Aä"),
        (b"A=b=c", "Ab=c"),
    ]:
        assert reason(b64(mac(TOKEN, (url + text).encode(), "sha1")), body, url) is None
    assert reason(b64(mac(TOKEN, url.encode() + b"A\xff", "sha1")), b"A=%FF", url) is None


@pytest.mark.parametrize(("count", "expected"), [(2000, None), (2001, RefusalReason.BODY_MALFORMED)])
def test_a_form_has_at_most_2000_fields(count: int, expected: RefusalReason | None) -> None:
    signature = b64(mac(TOKEN, URL.encode() + b"ab", "sha1"))
    assert reason(signature, b"&".join([b"a=b"] * count)) == expected
