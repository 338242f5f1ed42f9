"""The thinnest client that calls DynamoDB: one POST, signed, with retries that never guess.

`call` returns the answer, or raises

- `ServiceError` for an answer that is an error (a failed condition, a missing table): the caller reads it;
- `Unavailable` when the request surely had no effect: no connection, or throttled until the attempts ran out;
- `OutcomeUnknown` when it may have had one. A `repeatable` request (a read, or a write with a token of its
  own) is sent again, byte for byte, before that is said.

Nothing is buffered: when DynamoDB is away, calls fail at once.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from crossdock.engines.items.dynamodb.credentials import CredentialSource, credentials_from
from crossdock.engines.items.dynamodb.errors import ServiceError, Verdict, judge, unavailable
from crossdock.engines.items.dynamodb.signing import Signer
from crossdock.engines.items.port import OutcomeUnknown
from crossdock.kit.backoff import Backoff, Uniform
from crossdock.kit.clock import Clock
from crossdock.kit.configuration import SettingsError

ATTEMPTS_MAX = 10
BACKOFF = Backoff(base_seconds=0.025, cap_seconds=1.0)

_TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=3)
# A larger body is written piece by piece, for the event loop's sake.
_BYTES_AT_ONCE_MAX = 1 << 20
_SKIPPED_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Where DynamoDB is. Without an endpoint: AWS, in `region`."""

    region: str
    endpoint: str | None = None
    ca_bundle: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], endpoint: str | None) -> Target:
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise SettingsError("AWS_REGION is not set: name the region that the tables are in.")
        return cls(region, endpoint, environ.get("AWS_CA_BUNDLE") or None)

    def url(self, service: str) -> URL:
        """`service`: dynamodb or streams.dynamodb. An endpoint of one's own serves both."""
        if self.endpoint is not None:
            return URL(self.endpoint).with_path("/")
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        return URL(f"https://{service}.{self.region}.{suffix}/")


class _Api:
    """One of DynamoDB's two APIs: its address, its signer and its prefix of operation names."""

    def __init__(self, target: Target, service: str, prefix: str) -> None:
        self.url = target.url(service)
        default_port = 443 if self.url.scheme == "https" else 80
        host = self.url.host or ""
        self.signer = Signer(
            host if self.url.port == default_port else f"{host}:{self.url.port}", target.region
        )
        self.prefix = prefix


class DynamoClient:
    """Bound to the event loop of its first call. `close` it."""

    def __init__(
        self,
        target: Target,
        credentials: CredentialSource,
        clock: Clock,
        uniform: Uniform,
        *,
        connections_max: int = 64,
    ) -> None:
        self.target = target
        self.uniform = uniform
        self._credentials = credentials
        self._clock = clock
        self._connections_max = connections_max
        self._tables = _Api(target, "dynamodb", "DynamoDB_20120810.")
        self._streams = _Api(target, "streams.dynamodb", "DynamoDBStreams_20120810.")
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str], endpoint: str | None, clock: Clock, uniform: Uniform
    ) -> DynamoClient:
        target = Target.from_environment(environ, endpoint)
        return cls(target, credentials_from(environ, clock), clock, uniform)

    async def call(self, operation: str, request: Mapping[str, Any], *, repeatable: bool) -> Reply:
        return await self._call(self._tables, operation, _encode(request), repeatable)

    async def call_streams(self, operation: str, request: Mapping[str, Any]) -> Reply:
        return await self._call(self._streams, operation, _encode(request), repeatable=True)

    async def pause(self, attempt: int) -> None:
        """Wait before attempt number `attempt` + 1."""
        await asyncio.sleep(BACKOFF.delay_seconds(attempt, self.uniform))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _call(self, api: _Api, operation: str, body: bytes, repeatable: bool) -> Reply:
        maybe_applied = False
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return await self._attempt(api, operation, body)
            except ServiceError as error:
                verdict = judge(error.status, error.service_code)
                reason = error.internal
                if verdict is Verdict.ANSWER:
                    raise
                if verdict is Verdict.CREDENTIALS_EXPIRED:
                    if attempt > 1:
                        raise
                    self._credentials.forget()
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                if maybe_applied:
                    raise OutcomeUnknown(f"{operation}: {error}") from error
                raise unavailable(f"{operation}: {error}") from error
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                verdict, reason = Verdict.MAYBE_APPLIED, f"{operation}: {error!r}"
            maybe_applied = maybe_applied or verdict is Verdict.MAYBE_APPLIED
            if maybe_applied and not repeatable:
                raise OutcomeUnknown(reason)
            if attempt < ATTEMPTS_MAX:
                await self.pause(attempt)
        raise OutcomeUnknown(reason) if maybe_applied else unavailable(reason, busy=True)

    async def _attempt(self, api: _Api, operation: str, body: bytes) -> Reply:
        credentials = await self._credentials.current()
        headers = api.signer.headers(api.prefix + operation, body, credentials, self._clock.now_ms())
        session = self._session or self._open()
        data = body if len(body) <= _BYTES_AT_ONCE_MAX else io.BytesIO(body)
        async with session.post(api.url, data=data, headers=headers) as response:
            content = await response.read()
            status = response.status
            checksum = response.headers.get("x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(content):
            raise aiohttp.ClientPayloadError("the answer's checksum is wrong")
        if status == 200:
            return _decode(content)  # type: ignore[no-any-return]
        raise _service_error(operation, status, content)

    def _open(self) -> aiohttp.ClientSession:
        secure: ssl.SSLContext | bool = True
        if self.target.ca_bundle is not None:
            secure = ssl.create_default_context(cafile=self.target.ca_bundle)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections_max, ssl=secure, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_SKIPPED_HEADERS,
            timeout=_TIMEOUT,
            auto_decompress=False,
        )
        return self._session


def _service_error(operation: str, status: int, content: bytes) -> ServiceError:
    """The error in an answer's body; by its status alone if something in between answered for DynamoDB."""
    try:
        body = _decode(content)
        code = str(body["__type"]).rpartition("#")[2]
    except (msgspec.DecodeError, KeyError, TypeError):
        body, code = {}, f"HTTP {status}"
    detail = str(body.get("message") or body.get("Message") or "")
    return ServiceError(operation, status, code, detail, body)
