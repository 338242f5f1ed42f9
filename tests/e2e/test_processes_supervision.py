"""The supervisor and its children as real processes: crashes, kills, and graceful stops."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from tests.support.ports import free_port
from tests.support.supervised_program import MODULE
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


class Product:
    """The supervised program, and what its journal says."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.port = free_port()
        self._supervisors: list[subprocess.Popen[bytes]] = []

    def start(
        self, *, lanes: int = 2, worker: str = "worker", grace_seconds: float = 5, ready: bool = True
    ) -> subprocess.Popen[bytes]:
        supervisor = subprocess.Popen(
            [
                sys.executable,
                "-m",
                MODULE,
                "supervise",
                str(self.port),
                str(lanes),
                worker,
                str(grace_seconds),
            ],
            cwd=ROOT,
            env={**os.environ, "TEST_DIR": str(self._directory)},
        )
        self._supervisors.append(supervisor)
        if ready:
            before = self.journal().count("ready")
            wait_until(lambda: self.journal().count("ready") > before, patience_seconds=20)
        return supervisor

    def journal(self) -> list[str]:
        path = self._directory / "journal"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line != "kept alive"]

    def times_kept_alive(self) -> int:
        return (self._directory / "journal").read_text().count("kept alive")

    async def get(self, path: str) -> dict[str, int]:
        # A connection each time, so that any lane may take it.
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}", headers={"Connection": "close"}) as response,
        ):
            answer: dict[str, int] = await response.json(content_type=None)
            return answer

    def pid_of_a_lane(self) -> int:
        return asyncio.run(self.get("/"))["pid"]

    def worker_pids(self) -> list[int]:
        return [
            int(match[1]) for line in self.journal() if (match := re.match(r"worker started (\d+)", line))
        ]

    def is_listening(self) -> bool:
        try:
            asyncio.run(self.get("/"))
        except aiohttp.ClientError:
            return False
        return True

    def kill_everything(self) -> None:
        for supervisor in self._supervisors:
            supervisor.kill()
            supervisor.wait()


