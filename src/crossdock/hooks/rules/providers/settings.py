"""What a user may say of how a source is signed: read strictly, since a misspelt name would go unnoticed."""

from __future__ import annotations

from typing import Annotated, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from crossdock.hooks.rules.providers.payloads import fields_of
from crossdock.http.bodies import field_problem
from crossdock.kit.errors import FieldProblem, InvalidInput

HeaderName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}\Z", description="the name of a header, like X-Signature"
    ),
]
Prefix: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[ -~]{0,64}\Z", description="at most 64 printable ASCII characters")
]
Template: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^\x00]{1,512}\Z", description="1 to 512 characters, with fields in it like {body}"
    ),
]

CUSTOM_FIELDS = ("body", "timestamp", "id", "url", "method", "path")


class ApiKeySigning(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the key stands: `{"header": "Authorization", "prefix": "Bearer "}`."""

    header: HeaderName = "X-API-Key"
    prefix: Prefix = ""


class CustomSigning(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """An HMAC in a header, over a text made of the request's parts."""

    header: HeaderName
    algorithm: Literal["sha1", "sha256", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: Prefix = ""
    signed: Template = "{body}"
    timestamp_header: HeaderName | None = None
    timestamp_unit: Literal["seconds", "milliseconds"] = "seconds"
    tolerance_seconds: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 300
    id_header: HeaderName | None = None


T = TypeVar("T")


def converted(raw: object, kind: type[T], field: str) -> T:
    """Raises InvalidInput, its fields named below `field`."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem = field_problem(str(error), kind)
        place = f"{field}.{problem.field}" if problem.field else field
        refuse(FieldProblem(place, problem.code, problem.detail))


def refuse(problem: FieldProblem) -> NoReturn:
    raise InvalidInput("The source's settings are not valid.", problem)


def check_custom(signing: CustomSigning, field: str) -> None:
    """What the types can't say. Raises InvalidInput.

    A field that isn't signed proves nothing, so what is named must be in the template, and the other way
    round.
    """
    names = fields_of(signing.signed)
    if names is None or not set(names) <= set(CUSTOM_FIELDS):
        known = " ".join(f"{{{name}}}" for name in CUSTOM_FIELDS)
        refuse(FieldProblem(f"{field}.signed", "wrong_format", f"The fields of a template are {known}."))
    if names.count("body") != 1:
        refuse(FieldProblem(f"{field}.signed", "required", "The signature must cover {body}, once."))
    if "timestamp" in names and signing.timestamp_header is None:
        refuse(FieldProblem(f"{field}.timestamp_header", "required", "{timestamp} is read from this header."))
    if "timestamp" not in names and signing.timestamp_header is not None:
        refuse(
            FieldProblem(
                f"{field}.signed", "required", "A time that is not signed proves nothing: add {timestamp}."
            )
        )
    if "id" in names and signing.id_header is None:
        refuse(FieldProblem(f"{field}.id_header", "required", "{id} is read from this header."))
