from __future__ import annotations

import pytest
from tests.unit.hooks.providers.senders import arrival, b64

from crossdock.hooks.rules.providers.model import RefusalReason
from crossdock.hooks.rules.providers.recipes import parse_signing, recipe_of
from crossdock.kit.errors import InvalidInput


def basic(authorization: str, *secrets: str) -> RefusalReason | None:
    sent = arrival(b"", {"Authorization": authorization})
    refusal = recipe_of("basic-auth", None).verify(sent, secrets)
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
@pytest.mark.parametrize(
    "secret", ["user:password", "user:pass:word", ":password", "user:", "ünï:cödé", "a:b c"]
)
def test_a_user_and_password_are_taken(scheme: str, secret: str) -> None:
    assert basic(f"{scheme} {b64(secret.encode())}", secret) is None
    assert basic(f"{scheme} {b64(secret.encode())}", secret + "x", "x" + secret) == "signature_mismatch"


@pytest.mark.parametrize(
    "authorization",
    ["Basic", "Basic ", "Bearer dTpw", "dTpw", "Basicdu=", "Basic d:p", "Basic dTpw dTpw", "Digest dTpw"],
)
def test_another_kind_of_authorization_is_malformed(authorization: str) -> None:
    assert basic(authorization, "u:p") == "signature_malformed"


def test_the_user_alone_is_not_enough() -> None:
    assert basic("Basic " + b64(b"user"), "user:password") == "signature_mismatch"
    assert basic("Basic " + b64(b"user"), "user") == "secret_unusable"


@pytest.mark.parametrize(
    ("settings", "header", "value"),
    [
        (None, "X-API-Key", "k3y"),
        ({}, "x-api-key", "k3y"),
        ({"header": "X-Token"}, "x-token", "k3y"),
        ({"header": "Authorization", "prefix": "Bearer "}, "authorization", "Bearer k3y"),
    ],
)
def test_an_api_key_is_where_the_settings_say(
    settings: dict[str, object] | None, header: str, value: str
) -> None:
    recipe = recipe_of("api-key", parse_signing("api-key", settings))
    assert recipe.verify(arrival(b"", {header: value}), ["old", "k3y"]) is None
    assert recipe.credential_headers == {header.lower()}
    for name, wrong in [
        (header, value + " "),
        (header, value.upper()),
        (header, value[1:]),
        ("X-Other", value),
    ]:
        assert recipe.verify(arrival(b"", {name: wrong}), ["old", "k3y"]) is not None


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"header": "X Key"}, "signing.header"),
        ({"head": "X-Key"}, "signing.head"),
        ({"prefix": "\n"}, "signing.prefix"),
        (["X-Key"], "signing"),
    ],
)
def test_wrong_settings_of_an_api_key_are_named(raw: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_signing("api-key", raw)
    assert [problem.field for problem in caught.value.fields] == [field]
