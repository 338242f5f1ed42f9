from __future__ import annotations

import itertools
import os
from itertools import islice
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.ids import (
    NANOID_ALPHABET,
    drawn_ahead,
    is_uuid4,
    nanoid,
    token_hex,
    uuid4_text,
    uuid7,
    uuid7_ms,
    uuid7_text,
)


def zeros(count: int) -> bytes:
    return bytes(count)


def ones(count: int) -> bytes:
    return b"\xff" * count


@given(st.binary(min_size=16, max_size=16))
def test_any_random_bytes_make_a_uuid_of_version_4(drawn: bytes) -> None:
    text = uuid4_text(lambda count: drawn[:count])
    assert UUID(text).version == 4
    assert is_uuid4(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("550E8400-E29B-41D4-A716-446655440000", True),
        ("550e8400-e29b-11d4-a716-446655440000", False),
        ("550e8400-e29b-71d4-a716-446655440000", False),
        ("550e8400-e29b-41d4-c716-446655440000", False),
        ("550e8400e29b41d4a716446655440000", False),
        ("{550e8400-e29b-41d4-a716-446655440000}", False),
        ("urn:uuid:550e8400-e29b-41d4-a716-446655440000", False),
        ("550e8400-e29b-41d4-a716-446655440000\n", False),
        ("550e8400-e29b-41d4-a716-44665544000g", False),
        ("550e8400-e29b-41d4-a716-44665544000\u0663", False),
        ("00000000-0000-0000-0000-000000000000", False),
        ("", False),
    ],
)
def test_only_a_uuid_of_version_4_in_its_usual_form_is_taken_for_one(text: str, expected: bool) -> None:
    assert is_uuid4(text) is expected


@pytest.mark.parametrize("random", [zeros, ones, os.urandom])
@pytest.mark.parametrize("ms", [0, 1, 1_700_000_000_000, 2**48 - 1])
def test_a_uuid_of_version_7_carries_its_time(ms: int, random: object) -> None:
    assert callable(random)
    value = uuid7(ms, random)
    assert value.version == 7
    assert value.variant == "specified in RFC 4122"
    assert uuid7_ms(value) == ms


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1))
def test_uuids_of_version_7_sort_by_time_as_text(one: int, other: int) -> None:
    if one < other:
        assert uuid7_text(one, ones) < uuid7_text(other, zeros)


@pytest.mark.parametrize("ms", [-1, 2**48])
def test_a_time_that_does_not_fit_a_uuid_is_refused(ms: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        uuid7(ms, zeros)


def test_a_token_is_the_hex_of_as_many_bytes() -> None:
    assert token_hex(32, ones) == "ff" * 32


@given(st.integers(0, 64), st.sampled_from([NANOID_ALPHABET, "ab", "0123456789", "abc"]))
def test_a_nanoid_has_the_size_and_alphabet_asked_for(size: int, alphabet: str) -> None:
    text = nanoid(os.urandom, size, alphabet)
    assert len(text) == size
    assert set(text) <= set(alphabet)


def test_bytes_that_would_make_some_characters_likelier_are_drawn_again() -> None:
    # 250 is the last whole multiple of ten: 250 to 255 would all be the first six digits once more.
    drawn = iter([*range(250, 256), *range(10)])
    assert nanoid(lambda count: bytes(islice(drawn, count)), 10, "0123456789") == "0123456789"


@pytest.mark.parametrize("alphabet", ["", "a", "a" * 257])
def test_an_alphabet_that_cannot_be_drawn_from_is_refused(alphabet: str) -> None:
    with pytest.raises(ValueError, match="alphabet"):
        nanoid(zeros, 5, alphabet)


def test_what_is_drawn_ahead_is_given_out_once_and_in_order() -> None:
    numbers = itertools.count()
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return bytes(next(numbers) % 251 for _ in range(size))

    draw = drawn_ahead(random, 16)
    given = b"".join(draw(size) for size in (5, 5, 5))
    assert given == bytes(range(15))
    assert asked == [16]
    assert draw(3) == bytes([16, 17, 18]), "what is left of a piece is thrown away"
    assert len(draw(40)) == 40
    assert asked == [16, 16, 40]
