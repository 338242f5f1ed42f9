"""The one client for outgoing HTTP: it calls nothing that the egress policy refuses.

- A name is resolved once; every address of the answer is judged, and only the good ones are connected to.
  What DNS says a moment later does not matter, since nothing asks it again.
- The socket is judged once more as it is opened, so that no form of an address slips past.
- Only http and https, no proxies from the environment, no cookies, no credentials in URLs. Redirects are
  answers unless asked for; then each hop is judged alike, and another origin gets no headers of the caller
  beyond the harmless ones.
- Reading is bounded, and so is time: `timeout_seconds` covers the call with its redirects and its body.

A refusal raises `EgressRefused`. A call that got no answer raises `CallFailed`, whose code says at which
point; whether to try again is the caller's decision. Nothing is repeated here.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from multidict import CIMultiDictProxy
from yarl import URL

from crossdock.http.outgoing import REDIRECT_STATUSES, Call, check_url, follow, literal_address
from crossdock.kit.egress import Address, EgressPolicy, EgressRefused
from crossdock.kit.errors import InvalidInput, Unavailable
from crossdock.kit.metrics import counter

REFUSALS = counter("egress_refusals_total", "Outgoing requests refused by the egress policy.")

# No file descriptors, no buffers, no local ports left, network down: nobody should be blamed for these.
_OWN_FAULTS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL, errno.ENETDOWN})

_AddressInfo: TypeAlias = tuple[
    int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]
]


class CallFailed(Unavailable):
    """No answer, or half of one. Codes: `dns_failed`, `connect_failed`, `tls_failed`, `call_timeout`,
    `connection_lost`, `invalid_response`, `invalid_redirect`, `too_many_redirects`, and
    `own_network_failed`, which is no fault of the other side."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its body, or with the first part of it where `complete` is False."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    complete: bool


class StreamedAnswer:
    """An answer whose body is still to be read, in one of two ways."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.url = str(response.url)

    async def read_bounded(self, bytes_max: int) -> tuple[bytes, bool]:
        """At most that many bytes of the (decompressed) body, and whether that was all of it."""
        parts: list[bytes] = []
        room = bytes_max
        with _failures(self._response.url.host):
            async for chunk in self._response.content.iter_any():
                parts.append(chunk[:room])
                if len(chunk) > room:
                    return b"".join(parts), False
                room -= len(chunk)
        return b"".join(parts), True

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. A reader that waits makes the sender wait."""
        with _failures(self._response.url.host):
            async for chunk in self._response.content.iter_any():
                yield chunk


class GuardedClient:
    """Made and closed inside a running event loop; keeps connections open for reuse until then."""

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        resolver: AbstractResolver | None = None,
        connect_timeout_seconds: float = 5.0,
        connections_max: int = 200,
        connections_per_host_max: int = 0,
        decompress: bool = True,
        ssl_context: ssl.SSLContext | None = None,
        user_agent: str = "Crossdock",
    ) -> None:
        """`resolver` (the system's unless given) is closed with the client. `decompress` False passes bodies
        on as they came. `connections_per_host_max` 0 sets no limit."""
        self._policy = policy
        self._resolver = VettingResolver(policy, resolver or DefaultResolver())
        self._connect_timeout_seconds = connect_timeout_seconds
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=self._resolver,
                socket_factory=vetted_socket_factory(policy),
                limit=connections_max,
                limit_per_host=connections_per_host_max,
                ssl=ssl_context or True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=decompress,
            headers={"User-Agent": user_agent},
        )

    async def vet(self, url: str) -> None:
        """Would a call to this URL be made? Raises InvalidInput, EgressRefused, or CallFailed where DNS has
        no answer. For telling a user at once; a call judges for itself, later, again."""
        target = self._checked(url)
        host, port = target.host or "", target.port or 0
        if literal_address(host) is None:
            with _failures(host):
                await self._resolver.resolve(host, port)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_seconds: float = 30.0,
        bytes_max: int = 1024 * 1024,
        redirects_max: int = 0,
    ) -> Answer:
        """Call, and read at most `bytes_max` of the body."""
        async with self.stream(
            method,
            url,
            headers=headers,
            body=body,
            timeout_seconds=timeout_seconds,
            redirects_max=redirects_max,
        ) as answer:
            content, complete = await answer.read_bounded(bytes_max)
            return Answer(answer.status, answer.headers, content, complete)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | AsyncIterator[bytes] | None = None,
        timeout_seconds: float = 30.0,
        redirects_max: int = 0,
    ) -> AsyncIterator[StreamedAnswer]:
        """Call; the body is read by the caller, within the same timeout."""
        call = Call.make(method, self._checked(url), headers, body)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        response = await self._follow(call, deadline, redirects_max)
        try:
            yield StreamedAnswer(response)
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def close(self) -> None:
        await self._session.close()
        await self._resolver.close()

    async def _follow(self, call: Call, deadline: float, redirects_max: int) -> aiohttp.ClientResponse:
        for _ in range(redirects_max + 1):
            response = await self._request(call, deadline)
            location = response.headers.get("Location")
            if not redirects_max or response.status not in REDIRECT_STATUSES or location is None:
                return response
            response.close()
            try:
                call = follow(call, response.status, location)
            except InvalidInput as error:
                raise CallFailed(
                    "invalid_redirect", f"A redirect can't be followed: {error.message}"
                ) from error
            self._judge_literal(call.url)
        raise CallFailed("too_many_redirects", f"More than {redirects_max} redirects.")

    async def _request(self, call: Call, deadline: float) -> aiohttp.ClientResponse:
        left_seconds = max(deadline - asyncio.get_running_loop().time(), 0.001)
        with _failures(call.url.host):
            return await self._session.request(
                call.method,
                call.url,
                headers=call.headers,
                data=call.body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=left_seconds, sock_connect=self._connect_timeout_seconds, ceil_threshold=60
                ),
            )

    def _checked(self, url: str) -> URL:
        target = check_url(url)
        self._judge_literal(target)
        return target

    def _judge_literal(self, url: URL) -> None:
        host = url.host or ""
        address = literal_address(host)
        if address is not None:
            refuse_unless_allowed(self._policy, host, address)


