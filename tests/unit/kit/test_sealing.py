from __future__ import annotations

import base64
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.sealing import Sealer, SealError, key_id, parse_secret_key

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))


def code_of(sealer: Sealer, sealed: str, context: str) -> str:
    with pytest.raises(SealError) as caught:
        sealer.unseal(sealed, context)
    return caught.value.code


@given(st.binary(max_size=300), st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_what_was_sealed_opens_in_its_context(plaintext: bytes, context: str) -> None:
    sealer = Sealer(KEY)
    assert sealer.unseal(sealer.seal(plaintext, context), context) == plaintext


@given(st.text("abc.:", max_size=6), st.text("abc.:", max_size=6))
def test_what_was_sealed_opens_in_no_other_context(context: str, other: str) -> None:
    if context != other:
        sealer = Sealer(KEY)
        assert code_of(sealer, sealer.seal(b"secret", context), other) == "seal_broken"


def test_the_same_secret_sealed_twice_looks_different() -> None:
    sealer = Sealer(KEY)
    assert sealer.seal(b"secret", "c") != sealer.seal(b"secret", "c")


def test_the_nonce_is_drawn_for_every_seal() -> None:
    nonces = count(1)
    sealer = Sealer(KEY, random=lambda size: next(nonces).to_bytes(size))
    payloads = [base64.urlsafe_b64decode(sealer.seal(b"x", "c").split(".")[2]) for _ in range(3)]
    assert [int.from_bytes(payload[:12]) for payload in payloads] == [1, 2, 3]


@given(st.data())
def test_a_value_changed_anywhere_never_opens(data: st.DataObject) -> None:
    sealer = Sealer(KEY, previous=[OTHER_KEY])
    sealed = sealer.seal(b"a secret", "c")
    position = data.draw(st.integers(0, len(sealed) - 1))
    replacement = data.draw(st.characters(codec="utf-8").filter(lambda c: c != sealed[position]))
    with pytest.raises(SealError):
        sealer.unseal(sealed[:position] + replacement + sealed[position + 1 :], "c")


@given(st.text(max_size=80))
def test_garbage_is_refused_as_malformed_or_of_an_unknown_key(text: str) -> None:
    assert code_of(Sealer(KEY), text, "c") in {"seal_malformed", "seal_key_unknown"}


@pytest.mark.parametrize("cut", [1, 4, 20, 60])
def test_a_value_cut_short_never_opens(cut: int) -> None:
    sealer = Sealer(KEY)
    with pytest.raises(SealError):
        sealer.unseal(sealer.seal(b"a secret", "c")[:-cut], "c")


def test_a_value_cut_to_less_than_its_tag_is_named_malformed() -> None:
    sealer = Sealer(KEY)
    version, identifier, _ = sealer.seal(b"", "c").split(".")
    assert code_of(sealer, f"{version}.{identifier}.{'A' * 36}", "c") == "seal_malformed"


def test_a_previous_key_still_opens_and_new_values_use_the_current_one() -> None:
    old = Sealer(OTHER_KEY).seal(b"secret", "c")
    sealer = Sealer(KEY, previous=[OTHER_KEY])
    assert sealer.unseal(old, "c") == b"secret"
    assert not sealer.is_current(old)
    new = sealer.seal(b"secret", "c")
    assert sealer.is_current(new)
    assert Sealer(KEY).unseal(new, "c") == b"secret"


def test_a_key_that_was_not_given_is_named_by_its_id() -> None:
    with pytest.raises(SealError) as caught:
        Sealer(KEY).unseal(Sealer(OTHER_KEY).seal(b"secret", "c"), "c")
    assert caught.value.code == "seal_key_unknown"
    assert key_id(OTHER_KEY) in caught.value.message


def test_a_value_relabelled_with_another_keys_id_never_opens() -> None:
    sealer = Sealer(KEY, previous=[OTHER_KEY])
    relabelled = sealer.seal(b"secret", "c").replace(key_id(KEY), key_id(OTHER_KEY))
    assert code_of(sealer, relabelled, "c") == "seal_broken"


def test_the_key_shows_neither_in_repr_nor_in_its_id() -> None:
    assert KEY.hex() not in repr(Sealer(KEY)) + repr(vars(Sealer(KEY)))
    assert key_id(KEY) not in KEY.hex()


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_sealing_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(bytes(size))


@given(st.binary(min_size=32, max_size=32))
def test_32_random_bytes_are_read_from_hex_and_both_base64_forms(key: bytes) -> None:
    forms = (
        key.hex(),
        key.hex().upper(),
        base64.b64encode(key).decode(),
        base64.urlsafe_b64encode(key).decode(),
        base64.urlsafe_b64encode(key).decode().rstrip("="),
        f" {key.hex()}\n",
    )
    assert {parse_secret_key(form) for form in forms} == {key}


@pytest.mark.parametrize(
    "text", ["00112233445566778899aabbccddeeff", "a long passphrase, with spaces", "ff" * 64, "\u00e9" * 16]
)
def test_a_secret_of_another_length_is_stretched_to_a_key(text: str) -> None:
    assert len(parse_secret_key(text)) == 32
    assert parse_secret_key(text) == parse_secret_key(text)
    assert parse_secret_key(text) != parse_secret_key(text[:-2] + "00")


@pytest.mark.parametrize(
    "text", ["", "hunter2", "00112233445566778899aabbccddee", "not so long!", "abcdefghijklmnop"]
)
def test_a_secret_of_less_than_16_bytes_is_refused_saying_how_to_make_one(text: str) -> None:
    with pytest.raises(ValueError, match="openssl rand -hex 32"):
        parse_secret_key(text)
