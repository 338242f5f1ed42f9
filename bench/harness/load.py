"""HTTP load: describe it, have a process of its own make it, read what came of it.

The load generator never shares a loop with what it measures. Requests are rendered beforehand, into a file,
so that nothing but sending and reading happens inside the measured window.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]


class LoadJob(msgspec.Struct, frozen=True, kw_only=True):
    """Keep `connections` busy, one request at a time each, until `seconds` are over or no request is left."""

    port: int
    requests: str
    """The file that `write_requests` wrote."""
    connections: int
    seconds: float
    repeat: bool
    """Start again from the first request when they run out; otherwise stop there."""


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    completed: int
    seconds: float
    statuses: dict[str, int]
    broken_connections: int
    bytes_received: int
    latency_ms_p50: float
    latency_ms_p90: float
    latency_ms_p99: float
    latency_ms_max: float

    @property
    def per_second(self) -> float:
        return self.completed / self.seconds if self.seconds else 0.0


class LoadFailed(Exception):
    pass


def render_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method in {"POST", "PUT", "PATCH"}:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def write_requests(file: Path, requests: Iterable[bytes]) -> Path:
    with file.open("wb") as out:
        for request in requests:
            out.write(len(request).to_bytes(4, "big"))
            out.write(request)
    return file


def read_requests(file: Path) -> list[bytes]:
    content = memoryview(file.read_bytes())
    requests = []
    position = 0
    while position < len(content):
        size = int.from_bytes(content[position : position + 4], "big")
        requests.append(bytes(content[position + 4 : position + 4 + size]))
        position += 4 + size
    return requests


async def run_load(job: LoadJob, *, expected_status: int = 200) -> LoadResult:
    """Raises LoadFailed if any answer has another status, or a connection broke: such."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.harness.load_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(msgspec.json.encode(job)), job.seconds + 120)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise LoadFailed(f"The load process ended with status {process.returncode}.")
    result = msgspec.json.decode(output, type=LoadResult)
    if result.broken_connections or set(result.statuses) != {str(expected_status)}:
        raise LoadFailed(f"Expected only status {expected_status}: {result}")
    return result