class VettingResolver(AbstractResolver):
    """Passes on the addresses that the policy allows; raises EgressRefused when there is none."""

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        good = [each for each in found if self._allows(each["host"])]
        if found and not good:
            address = literal_address(found[0]["host"])
            if address is None:
                raise OSError(None, f"DNS gave {found[0]['host']!r} as an address")
            refuse_unless_allowed(self._policy, host, address)
        return good

    async def close(self) -> None:
        await self._inner.close()

    def _allows(self, text: str) -> bool:
        address = literal_address(text)
        return address is not None and self._policy.judge(address).allowed


def vetted_socket_factory(policy: EgressPolicy) -> Callable[[_AddressInfo], socket.socket]:
    """Opens sockets for addresses that the policy allows, whichever way they came here."""

    def open_socket(info: _AddressInfo) -> socket.socket:
        family, kind, protocol, _, target = info
        host = str(target[0])
        address = literal_address(host)
        if address is None:
            raise OSError(None, f"{host!r} is not an address")
        refuse_unless_allowed(policy, host, address)
        return socket.socket(family, kind, protocol)

    return open_socket


def refuse_unless_allowed(policy: EgressPolicy, host: str, address: Address) -> None:
    verdict = policy.judge(address)
    if not verdict.allowed:
        REFUSALS.inc()
        raise EgressRefused(host, address, verdict)


@contextmanager
def _failures(host: str | None) -> Iterator[None]:
    """What aiohttp raises, as CallFailed with a code that says at which point it went wrong."""
    try:
        yield
    except aiohttp.ClientConnectorDNSError as error:
        raise CallFailed("dns_failed", f"The name {host} was not found.", internal=str(error)) from error
    except (aiohttp.ClientSSLError, ssl.SSLError) as error:
        raise CallFailed(
            "tls_failed", f"No secure connection to {host}: {_tls_reason(error)}.", internal=str(error)
        ) from error
    except TimeoutError as error:
        raise CallFailed("call_timeout", f"{host} did not answer in time.", internal=repr(error)) from error
    except aiohttp.ClientConnectorError as error:
        code = "own_network_failed" if error.os_error.errno in _OWN_FAULTS else "connect_failed"
        raise CallFailed(code, f"No connection to {host}.", internal=str(error)) from error
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
        raise CallFailed(
            "connection_lost",
            f"{host} closed the connection before its answer was complete.",
            internal=str(error),
        ) from error
    except aiohttp.ClientError as error:
        raise CallFailed(
            "invalid_response", f"{host} did not answer in HTTP.", internal=str(error)
        ) from error
    except OSError as error:
        raise CallFailed("dns_failed", f"The name {host} was not found.", internal=str(error)) from error


def _tls_reason(error: BaseException) -> str:
    inner = error.__cause__ if isinstance(error, aiohttp.ClientSSLError) else error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({inner.verify_message})"
    return "the TLS handshake failed"