def lives(pid: int) -> bool:
    """A zombie that nobody has waited for does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(pid: int) -> set[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return {int(each) for each in listed.stdout.split() if lives(int(each))}


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    product = Product(tmp_path)
    yield product
    product.kill_everything()


def test_all_lanes_answer_on_one_port(product: Product) -> None:
    product.start(lanes=2)
    pids: set[int] = set()

    def asked_enough() -> bool:
        pids.add(product.pid_of_a_lane())
        return len(pids) == 2

    wait_until(asked_enough)


def test_a_graceful_stop_answers_the_request_in_flight_and_then_stops_the_worker(product: Product) -> None:
    supervisor = product.start(lanes=1)

    async def stop_amid_a_request() -> dict[str, int]:
        request = asyncio.create_task(product.get("/slow/1.5"))
        await asyncio.to_thread(wait_until, lambda: "slow request begins" in product.journal())
        supervisor.terminate()
        return await request

    assert "pid" in asyncio.run(stop_amid_a_request())
    assert supervisor.wait(10) == 0
    end = product.journal()[product.journal().index("slow request begins") :]
    assert end == ["slow request begins", "lane-1 drained", "worker stopped", "supervisor ends"]


def test_once_stopping_no_new_connection_is_taken(product: Product) -> None:
    supervisor = product.start(lanes=1)

    async def connect_amid_the_stop() -> None:
        request = asyncio.create_task(product.get("/slow/1.5"))
        await asyncio.to_thread(wait_until, lambda: "slow request begins" in product.journal())
        supervisor.terminate()
        await asyncio.sleep(0.7)
        with pytest.raises(aiohttp.ClientConnectorError):
            await product.get("/")
        await request

    asyncio.run(connect_amid_the_stop())
    assert supervisor.wait(10) == 0


def test_a_request_that_outlasts_the_grace_does_not_keep_the_process(product: Product) -> None:
    supervisor = product.start(lanes=1, grace_seconds=1)

    async def stop_amid_a_long_request() -> None:
        request = asyncio.create_task(product.get("/slow/60"))
        await asyncio.to_thread(wait_until, lambda: "slow request begins" in product.journal())
        supervisor.terminate()
        await asyncio.wait((request,))
        request.exception()

    started = time.monotonic()
    asyncio.run(stop_amid_a_long_request())
    assert supervisor.wait(10) == 0
    assert time.monotonic() - started < 8
    assert "lane-1 drained" in product.journal()


def test_a_child_that_ignores_the_request_to_stop_is_killed_after_the_grace(product: Product) -> None:
    supervisor = product.start(lanes=1, worker="stubborn_worker", grace_seconds=0.2)
    (pid,) = product.worker_pids()
    supervisor.terminate()
    assert supervisor.wait(15) == 0
    assert not lives(pid)


def test_a_second_ctrl_c_kills_what_still_runs(product: Product) -> None:
    supervisor = product.start(lanes=1, worker="stubborn_worker", grace_seconds=60)
    supervisor.send_signal(signal.SIGINT)
    wait_until(lambda: "lane-1 drained" in product.journal())
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(10) == 0


def test_a_killed_lane_is_back_at_once_and_its_neighbour_serves_meanwhile(product: Product) -> None:
    supervisor = product.start(lanes=2)
    before = children_of(supervisor.pid)
    os.kill(product.pid_of_a_lane(), signal.SIGKILL)
    assert product.is_listening()
    wait_until(lambda: len(children_of(supervisor.pid)) == 3)
    assert len(children_of(supervisor.pid) & before) == 2


def test_a_worker_killed_with_9_is_started_again(product: Product) -> None:
    product.start()
    (first,) = product.worker_pids()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(product.worker_pids()) == 2)
    assert lives(product.worker_pids()[1])


def test_a_child_that_keeps_crashing_is_started_less_and_less_often(product: Product) -> None:
    supervisor = product.start(lanes=1, worker="crashing_worker", ready=False)
    wait_until(lambda: len(product.worker_pids()) >= 2)
    time.sleep(2)
    assert len(product.worker_pids()) <= 4
    # And a pause is no obstacle to a stop.
    supervisor.terminate()
    assert supervisor.wait(5) == 0


def test_a_hopeless_child_stops_everything_with_its_status(product: Product) -> None:
    supervisor = product.start(lanes=1, worker="hopeless_worker", ready=False)
    assert supervisor.wait(15) == 78
    assert not product.is_listening()


def test_a_supervisor_killed_with_9_takes_its_children_along(product: Product) -> None:
    supervisor = product.start(lanes=2)
    children = children_of(supervisor.pid)
    assert len(children) == 3
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: not any(lives(pid) for pid in children))
    assert {"lane-1 drained", "lane-2 drained", "worker stopped"} <= set(product.journal())


def test_a_lane_stuck_in_its_event_loop_ends_after_its_supervisor_was_killed(product: Product) -> None:
    supervisor = product.start(lanes=1, grace_seconds=0.1)
    children = children_of(supervisor.pid)

    async def block() -> None:
        request = asyncio.create_task(product.get("/block/60"))
        await asyncio.sleep(0.5)
        supervisor.kill()
        await asyncio.wait((request,))
        request.exception()

    asyncio.run(block())
    supervisor.wait()
    wait_until(lambda: not any(lives(pid) for pid in children), patience_seconds=15)


def test_after_a_kill_9_the_product_can_be_started_on_the_same_port_at_once(product: Product) -> None:
    supervisor = product.start(lanes=2)
    supervisor.kill()
    product.start(lanes=2)
    assert product.is_listening()


def test_ctrl_c_in_the_terminal_reaches_the_supervisor_only(product: Product) -> None:
    supervisor = product.start(lanes=1)
    groups = {os.getpgid(child) for child in children_of(supervisor.pid)}
    assert os.getpgid(supervisor.pid) not in groups


def test_what_the_children_need_is_kept_alive_until_they_are_gone(product: Product) -> None:
    supervisor = product.start(lanes=1, worker="stubborn_worker", grace_seconds=60)
    supervisor.terminate()
    wait_until(lambda: "lane-1 drained" in product.journal())
    while_stopping = product.times_kept_alive()
    wait_until(lambda: product.times_kept_alive() > while_stopping + 1)
    supervisor.terminate()
    assert supervisor.wait(10) == 0


def test_an_idle_keep_alive_connection_does_not_hold_up_a_stop(product: Product) -> None:
    supervisor = product.start(lanes=1)

    async def stop_with_an_idle_connection() -> None:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{product.port}/") as response:
                await response.read()
                assert "server" not in response.headers
            supervisor.terminate()
            assert await asyncio.to_thread(supervisor.wait, 4) == 0

    asyncio.run(stop_with_an_idle_connection())
