"""What a user says of a source: checked as a whole, since how it is signed depends on the provider. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec

from crossdock.hooks.rules.providers.dedup import parse_dedup
from crossdock.hooks.rules.providers.recipes import PROVIDERS, check_secret, parse_signing, recipe_of
from crossdock.hooks.rules.providers.settings import converted, refuse
from crossdock.hooks.service.problems import Problems
from crossdock.kit.errors import FieldProblem

RESPONSE_BYTES_MAX = 1024
SIGNING_FIELDS = frozenset({"provider", "signing", "signing_secret"})
_STATUSES_WITHOUT_BODY = frozenset({204, 205})


MediaType: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}( *; *[\x20-\x7e]{1,64})?\Z",
        description="a media type like text/plain",
    ),
]


class SourceResponse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the provider is answered."""

    status: Annotated[int, msgspec.Meta(ge=200, le=299)]
    body: str | None = None
    content_type: MediaType | None = None


@dataclass(frozen=True, slots=True)
class SigningSettings:
    """What says how a source's requests are signed."""

    provider: str
    signing: dict[str, Any] | None
    secret: str | None

    @property
    def algorithm(self) -> str:
        """By the name that the record has for it: `hmac-sha256`."""
        return recipe_of(self.provider, self.signing).algorithm(self.secret or "")


def check_source(given: Mapping[str, Any], before: SigningSettings) -> SigningSettings:
    """`given`: the fields of a request; what is not among them is as before. Raises InvalidInput with all
    that is wrong. What says how it is signed is looked at only if a part of it is given."""
    problems = Problems()
    settings = SigningSettings(
        given.get("provider", before.provider),
        given.get("signing", before.signing),
        given.get("signing_secret", before.secret),
    )
    if not SIGNING_FIELDS.isdisjoint(given):
        settings = _check_signing(settings, problems)
    with problems.collected():
        parse_dedup(given.get("dedup"))
    with problems.collected():
        _check_response(given.get("response"))
    problems.refuse()
    return settings


def _check_signing(settings: SigningSettings, problems: Problems) -> SigningSettings:
    provider, signing, secret = settings.provider, settings.signing, settings.secret
    if provider not in PROVIDERS:
        problems.add(FieldProblem("provider", "not_a_choice", f"One of: {', '.join(PROVIDERS)}."))
        return settings
    with problems.collected():
        signing = parse_signing(provider, signing)
    if secret is not None:
        with problems.collected():
            check_secret(provider, secret)
    return SigningSettings(provider, signing, secret)


def _check_response(raw: object) -> None:
    if raw is None:
        return
    response = converted(raw, SourceResponse, "response")
    size = 0 if response.body is None else len(response.body.encode())
    if size > RESPONSE_BYTES_MAX:
        refuse(FieldProblem("response.body", "too_large", f"At most {RESPONSE_BYTES_MAX} bytes."))
    if size and response.status in _STATUSES_WITHOUT_BODY:
        detail = f"An answer with the status {response.status} has no body."
        refuse(FieldProblem("response.body", "not_together", detail))
