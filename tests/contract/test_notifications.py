"""LISTEN and NOTIFY on a real PostgreSQL, whose connections are cut, frozen and restarted meanwhile."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from tests.support.postgres import TestPostgres
from tests.support.waiting import eventually

from crossdock.engines.notifications import PAYLOAD_BYTES_MAX, Notifications
from crossdock.engines.sql.target import PostgresTarget, connect
from crossdock.kit.errors import Unavailable

CHANNEL = "things"


@dataclass
class Heard:
    """A listener that keeps what it was told, in order; None: some may have been missed."""

    told: list[str | None] = field(default_factory=list)

    @property
    def payloads(self) -> list[str]:
        return [each for each in self.told if each is not None]

    @property
    def gaps(self) -> int:
        return self.told.count(None)

    def listen(self, notifications: Notifications, channel: str = CHANNEL) -> None:
        notifications.listen(channel, self.told.append, lambda: self.told.append(None))


@asynccontextmanager
async def running(notifications: Notifications) -> AsyncIterator[None]:
    task = asyncio.create_task(notifications.run())
    try:
        await eventually(lambda: notifications.listening)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert not notifications.listening


async def backend_pids(database: PostgresTarget) -> list[int]:
    """Of whoever else is connected to this database."""
    connection = await connect(database)
    try:
        rows = await connection.fetch(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    finally:
        await connection.close()
    return [row["pid"] for row in rows]


async def cut_connections(database: PostgresTarget) -> None:
    pids = await backend_pids(database)
    assert pids
    connection = await connect(database)
    await connection.execute("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", pids)
    await connection.close()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def ours(database: PostgresTarget, heard: Heard) -> AsyncIterator[Notifications]:
    """Listens to the channel, and runs."""
    notifications = Notifications(database, check_seconds=0.3, uniform=lambda: 0.1)
    heard.listen(notifications)
    async with running(notifications):
        yield notifications


@pytest.fixture(scope="module")
def restartable() -> Iterator[TestPostgres]:
    """A server of our own: others would not like the shared one to go away."""
    with TestPostgres() as server:
        yield server


async def test_what_one_process_sends_every_listening_process_hears_in_order(
    database: PostgresTarget, ours: Notifications, heard: Heard
) -> None:
    theirs, also_heard = Notifications(database), Heard()
    also_heard.listen(theirs)
    async with running(theirs):
        for n in range(20):
            await theirs.notify(CHANNEL, [f"{n} grüße", f"{n} again"])
        wanted = [text for n in range(20) for text in (f"{n} grüße", f"{n} again")]
        await eventually(lambda: len(heard.payloads) == len(also_heard.payloads) == len(wanted))
    assert heard.payloads == also_heard.payloads == wanted


async def test_several_payloads_are_one_commit(
    database: PostgresTarget, ours: Notifications, heard: Heard
) -> None:
    connection = await connect(database)
    before = await connection.fetchval("SELECT txid_current()")
    await ours.notify(CHANNEL, [str(n) for n in range(50)])
    after = await connection.fetchval("SELECT txid_current()")
    await connection.close()
    await eventually(lambda: len(heard.payloads) == 50)
    assert after - before == 2  # theirs and our own question


async def test_another_channel_is_not_heard(ours: Notifications, heard: Heard) -> None:
    await ours.notify("other", ["x"])
    await ours.notify(CHANNEL, ["y"])
    await eventually(lambda: heard.payloads == ["y"])


async def test_a_payload_of_the_greatest_size_arrives_whole_and_a_larger_one_raises(
    ours: Notifications, heard: Heard
) -> None:
    await ours.notify(CHANNEL, ["x" * PAYLOAD_BYTES_MAX])
    await eventually(lambda: heard.payloads == ["x" * PAYLOAD_BYTES_MAX])
    with pytest.raises(ValueError, match="at most 7999 bytes"):
        await ours.notify(CHANNEL, ["x" * (PAYLOAD_BYTES_MAX + 1)])
    await ours.notify(CHANNEL, ["on we go"])
    await eventually(lambda: heard.payloads[-1] == "on we go")


async def test_before_anything_is_heard_the_gap_before_it_is_told(ours: Notifications, heard: Heard) -> None:
    await ours.notify(CHANNEL, ["first"])
    await eventually(lambda: len(heard.told) == 2)
    assert heard.told == [None, "first"]


async def test_a_cut_connection_is_made_anew_the_gap_told_and_what_comes_after_heard(
    database: PostgresTarget, ours: Notifications, heard: Heard
) -> None:
    await ours.notify(CHANNEL, ["before"])
    await eventually(lambda: heard.payloads == ["before"])
    await cut_connections(database)
    await eventually(lambda: heard.gaps == 2)
    await ours.notify(CHANNEL, ["after"])
    await eventually(lambda: heard.told == [None, "before", None, "after"])


async def test_a_restarted_server_is_found_again_and_the_gap_told(restartable: TestPostgres) -> None:
    notifications, heard = Notifications(await restartable.create_database(), uniform=lambda: 0.1), Heard()
    heard.listen(notifications)
    async with running(notifications):
        await asyncio.to_thread(restartable.restart)
        await eventually(lambda: heard.gaps >= 2 and notifications.listening)
        await notifications.notify(CHANNEL, ["after"])
        await eventually(lambda: heard.payloads == ["after"])


async def test_while_the_server_is_away_sending_fails_at_once_and_it_is_waited_for(
    restartable: TestPostgres,
) -> None:
    notifications, heard = Notifications(await restartable.create_database(), uniform=lambda: 0.1), Heard()
    heard.listen(notifications)
    loop, refused, tasks = asyncio.get_running_loop(), list[str](), list[asyncio.Task[None]]()

    async def begin() -> None:
        tasks.append(asyncio.create_task(notifications.run()))
        await asyncio.sleep(0.1)  # for a first try, which fails
        with pytest.raises(Unavailable) as caught:
            await notifications.notify(CHANNEL, ["lost"])
        refused.append(caught.value.code)

    def while_stopped() -> None:
        asyncio.run_coroutine_threadsafe(begin(), loop).result(timeout=5)

    try:
        await asyncio.to_thread(restartable.restart, while_stopped)
        await eventually(lambda: notifications.listening)
        await notifications.notify(CHANNEL, ["x"])
        await eventually(lambda: heard.told == [None, "x"])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert refused == ["notifications_unavailable"]


async def test_without_a_connection_nothing_is_sent_and_that_is_said_at_once(
    database: PostgresTarget,
) -> None:
    with pytest.raises(Unavailable) as caught:
        await Notifications(database).notify(CHANNEL, ["x"])
    assert caught.value.code == "notifications_unavailable"


async def test_a_connection_that_has_fallen_silent_is_given_up_for_a_new_one(
    database: PostgresTarget, ours: Notifications, heard: Heard
) -> None:
    """As behind a firewall that forgot it: no word, and no end."""
    [frozen] = await backend_pids(database)
    os.kill(frozen, signal.SIGSTOP)
    try:
        await eventually(lambda: heard.gaps == 2)
        await ours.notify(CHANNEL, ["after"])
        await eventually(lambda: heard.payloads == ["after"])
    finally:
        os.kill(frozen, signal.SIGCONT)


async def test_notifying_at_once_from_many_places_loses_nothing(ours: Notifications, heard: Heard) -> None:
    await asyncio.gather(*(ours.notify(CHANNEL, [str(n)]) for n in range(100)))
    await eventually(lambda: len(heard.payloads) == 100)
    assert sorted(heard.payloads, key=int) == [str(n) for n in range(100)]


async def test_a_handler_that_fails_is_logged_and_harms_no_other(
    database: PostgresTarget, caplog: pytest.LogCaptureFixture
) -> None:
    notifications, heard = Notifications(database), Heard()

    def fail(payload: str) -> None:
        raise RuntimeError(payload)

    notifications.listen(CHANNEL, fail)
    heard.listen(notifications)
    async with running(notifications):
        with caplog.at_level(logging.ERROR):
            await notifications.notify(CHANNEL, ["one"])
            await notifications.notify(CHANNEL, ["two"])
            await eventually(lambda: heard.payloads == ["one", "two"])
    assert [record.message for record in caplog.records] == ["a handler of notifications failed"] * 2


async def test_who_stops_leaves_no_connection_behind(database: PostgresTarget) -> None:
    notifications = Notifications(database)
    async with running(notifications):
        assert len(await backend_pids(database)) == 1
    for _ in range(200):
        if not await backend_pids(database):
            return
        await asyncio.sleep(0.01)
    pytest.fail("the connection is still there")


async def test_a_listener_that_comes_too_late_is_a_mistake(ours: Notifications, heard: Heard) -> None:
    with pytest.raises(RuntimeError, match="before the connection"):
        heard.listen(ours)
