"""`/in/{source_id}`: where providers send their webhooks, by any method and at any path below.

In this order: is there such a source; is it too large; is it the provider's; did it come before; is it kept.
Only then 200. What is refused is noted with its reason, so that its owner can see what went wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.hooks.model import BODY_BYTES_MAX, HEAD_BYTES_MAX, Status
from crossdock.hooks.rules.providers.model import Arrival, Refusal, Reply
from crossdock.hooks.service.acceptance import Acceptance
from crossdock.hooks.service.engine import HooksEngine
from crossdock.hooks.service.in_use import SourceInUse, SourcesInUse
from crossdock.hooks.service.refusals import HeadTooLarge, Refusals, RefusedHere
from crossdock.http.asgi import App, Receive, Scope, Send, lane, read_body, send_json, send_response
from crossdock.http.forwarded import sender_address
from crossdock.http.problems import Headers
from crossdock.kit.clock import Clock
from crossdock.kit.configuration import IpNetwork
from crossdock.kit.errors import (
    CrossdockError,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)

PREFIX = "/in/"
PAUSED_RETRY_SECONDS = 300
USAGE_RETRY_SECONDS = 3600


class Ingest:
    def __init__(
        self,
        sources: SourcesInUse,
        acceptance: Acceptance,
        refusals: Refusals,
        clock: Clock,
        *,
        public_url: str,
        trusted_proxies: tuple[IpNetwork, ...],
    ) -> None:
        self._sources = sources
        self._acceptance = acceptance
        self._refusals = refusals
        self._clock = clock
        self._public_url = public_url.rstrip("/")
        self._trusted_proxies = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        source_id, below = split_path(scope["path"])
        used = await self._sources.find(source_id)
        if used is None:
            raise NotFound("source_not_found", f"There is no source {source_id[:64]}.")
        try:
            arrival, headers = await self._read(used, scope, receive, below)
            await self._take(used, arrival, headers, scope, send)
        except RefusedHere as refused:
            await self._refusals.note(used.source, scope, self._sender(scope), refused.reason, refused.error)
            raise refused.error from refused

    async def _read(
        self, used: SourceInUse, scope: Scope, receive: Receive, below: str
    ) -> tuple[Arrival, tuple[tuple[str, str], ...]]:
        if used.source.status is Status.PAUSED:
            error = Unavailable(
                "source_paused", "This source is paused.", retry_after_seconds=PAUSED_RETRY_SECONDS
            )
            raise RefusedHere("paused", error)
        query: bytes = scope["query_string"]
        sizes = [len(name) + len(value) for name, value in scope["headers"]]
        head_bytes = len(below) + len(query) + sum(sizes)
        if head_bytes > HEAD_BYTES_MAX:
            raise RefusedHere("head_too_large", HeadTooLarge(HEAD_BYTES_MAX))
        try:
            body = await read_body(scope, receive, BODY_BYTES_MAX)
        except TooLarge as error:
            raise RefusedHere("body_too_large", error) from error
        raw_headers: list[tuple[bytes, bytes]] = scope["headers"]
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        text = raw_path.partition(b"?")[0].decode("latin-1")
        query_text = query.decode("latin-1")
        arrival = Arrival(
            method=scope["method"],
            url=self._public_url + text + (f"?{query_text}" if query_text else ""),
            path=below,
            query=query_text,
            headers=tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw_headers]),
            body=body,
            received_at_ms=self._clock.now_ms(),
        )
        if all(value.isascii() for _, value in raw_headers):
            return arrival, arrival.headers
        return arrival, tuple([(name.decode("latin-1"), kept_text(value)) for name, value in raw_headers])

    async def _take(
        self,
        used: SourceInUse,
        arrival: Arrival,
        headers: tuple[tuple[str, str], ...],
        scope: Scope,
        send: Send,
    ) -> None:
        secrets = used.valid_secrets(arrival.received_at_ms)
        if used.recipe.hello is not None:
            reply = used.recipe.challenge(arrival, secrets)
            if reply is not None:
                await send_reply(send, reply)
                return
        # A source that ever had a secret never takes what can't be verified, even if all have run out.
        refusal = used.recipe.verify(arrival, secrets) if used.secrets else None
        if refusal is not None:
            raise RefusedHere(refusal.reason.value, invalid_signature(refusal))
        if used.over_limit:
            error = TooManyRequests(
                "usage_exceeded",
                "The plan's events of this month are used up.",
                retry_after_seconds=USAGE_RETRY_SECONDS,
            )
            raise RefusedHere("usage_exceeded", error)
        accepted = await self._acceptance.accept(used, arrival, headers, self._sender(scope))
        if used.reply is not None:
            await send_reply(send, used.reply, ((b"crossdock-event-id", accepted.event_id.encode()),))
        else:
            await send_json(send, 200, b'{"event_id":"%s"}' % accepted.event_id.encode())

    def _sender(self, scope: Scope) -> str:
        return sender_address(scope, self._trusted_proxies)


def ingest_lane(
    engine: HooksEngine, clock: Clock, public_url: str, trusted_proxies: Sequence[IpNetwork]
) -> App:
    ingest = Ingest(
        engine.sources,
        engine.acceptance,
        engine.refusals,
        clock,
        public_url=public_url,
        trusted_proxies=tuple(trusted_proxies),
    )
    return lane(ingest)


def split_path(path: str) -> tuple[str, str]:
    """The source's id, and the path below it, with its slash."""
    source_id, slash, below = path[len(PREFIX) :].partition("/")
    return source_id, slash + below


def kept_text(value: bytes) -> str:
    """As UTF-8 where it is, so that it goes out as the bytes that came in; U+0000 can't be kept."""
    try:
        return value.decode().replace("\0", "")
    except UnicodeDecodeError:
        return value.decode("latin-1").replace("\0", "")


def invalid_signature(refusal: Refusal) -> CrossdockError:
    return Unauthenticated("invalid_signature", refusal.detail, internal=refusal.reason.value)


async def send_reply(send: Send, reply: Reply, more: Headers = ()) -> None:
    headers = (
        (b"content-type", reply.content_type.encode("latin-1", "replace")),
        (b"content-length", b"%d" % len(reply.body)),
        *more,
    )
    await send_response(send, reply.status, headers, reply.body)
