from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.unit.hooks.providers.senders import SENDERS, arrival, b64

from crossdock.hooks.rules.providers.model import Arrival
from crossdock.hooks.rules.providers.recipe import ALWAYS_CREDENTIALS
from crossdock.hooks.rules.providers.recipes import PROVIDERS, check_secret, parse_signing, recipe_of
from crossdock.kit.errors import InvalidInput


def test_the_providers_are_those_that_are_promised() -> None:
    assert set(PROVIDERS) == {
        *(
            "stripe",
            "github",
            "shopify",
            "custom",
            "standard-webhooks",
            "slack",
            "twilio",
            "square",
            "paddle",
        ),
        *("hubspot", "zoom", "discord", "gitlab", "sendgrid", "linear", "adyen", "line", "razorpay"),
        *("woocommerce", "basic-auth", "api-key"),
    }


@pytest.mark.parametrize("name", ["", "Stripe", "stripe ", "paypal", "__class__"])
def test_an_unknown_provider_is_refused_naming_the_known(name: str) -> None:
    for call in (
        lambda: recipe_of(name, None),
        lambda: parse_signing(name, None),
        lambda: check_secret(name, "s"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        [problem] = caught.value.fields
        assert (problem.field, problem.code) == ("provider", "not_a_choice")
        assert all(known in problem.detail for known in PROVIDERS)


@pytest.mark.parametrize("name", sorted({*PROVIDERS} - {"custom", "api-key"}))
def test_a_provider_that_signs_in_one_way_takes_no_settings(name: str) -> None:
    assert parse_signing(name, None) is None
    assert parse_signing(name, {}) is None
    wrong: list[object] = [{"header": "X-Signature"}, [], "", 0, False]
    for raw in wrong:
        with pytest.raises(InvalidInput) as caught:
            parse_signing(name, raw, "source.signing")
        assert [(problem.field, problem.code) for problem in caught.value.fields] == [
            ("source.signing", "not_taken")
        ]


def test_the_url_is_signed_by_those_that_sign_it() -> None:
    signing = {name for name in PROVIDERS if recipe_of(name, SENDERS[name].settings).signs_url}
    assert signing == {"twilio", "square", "hubspot", "custom"}


ALGORITHMS = {
    "twilio": "hmac-sha1",
    "custom": "hmac-sha512",
    "discord": "ed25519",
    "sendgrid": "ecdsa-p256",
    "gitlab": "token",
    "api-key": "token",
    "basic-auth": "basic",
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_recipe_names_how_requests_are_signed(name: str) -> None:
    secret = SENDERS[name].secrets[0].configured
    assert SENDERS[name].recipe.algorithm(secret) == ALGORITHMS.get(name, "hmac-sha256")


def test_where_there_are_two_ways_the_secret_tells_which() -> None:
    recipe = recipe_of("standard-webhooks", None)
    assert recipe.algorithm("whpk_" + b64(bytes(32))) == "ed25519"
    assert recipe.algorithm("") == "hmac-sha256"


def test_some_headers_are_credentials_whoever_sends_them() -> None:
    assert {"authorization", "cookie", "proxy-authorization"} == ALWAYS_CREDENTIALS


P384 = derive_private_key(7, SECP384R1()).public_key()
ED25519 = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()


def spki(key: Any) -> str:
    return b64(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


GOOD_P256 = SENDERS["sendgrid"].secrets[0].configured
PEM = f"-----BEGIN PUBLIC KEY-----\n{GOOD_P256}\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize(
    ("provider", "secret"),
    [
        ("standard-webhooks", "whsec_"),
        ("standard-webhooks", "whsec_not base64"),
        ("standard-webhooks", "whsec_é"),
        ("standard-webhooks", "plain-secret"),
        ("standard-webhooks", "whpk_"),
        ("standard-webhooks", "whpk_" + b64(bytes(31))),
        ("standard-webhooks", "whpk_" + b64(bytes(33))),
        ("standard-webhooks", "whsk_" + b64(bytes(64))),
        ("discord", "00" * 31),
        ("discord", "00" * 33),
        ("discord", "0g" * 32),
        ("discord", b64(bytes(32))),
        ("sendgrid", "not a key"),
        ("sendgrid", b64(b"not a key")),
        ("sendgrid", PEM),
        ("sendgrid", GOOD_P256[:-8]),
        ("sendgrid", spki(P384)),
        ("sendgrid", spki(ED25519)),
        ("adyen", "not hex"),
        ("adyen", "abc"),
        ("adyen", "ab cd"),
        ("adyen", "é"),
        ("basic-auth", "hunter2"),
    ],
)
def test_a_secret_by_which_nothing_could_be_verified_is_refused(provider: str, secret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_secret(provider, secret)
    [problem] = caught.value.fields
    assert (problem.field, problem.code) == ("signing_secret", "unusable_secret")
    told = secret.removeprefix("whsec_").removeprefix("whpk_")
    assert not told or told not in problem.detail
    refusal = recipe_of(provider, None).verify(SENDERS[provider].send(), [secret])
    assert refusal is not None


@pytest.mark.parametrize(
    ("provider", "secret"),
    [
        ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("standard-webhooks", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("standard-webhooks", "whpk_" + b64(ED25519.public_bytes_raw())),
        ("discord", "AB" * 32),
        ("adyen", "44782def547aaa06c910c43932b1eb0c71fc68d9d0c057550c48ec2acf6ba056"),
        ("basic-auth", ":"),
        ("stripe", "whsec_not base64, and none is needed"),
        ("github", "x"),
        ("custom", "ключ"),
    ],
)
def test_a_secret_of_the_right_form_is_taken(provider: str, secret: str) -> None:
    check_secret(provider, secret)


def test_a_private_key_given_for_a_public_one_is_called_that() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_secret("standard-webhooks", "whsk_" + b64(bytes(64)))
    assert "private key" in caught.value.fields[0].detail


def test_a_secret_has_at_most_4096_characters() -> None:
    check_secret("github", "x" * 4096)
    with pytest.raises(InvalidInput):
        check_secret("github", "x" * 4097)


def test_settings_that_would_be_refused_make_no_recipe() -> None:
    with pytest.raises(InvalidInput) as caught:
        recipe_of("custom", None)
    assert [problem.field for problem in caught.value.fields] == ["signing.header"]


# --- the arrival -----------------------------------------------------------------------------------


def test_an_arrival_is_frozen_and_compares_by_what_arrived() -> None:
    sent, same = arrival(b"{}", {"A": "1"}), arrival(b"{}", {"A": "1"})
    assert sent.header("a") == "1"
    assert sent.document == {}
    assert sent == same
    assert hash(sent) == hash(same)
    field = dataclasses.fields(Arrival)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(sent, field, "GET")


def test_the_body_is_decoded_once() -> None:
    sent = arrival(b'{"a": [1]}')
    assert sent.document is sent.document


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'"\\ud800"',
        b"NaN",
        b"1e999",
        b"[" * 100_000,
        b"1" * 5000,
        b'{"a":' * 9999,
        b"{} x",
    ],
)
def test_a_body_that_is_no_json_is_no_document(body: bytes) -> None:
    assert arrival(body).document is None
