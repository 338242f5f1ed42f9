from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.errors import InvalidInput, MalformedRequest
from crossdock.kit.pagination import check_limit, decode_cursor, encode_cursor

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
VALUES = st.dictionaries(TEXTS, TEXTS | st.integers(-(2**63), 2**63 - 1), max_size=6)


def cursor_of(json: str) -> str:
    return base64.urlsafe_b64encode(json.encode()).decode().rstrip("=")


@given(VALUES)
def test_a_cursor_gives_back_what_it_was_made_of(values: dict[str, str | int]) -> None:
    assert decode_cursor(encode_cursor(values)) == values


@given(VALUES)
def test_a_cursor_needs_no_escaping_in_a_url(values: dict[str, str | int]) -> None:
    assert all(c.isascii() and (c.isalnum() or c in "-_") for c in encode_cursor(values))


def test_a_cursor_holds_two_full_keys_of_the_items_port() -> None:
    values = {"p": "x" * 2048, "s": "y" * 1024, "ip": "z" * 2048, "is": "w" * 1024}
    assert decode_cursor(encode_cursor(values)) == values


@given(st.text(max_size=60))
def test_garbage_is_an_invalid_cursor(text: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        decode_cursor(text)
    assert caught.value.code == "invalid_cursor"


@given(VALUES, st.data())
def test_a_cursor_with_a_character_changed_reads_or_is_refused_and_never_fails_otherwise(
    values: dict[str, str | int], data: st.DataObject
) -> None:
    cursor = encode_cursor(values)
    position = data.draw(st.integers(0, len(cursor) - 1))
    try:
        decode_cursor(cursor[:position] + data.draw(st.characters()) + cursor[position + 1 :])
    except MalformedRequest as error:
        assert error.code == "invalid_cursor"


@pytest.mark.parametrize(
    "cursor",
    [
        cursor_of('[2,{"a":"b"}]'),
        cursor_of('[1,{"a":true}]'),
        cursor_of('[1,{"a":1.5}]'),
        cursor_of('[1,{"a":null}]'),
        cursor_of('[1,{"a":["b"]}]'),
        cursor_of('[1,{"a":"\\u0000"}]'),
        cursor_of('[1,{"\\u0000":"a"}]'),
        cursor_of('[1,{"a":"\\ud800"}]'),
        cursor_of('[1,{"a":9223372036854775808}]'),
        cursor_of('[1,{"a":-9223372036854775809}]'),
        cursor_of("[1,[]]"),
        cursor_of("{}"),
        cursor_of('[1,{"a":"' + "x" * 20_000 + '"}]'),
    ],
)
def test_what_no_list_gives_out_is_an_invalid_cursor(cursor: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        decode_cursor(cursor)
    assert caught.value.code == "invalid_cursor"


@pytest.mark.parametrize(
    "values", [{}, {"id": "1"}, {"id": 1, "more": 1}, {"other": 1}, {"id": 1, "sort_key": 2}]
)
def test_a_cursor_of_another_list_is_refused(values: dict[str, str | int]) -> None:
    with pytest.raises(MalformedRequest):
        decode_cursor(encode_cursor(values), {"id": int, "sort_key": str})


def test_a_cursor_of_the_right_shape_is_taken() -> None:
    values: dict[str, str | int] = {"sort_key": "a", "id": 1}
    assert decode_cursor(encode_cursor(values), {"id": int, "sort_key": str}) == values


@pytest.mark.parametrize(("asked", "given_"), [(None, 50), (1, 1), (50, 50), (200, 200)])
def test_a_limit_within_bounds_is_used_and_50_without_one(asked: int | None, given_: int) -> None:
    assert check_limit(asked) == given_


@pytest.mark.parametrize("asked", [0, -1, 201, 10**30])
def test_a_limit_out_of_bounds_names_the_field_and_the_bounds(asked: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_limit(asked)
    (problem,) = caught.value.fields
    assert (problem.field, problem.code) == ("limit", "out_of_range")
    assert "1 to 200" in problem.detail


def test_a_list_with_a_smaller_maximum_has_a_default_within_it() -> None:
    assert check_limit(None, 20) == 20
