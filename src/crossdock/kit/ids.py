"""Identifiers and tokens. Randomness is passed in: `os.urandom`, or fixed bytes in tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias
from uuid import UUID

Random: TypeAlias = Callable[[int], bytes]
"""As many random bytes as asked for, fit for secrets."""

NANOID_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-"

_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)


def drawn_ahead(random: Random, byte_count: int = 4096) -> Random:
    """The same randomness, asked for in larger pieces: a system call each is dear where ids are made often.

    For one thread of one process. No byte is given out twice.
    """
    drawn, at = b"", 0

    def draw(size: int) -> bytes:
        nonlocal drawn, at
        if at + size > len(drawn):
            drawn, at = random(max(byte_count, size)), 0
        at += size
        return drawn[at - size : at]

    return draw


def uuid4(random: Random) -> UUID:
    return UUID(bytes=random(16), version=4)


def uuid4_text(random: Random) -> str:
    return str(uuid4(random))


def is_uuid4(text: str) -> bool:
    """In the 8-4-4-4-12 form, either case: braces, `urn:uuid:` and bare hex are refused."""
    return _UUID4.fullmatch(text) is not None


def uuid7(ms: int, random: Random) -> UUID:
    """Sorts by `ms`, which is readable from it; two of one millisecond sort at random (RFC 9562)."""
    if not 0 <= ms < 1 << 48:
        raise ValueError(f"{ms} ms does not fit a UUID")
    bits = (ms << 80) | int.from_bytes(random(10))
    bits = bits & ~(0xF << 76) | 0x7 << 76
    return UUID(int=bits & ~(0x3 << 62) | 0x2 << 62)


def uuid7_text(ms: int, random: Random) -> str:
    return str(uuid7(ms, random))


def uuid7_ms(value: UUID) -> int:
    """The time inside a version 7 UUID."""
    return value.int >> 80


def token_hex(byte_count: int, random: Random) -> str:
    return random(byte_count).hex()


def nanoid(random: Random, size: int = 21, alphabet: str = NANOID_ALPHABET) -> str:
    """`size` characters, each of the alphabet equally likely (21 of the default 64: 126 bits)."""
    if not 2 <= len(alphabet) <= 256:
        raise ValueError("an alphabet has 2 to 256 characters")
    # Bytes beyond the last whole multiple would make the first characters likelier: they are drawn again.
    fair = 256 - 256 % len(alphabet)
    characters: list[str] = []
    while len(characters) < size:
        drawn = random(size - len(characters))
        characters += [alphabet[byte % len(alphabet)] for byte in drawn if byte < fair]
    return "".join(characters)
