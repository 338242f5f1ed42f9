from __future__ import annotations

import msgspec
import pytest

from crossdock.http.idempotency import Stored, check_key, identify
from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.errors import Conflict, InvalidInput
from crossdock.kit.sealing import Sealer

BASE = {
    "principal": Principal("operator", "1", None, ALL_PERMISSIONS),
    "method": "POST",
    "path": "/v1/things",
    "query": b"",
    "key": "k",
    "body": b"{}",
}


@pytest.mark.parametrize(
    "difference",
    [
        {"principal": Principal("operator", "2", None, ALL_PERMISSIONS)},
        {"principal": Principal("workspace", "1", None, ALL_PERMISSIONS)},
        {"method": "PUT"},
        {"path": "/v1/thing"},
        {"key": "l"},
        {"path": "/v1/thingsk", "key": ""},
    ],
)
def test_another_principal_method_path_or_key_is_another_request(difference: dict[str, object]) -> None:
    assert identify(**(BASE | difference)).scope != identify(**BASE).scope  # type: ignore[arg-type]


@pytest.mark.parametrize("difference", [{"body": b"{ }"}, {"query": b"a=1"}, {"query": b"{", "body": b"}"}])
def test_another_body_or_query_is_the_same_request_with_something_else_in_it(
    difference: dict[str, object],
) -> None:
    one, other = identify(**BASE), identify(**(BASE | difference))  # type: ignore[arg-type]
    assert one.scope == other.scope
    assert one.request_sha256 != other.request_sha256


def test_a_slash_at_the_end_of_the_path_makes_no_difference() -> None:
    assert identify(**(BASE | {"path": "/v1/things/"})) == identify(**BASE)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["x", "x" * 255, "5f9c-... any ~ text", " "])
def test_a_key_is_any_printable_text(key: str) -> None:
    assert check_key([key]) == key


@pytest.mark.parametrize("values", [[""], ["x" * 256], ["é"], ["a\n"], ["a", "a"]])
def test_any_other_key_is_refused(values: list[str]) -> None:
    with pytest.raises(InvalidInput, match="invalid_idempotency_key"):
        check_key(values)


def test_no_header_is_no_key() -> None:
    assert check_key([]) is None


class Old(msgspec.Struct):
    name: str


class New(msgspec.Struct):
    name: str
    colour: str


def test_an_answer_of_a_shape_that_changed_since_is_lost_and_says_so() -> None:
    request, sealer = identify(**BASE), Sealer(bytes(32))  # type: ignore[arg-type]
    sealed = Stored(Old).seal(Old("x"), request, sealer)
    with pytest.raises(Conflict, match="idempotency_answer_lost"):
        Stored(New).unseal(sealed, request, sealer, 0)


def test_an_answer_opens_for_its_own_request_only() -> None:
    request, sealer = identify(**BASE), Sealer(bytes(32))  # type: ignore[arg-type]
    other = identify(**(BASE | {"key": "other"}))  # type: ignore[arg-type]
    sealed = Stored(Old).seal(Old("x"), request, sealer)
    assert Stored(Old).unseal(sealed, request, sealer, 0) == Old("x")
    with pytest.raises(Conflict, match="idempotency_answer_lost"):
        Stored(Old).unseal(sealed, other, sealer, 0)
