"""The one place that opens Redis.

A call that meets a broken connection is tried once more on a new one, then fails; nothing waits longer than
the timeouts. What a caller does without Redis is the caller's decision: `REDIS_ERRORS` is what it catches.

A call that timed out may still have happened: scripts that count must be safe to repeat, or be content with
counting twice.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from crossdock.kit.errors import Unavailable

REDIS_ERRORS: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)

OLDEST_VERSION = (6, 2)


def open_redis(url: str, *, connections_max: int = 50, timeout_seconds: float = 2.0) -> Redis:
    """Connects at the first call, not now. Answers are bytes. Raises ValueError for a URL it can't read."""
    return Redis.from_url(
        url,
        max_connections=connections_max,
        socket_connect_timeout=timeout_seconds,
        socket_timeout=timeout_seconds,
        health_check_interval=30,
        # A timeout is not tried again: the server is slow, and another call would not make it faster.
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        client_name="crossdock",
    )


async def check(url: str, *, timeout_seconds: float = 2.0) -> list[str]:
    """What would keep this server from serving us, each as a sentence that says how to mend it."""
    try:
        client = open_redis(url, timeout_seconds=timeout_seconds)
    except ValueError as error:
        return [f"CROSSDOCK_REDIS_URL can't be read: {error}."]
    try:
        info = await client.info("server")
    except REDIS_ERRORS as error:
        return [cannot_reach(url, error).message]
    finally:
        await client.aclose()
    return judge_version(str(info["redis_version"]))


def judge_version(version: str) -> list[str]:
    if tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_VERSION:
        return []
    oldest = ".".join(map(str, OLDEST_VERSION))
    return [f"Redis is {version}; {oldest} or newer is needed: upgrade the server."]


def cannot_reach(url: str, error: Exception) -> Unavailable:
    parts = urlsplit(url)
    return Unavailable(
        "redis_unavailable",
        f"Can't reach Redis at {parts.hostname}:{parts.port or 6379}: {error or type(error).__name__}. "
        "Check that it runs and that CROSSDOCK_REDIS_URL is right.",
    )
