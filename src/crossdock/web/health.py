"""`/healthz`: the process is up. `/readyz`: it can serve, or what is missing. `/metrics`: Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from crossdock.http.asgi import App, Receive, Scope, Send, send_json, send_problem, send_response
from crossdock.http.problems import domain_error, render
from crossdock.kit import metrics
from crossdock.kit.errors import FieldProblem, Unavailable

log = logging.getLogger("crossdock.web")

ReadinessCheck: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when all is well; raises what is not, with a message that says what to do."""

CHECK_TIMEOUT_SECONDS = 2.0


async def healthz(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send_json(send, 200, b'{"status":"ok"}')


def readyz(checks: Mapping[str, ReadinessCheck], timeout_seconds: float = CHECK_TIMEOUT_SECONDS) -> App:
    """All checks at once; one that takes too long counts as failed, and is not waited for."""

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        found = await asyncio.gather(
            *(_failure(name, check, timeout_seconds) for name, check in checks.items())
        )
        failures = [each for each in found if each is not None]
        if not failures:
            await send_json(send, 200, b'{"status":"ready"}')
            return
        names = ", ".join(failure.field for failure in failures)
        error = Unavailable("not_ready", f"Not ready: {names}.", retry_after_seconds=1)
        await send_problem(send, render(error, fields=failures))

    return answer


async def _failure(name: str, check: ReadinessCheck, timeout_seconds: float) -> FieldProblem | None:
    try:
        async with asyncio.timeout(timeout_seconds):
            await check()
    except TimeoutError:
        return FieldProblem(name, "timeout", f"No answer within {timeout_seconds:g} s.")
    except Exception as exception:
        error = domain_error(exception)
        if error is None:
            log.warning("the readiness check %s failed", name, exc_info=exception)
            return FieldProblem(name, "failed", "The check itself failed; the log says how.")
        return FieldProblem(name, error.code, error.message)
    return None


async def metrics_page(_scope: Scope, _receive: Receive, send: Send) -> None:
    # In a thread: with several processes it reads a file of each.
    text = await asyncio.to_thread(metrics.render)
    headers = (
        (b"content-type", metrics.CONTENT_TYPE.encode()),
        (b"content-length", str(len(text)).encode()),
    )
    await send_response(send, 200, headers, text)
