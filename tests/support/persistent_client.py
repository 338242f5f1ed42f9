"""A client that repeats a request, the same to the byte, until it is answered: as a device does.

What may happen on the way is counted. A 503 is such a thing; any other refusal is a failure of the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any

import aiohttp
import msgspec

ANSWER_SECONDS_MAX = 30
PAUSE_SECONDS = 0.02


class RefusedError(Exception):
    """The server said something that no repetition will mend."""


@dataclass(slots=True)
class Tally:
    """What became of the requests of all clients together."""

    answered: int = 0
    broken_off: int = 0
    """Sent, and the connection broke before the answer: nobody knows what came of it."""
    not_connected: int = 0
    unavailable: int = 0
    late: int = 0
    """No answer within ANSWER_SECONDS_MAX, on a connection that did not break."""
    in_flight: int = 0

    @property
    def unanswered(self) -> int:
        """Attempts that had to be repeated."""
        return self.broken_off + self.not_connected + self.unavailable + self.late

    def __str__(self) -> str:
        return (
            f"{self.answered} requests answered, {self.broken_off} broken off, "
            f"{self.not_connected} not connected, {self.unavailable} answered 503, {self.late} never answered"
        )


class PersistentClient:
    """`url` is asked before each attempt, for a server that may come back elsewhere.

    `keep_alive` False: a new connection for every request, so that they spread over all lanes.
    """

    def __init__(self, url: Callable[[], str], key: str, tally: Tally, *, keep_alive: bool = True) -> None:
        self._url = url
        self._tally = tally
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=not keep_alive),
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS_MAX),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )

    async def post(self, path: str, body: bytes) -> Any:
        while True:
            answer = await self.try_post(path, body)
            if answer is not None:
                return answer
            await asyncio.sleep(PAUSE_SECONDS)

    async def try_post(self, path: str, body: bytes) -> Any:
        """Once: the answer's JSON, or None if there is reason to ask again. Raises RefusedError."""
        tally = self._tally
        tally.in_flight += 1
        try:
            async with self._session.post(self._url() + path, data=body) as response:
                content = await response.read()
        except aiohttp.ClientConnectorError:
            tally.not_connected += 1
            return None
        except TimeoutError:
            tally.late += 1
            return None
        except (aiohttp.ClientError, ConnectionError):
            tally.broken_off += 1
            return None
        finally:
            tally.in_flight -= 1
        return self._judge(response.status, content)

    def _judge(self, status: int, content: bytes) -> Any:
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._tally.unavailable += 1
            return None
        if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise RefusedError(f"{status}: {content.decode(errors='replace')}")
        self._tally.answered += 1
        return msgspec.json.decode(content)

    async def __aenter__(self) -> PersistentClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
