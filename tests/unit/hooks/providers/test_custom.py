from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.hooks.providers.senders import NOW_MS, PATH, URL, arrival, b64, mac

from crossdock.hooks.rules.providers.model import RefusalReason
from crossdock.hooks.rules.providers.recipes import parse_signing, recipe_of
from crossdock.kit.errors import InvalidInput

HEADER = {"header": "X-Signature"}
TIMED = HEADER | {"timestamp_header": "X-Time", "signed": "{timestamp}.{body}"}
ENCODE: dict[str, Callable[[bytes], str]] = {"hex": bytes.hex, "base64": b64}


@pytest.mark.parametrize(
    ("algorithm", "encoding", "prefix"),
    [*itertools.product(["sha1", "sha256", "sha512"], ["hex", "base64"], ["", "sha=", "HMAC ", "{body}"])],
)
def test_every_algorithm_encoding_and_prefix(algorithm: str, encoding: str, prefix: str) -> None:
    recipe = recipe_of("custom", HEADER | {"algorithm": algorithm, "encoding": encoding, "prefix": prefix})
    value = ENCODE[encoding](mac("secret", b"body", algorithm))
    assert recipe.verify(arrival(b"body", {"x-signature": prefix + value}), ["secret"]) is None
    for wrong in ("?" + prefix + value, prefix + value + "!", value[:-3], prefix):
        assert recipe.verify(arrival(b"body", {"x-signature": wrong}), ["secret"]) is not None
    if prefix:
        refusal = recipe.verify(arrival(b"body", {"x-signature": value}), ["secret"])
        assert refusal is not None
        assert refusal.reason is RefusalReason.SIGNATURE_MALFORMED


def test_hex_is_taken_in_either_case_and_base64_without_padding() -> None:
    raw = mac("secret", b"body")
    for settings, value in [
        (HEADER, raw.hex().upper()),
        (HEADER | {"encoding": "base64"}, b64(raw).rstrip("=")),
    ]:
        recipe = recipe_of("custom", settings)
        assert recipe.verify(arrival(b"body", {"X-Signature": value}), ["secret"]) is None


@pytest.mark.parametrize(
    ("template", "signed"),
    [
        ("{body}", b"body"),
        ("{timestamp}{body}", b"1735732800body"),
        ("v1:{id}:{timestamp}:{body}", b"v1:id-7:1735732800:body"),
        ("{method}\n{path}\n{body}", b"PUT\n" + PATH.encode() + b"\nbody"),
        ("{url}{body}", f"{URL}?a=%20b".encode() + b"body"),
        ("ü {timestamp} {timestamp} {body}", "ü 1735732800 1735732800 body".encode()),
    ],
)
def test_the_signed_text_is_made_of_the_request(template: str, signed: bytes) -> None:
    settings: dict[str, Any] = HEADER | {"signed": template, "id_header": "X-Id"}
    if "{timestamp}" in template:
        settings |= {"timestamp_header": "X-Time"}
    headers = {"X-Signature": mac("secret", signed).hex(), "X-Id": "id-7", "X-Time": "1735732800"}
    recipe = recipe_of("custom", parse_signing("custom", settings))
    assert recipe.verify(arrival(b"body", headers, method="PUT", url=URL + "?a=%20b"), ["secret"]) is None
    assert recipe.signs_url == ("{url}" in template or "{path}" in template)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (URL, PATH),
        (URL + "/a%2Fb?c=/d?e", PATH + "/a%2Fb"),
        ("http://[::1]:8420/base/in/src_1", "/base/in/src_1"),
        ("https://hooks.example.org", ""),
        ("https://hooks.example.org?a=/b", ""),
    ],
)
def test_the_path_is_the_one_that_the_provider_calls(url: str, path: str) -> None:
    recipe = recipe_of("custom", HEADER | {"signed": "{path} {body}"})
    sent = arrival(b"body", {"X-Signature": mac("k", f"{path} body".encode()).hex()}, url=url)
    assert recipe.verify(dataclasses.replace(sent, path="/below"), ["k"]) is None


def test_bytes_that_are_no_text_are_signed_as_they_are() -> None:
    body = bytes(range(256))
    recipe = recipe_of("custom", HEADER)
    assert recipe.verify(arrival(body, {"X-Signature": mac("k", body).hex()}), ["k"]) is None


