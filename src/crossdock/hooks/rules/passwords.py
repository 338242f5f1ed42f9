"""Passwords: what one may be, how it is kept, and how many wrong ones are listened to.

bcrypt reads 72 bytes, so a longer password is refused and never cut. Functions that hash take a tenth of a
second or more on purpose; whoever has an event loop calls them in a thread.
"""

from __future__ import annotations

import base64
import hashlib
from collections import OrderedDict

import bcrypt

from crossdock.kit.clock import Clock
from crossdock.kit.errors import FieldProblem, InvalidInput, TooManyRequests
from crossdock.kit.ids import Random

BYTES_MIN = 8
BYTES_MAX = 72
COST = 12

FAILURES_MAX = 10
FAILURES_SECONDS = 900
EMAILS_WATCHED = 50_000

_SALT_BYTES = 16
_TO_BCRYPT = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
)


def check_password(password: str) -> None:
    """Raises InvalidInput."""
    if not BYTES_MIN <= len(password.encode()) <= BYTES_MAX:
        detail = (
            f"A password has {BYTES_MIN} to {BYTES_MAX} bytes; letters beyond ASCII count as two or more."
        )
        raise InvalidInput("The password is not valid.", FieldProblem("password", "wrong_length", detail))


def hash_password(password: str, cost: int, random: Random) -> str:
    return bcrypt.hashpw(password.encode(), _salt(cost, random(_SALT_BYTES))).decode("ascii")


def is_password(password: str, password_hash: str) -> bool:
    """In the same time, whatever the answer."""
    raw = password.encode()
    fits = bcrypt.checkpw(raw[:BYTES_MAX], password_hash.encode("ascii"))
    return fits and len(raw) <= BYTES_MAX


def nobodys_hash(cost: int) -> str:
    """Of no password: what is compared with for want of another, so that the answer takes as long."""
    return _salt(cost, bytes(_SALT_BYTES)).decode("ascii") + "." * 31


def stretched(text: str, cost: int, salted_with: str) -> str:
    """A digest of a text that can be guessed: always the same one, and as slow to search as a password's."""
    salt = _salt(cost, hashlib.sha256(salted_with.encode()).digest()[:_SALT_BYTES])
    return bcrypt.hashpw(hashlib.sha256(text.encode()).hexdigest().encode(), salt).decode("ascii")


def _salt(cost: int, random_bytes: bytes) -> bytes:
    text = base64.b64encode(random_bytes).decode("ascii").rstrip("=").translate(_TO_BCRYPT)
    return f"$2b${cost:02}${text}".encode("ascii")


class GuessLimit:
    """At most 10 wrong passwords for an e-mail address in 15 minutes, kept in this process's memory.

    A guess is counted before it is judged, so that many at once are no way around. The address that was
    guessed at the longest ago is forgotten when there are too many: more than can be guessed in 15 minutes.
    """

    def __init__(self, clock: Clock, capacity: int = EMAILS_WATCHED) -> None:
        self._clock = clock
        self._capacity = capacity
        self._guesses: OrderedDict[str, list[float]] = OrderedDict()

    def begin(self, email: str) -> float:
        """Counts a guess and returns its mark for `withdraw`. Raises TooManyRequests."""
        now = self._clock.monotonic()
        recent = [at for at in self._guesses.get(email, ()) if now - at < FAILURES_SECONDS]
        if len(recent) >= FAILURES_MAX:
            raise TooManyRequests(
                "too_many_failures",
                "Too many wrong passwords for this e-mail address. Try again later.",
                retry_after_seconds=recent[0] + FAILURES_SECONDS - now,
            )
        self._guesses[email] = [*recent, now]
        self._guesses.move_to_end(email)
        if len(self._guesses) > self._capacity:
            self._guesses.popitem(last=False)
        return now

    def withdraw(self, email: str, mark: float) -> None:
        """It was right, or could not be judged."""
        left = self._guesses.get(email, [])
        if mark in left:
            left.remove(mark)
        if not left:
            self._guesses.pop(email, None)
