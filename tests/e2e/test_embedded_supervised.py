"""A supervised product with its own PostgreSQL: stopped in order, killed in any."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.supervised_database import MODULE, STOPPED
from tests.support.waiting import wait_until

from crossdock.engines.sql.embedded import attached
from crossdock.engines.sql.postmaster import is_postmaster_of, read_pid_file
from crossdock.engines.sql.target import connect

ROOT = Path(__file__).resolve().parents[2]


class Product:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._supervisor: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self.acknowledged: list[int] = []

    @property
    def cluster(self) -> Path:
        return self._directory / "data" / "postgres"

    def start(self) -> subprocess.Popen[str]:
        self._supervisor = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(self._directory)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, args=(self._supervisor,))
        self._reader.start()
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) > before, patience_seconds=60)
        return self._supervisor

    def _read(self, supervisor: subprocess.Popen[str]) -> None:
        assert supervisor.stdout is not None
        for line in supervisor.stdout:
            self.acknowledged.append(int(line))

    def wait(self) -> int:
        """Until every process is gone that could still acknowledge something."""
        assert self._supervisor is not None
        assert self._reader is not None
        status = self._supervisor.wait(60)
        self._reader.join(60)
        assert self._supervisor.stdout is not None
        self._supervisor.stdout.close()
        self._supervisor = None
        return status

    def postmaster_pid(self) -> int | None:
        pid_file = read_pid_file(self.cluster)
        return None if pid_file is None or not is_postmaster_of(pid_file.pid, self.cluster) else pid_file.pid

    def kill_postmaster(self) -> int | None:
        pid = self.postmaster_pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        return pid

    def stored(self) -> list[int]:
        with attached(self._directory / "data") as target:

            async def numbers() -> list[int]:
                connection = await connect(target)
                rows = await connection.fetch("SELECT number FROM rows")
                await connection.close()
                return [row["number"] for row in rows]

            return asyncio.run(numbers())

    def end(self) -> None:
        if self._supervisor is not None:
            self._supervisor.kill()
            self.wait()
        self.kill_postmaster()


@pytest.fixture
def product() -> Iterator[Product]:
    directory = Path(tempfile.mkdtemp(prefix="crossdock-test-"))
    product = Product(directory)
    yield product
    product.end()
    wait_until(lambda: product.postmaster_pid() is None)
    shutil.rmtree(directory)


def test_the_database_is_stopped_after_the_children_wrote_their_last(product: Product) -> None:
    product.start().terminate()
    assert product.wait() == 0
    assert product.postmaster_pid() is None
    assert product.acknowledged[-1] == STOPPED
    assert set(product.stored()) >= set(product.acknowledged)


def test_a_killed_database_is_back_without_a_restart_of_the_children(product: Product) -> None:
    supervisor = product.start()
    killed = product.kill_postmaster()
    wait_until(lambda: product.postmaster_pid() not in (None, killed), patience_seconds=30)
    before = len(product.acknowledged)
    wait_until(lambda: len(product.acknowledged) > before + 10, patience_seconds=30)
    supervisor.terminate()
    assert product.wait() == 0
    assert set(product.stored()) >= set(product.acknowledged)


def test_every_acknowledged_row_survives_kill_9_of_supervisor_and_database_again_and_again(
    product: Product,
) -> None:
    chance = random.Random(8420)
    for _ in range(4):
        supervisor = product.start()
        threading.Event().wait(chance.uniform(0, 0.5))
        victims = [supervisor.kill, product.kill_postmaster]
        chance.shuffle(victims)
        for kill in victims[: chance.randint(1, 2)]:
            kill()
        supervisor.kill()
        product.wait()
    assert set(product.stored()) >= set(product.acknowledged)