@pytest.mark.parametrize(("unit", "stamp"), [("seconds", NOW_MS // 1000), ("milliseconds", NOW_MS)])
def test_a_time_is_in_the_unit_that_was_set(unit: str, stamp: int) -> None:
    recipe = recipe_of("custom", TIMED | {"timestamp_unit": unit})
    for time, expected in [(stamp, None), (stamp // 10, RefusalReason.TIMESTAMP_OUT_OF_TOLERANCE)]:
        signature = mac("k", f"{time}.".encode()).hex()
        refusal = recipe.verify(arrival(b"", {"X-Signature": signature, "X-Time": str(time)}), ["k"])
        assert (refusal and refusal.reason) == expected


def test_an_id_that_is_not_signed_need_not_be_there() -> None:
    recipe = recipe_of("custom", HEADER | {"id_header": "X-Id"})
    headers = {"X-Signature": mac("k", b"").hex()}
    assert recipe.verify(arrival(b"", headers), ["k"]) is None
    assert recipe.delivery_id(arrival(b"", headers)) is None
    assert recipe.delivery_id(arrival(b"", headers | {"x-id": "7"})) == "7"


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        (None, "signing.header", "required"),
        ({}, "signing.header", "required"),
        ("sha256", "signing", "wrong_type"),
        ([], "signing", "wrong_type"),
        (HEADER | {"colour": 1}, "signing.colour", "unknown_field"),
        ({"header": 7}, "signing.header", "wrong_type"),
        ({"header": ""}, "signing.header", "wrong_format"),
        ({"header": "X Signature"}, "signing.header", "wrong_format"),
        ({"header": "X-Signature\n"}, "signing.header", "wrong_format"),
        ({"header": "X" * 129}, "signing.header", "wrong_format"),
        (HEADER | {"algorithm": "md5"}, "signing.algorithm", "not_a_choice"),
        (HEADER | {"encoding": "base32"}, "signing.encoding", "not_a_choice"),
        (HEADER | {"prefix": "ü"}, "signing.prefix", "wrong_format"),
        (HEADER | {"prefix": "x" * 65}, "signing.prefix", "wrong_format"),
        (HEADER | {"signed": ""}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "{body}" + "x" * 507}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "static"}, "signing.signed", "required"),
        (HEADER | {"signed": "{body}{body}"}, "signing.signed", "required"),
        (HEADER | {"signed": "{body}{header}"}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "{body}{url_with_marks}"}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "{{body}}"}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "{body"}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "{body}}"}, "signing.signed", "wrong_format"),
        (HEADER | {"signed": "{timestamp}{body}"}, "signing.timestamp_header", "required"),
        (HEADER | {"timestamp_header": "X-Time"}, "signing.signed", "required"),
        (HEADER | {"signed": "{id}{body}"}, "signing.id_header", "required"),
        (TIMED | {"timestamp_header": "X Time"}, "signing.timestamp_header", "wrong_format"),
        (TIMED | {"timestamp_unit": "minutes"}, "signing.timestamp_unit", "not_a_choice"),
        (TIMED | {"tolerance_seconds": 0}, "signing.tolerance_seconds", "out_of_range"),
        (TIMED | {"tolerance_seconds": 86_401}, "signing.tolerance_seconds", "out_of_range"),
        (TIMED | {"tolerance_seconds": "300"}, "signing.tolerance_seconds", "wrong_type"),
        (TIMED | {"id_header": "é"}, "signing.id_header", "wrong_format"),
    ],
)
def test_a_wrong_setting_is_named(raw: object, field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_signing("custom", raw)
    assert [(problem.field, problem.code) for problem in caught.value.fields] == [(field, code)]
    assert caught.value.fields[0].detail.endswith(".")


def test_what_was_not_said_is_not_stored() -> None:
    assert parse_signing("api-key", {}) is None
    assert parse_signing("custom", HEADER | {"algorithm": "sha256", "prefix": ""}) == HEADER
    assert parse_signing("custom", TIMED | {"tolerance_seconds": 60}) == TIMED | {"tolerance_seconds": 60}


def test_the_key_is_the_secret_as_given() -> None:
    recipe = recipe_of("custom", HEADER)
    for secret in ("whsec_YWJj", "00ff", "ключ", hashlib.sha256(b"").hexdigest()):
        assert recipe.verify(arrival(b"", {"X-Signature": mac(secret, b"").hex()}), [secret]) is None
