"""What keeps Redis from serving us: for `crossdock doctor`."""

from __future__ import annotations

import redis.asyncio
from redis.exceptions import RedisError

TIMEOUT_SECONDS = 3.0


async def problem_of(url: str) -> str | None:
    """A sentence that says how to mend it."""
    client = redis.asyncio.Redis.from_url(
        url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS
    )
    try:
        await client.ping()
    except (RedisError, OSError) as error:
        return f"Redis does not answer ({error}). Check that it runs and that CROSSDOCK_REDIS_URL names it."
    finally:
        await client.aclose()
    return None
