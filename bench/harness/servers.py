"""Servers to put load on: the product, started as a user starts it, and an empty lane beside it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from tests.support.ports import free_port

from bench.harness.load import ROOT

START_TIMEOUT_SECONDS = 90
STOP_TIMEOUT_SECONDS = 60


class ServerFailed(Exception):
    pass


class Product:
    """A running `crossdock up`, and calls to it as its operator."""

    def __init__(self, port: int, data_dir: Path, operator_key: str, session: aiohttp.ClientSession) -> None:
        self.port = port
        self.data_dir = data_dir
        self.operator_key = operator_key
        self._session = session

    async def call(self, method: str, path: str, body: object = None, *, key: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {key or self.operator_key}"}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self._session.request(method, url, json=body, headers=headers) as response:
            if response.status >= 300:
                raise ServerFailed(f"{method} {path}: {response.status} {await response.text()}")
            return await response.json()


@contextlib.asynccontextmanager
async def running_product(
    data_dir: Path, *, workers: int, slices: Sequence[str], environ: Mapping[str, str] = {}
) -> AsyncIterator[Product]:
    port, operator_key = free_port(), f"dk_{secrets.token_hex(32)}"
    crossdock = Path(sys.executable).with_name("crossdock")
    command = [str(crossdock), "up", "--data-dir", str(data_dir), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", str(workers), "--slices", ",".join(slices)]
    environment = {"CROSSDOCK_OPERATOR_KEY": operator_key, **environ}
    async with (
        running(command, port, "/readyz", data_dir.with_suffix(".log"), environment),
        aiohttp.ClientSession() as session,
    ):
        yield Product(port, data_dir, operator_key, session)


@contextlib.asynccontextmanager
async def running_empty_lane(directory: Path, *, workers: int) -> AsyncIterator[int]:
    """The port of a lane that answers everything with the same bytes, served as the product's lanes are."""
    port = free_port()
    command = [sys.executable, "-m", "bench.harness.empty_lane", str(port), str(workers)]
    async with running(command, port, "/", directory / "empty-lane.log", {}):
        yield port


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str], port: int, ready_path: str, log: Path, environment: Mapping[str, str]
) -> AsyncIterator[None]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            env={**inherited, **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        if not await _is_ready(process, f"http://127.0.0.1:{port}{ready_path}"):
            raise ServerFailed(f"{command} is not ready; it said:\n{_end_of(log)}")
        yield
    finally:
        await _stop(process)


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]


async def _is_ready(process: asyncio.subprocess.Process, url: str) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + START_TIMEOUT_SECONDS
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        while loop.time() < deadline and process.returncode is None:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(url) as response:
                    if response.status == 200:
                        return True
            await asyncio.sleep(0.05)
    return False


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), STOP_TIMEOUT_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
