"""Webhooks sent to a server under fire, what its receiver got, and what must be true in the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.crash.stores import Store
from tests.support.killing import Killer, Strike, Victim, strike_in_turn
from tests.support.lasting_port import lasting_port
from tests.support.pace import Pace
from tests.support.persistent_client import PersistentClient, Tally
from tests.support.receiver import Receiver
from tests.support.seeds import chance_of
from tests.support.server import Server

LANES = 2
SENDERS = 8
TIMEOUT_SECONDS = 1
SETTLED_SECONDS_MAX = 150
FINAL = {"delivered", "failed", "filtered"}
ENVIRON = {"CROSSDOCK_HOOKS_MONTHLY_EVENTS_TEAM": "1000000000"}


@dataclass
class Webhooks:
    """One run: a source with a connection to a receiver of ours, and what its provider was answered."""

    server: Server
    receiver: Receiver
    source_id: str
    connection_id: str
    user_id: str
    key: str | None = None
    """The operator's, where the server's settings give it."""
    tally: Tally = field(default_factory=Tally)
    accepted: dict[str, str] = field(default_factory=dict)
    """Event ids by delivery id."""

    async def send_all(self, count: int, pace: Pace) -> None:
        numbers = iter(range(count))
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(
                    PersistentClient(lambda: self.server.url, "none", self.tally, keep_alive=False)
                )
                for _ in range(SENDERS)
            ]
            await asyncio.gather(*(self._send(client, numbers, pace) for client in clients))

    async def _send(self, client: PersistentClient, numbers: Any, pace: Pace) -> None:
        for number in numbers:
            await pace.allowed()
            delivery_id = f"delivery-{number:06}"
            body = msgspec.json.encode({"id": delivery_id, "n": number})
            answer = await client.post(f"/in/{self.source_id}/{delivery_id}", body)
            self.accepted[delivery_id] = answer["event_id"]
            await pace.advance(1)

    async def under_fire(self, count: int, victims: Sequence[Victim], seed: int) -> list[Strike]:
        pace = Pace(count)
        killer = Killer(self.server, LANES)
        chance = chance_of(seed, "killer")
        async with asyncio.TaskGroup() as group:
            group.create_task(self.send_all(count, pace))
            striking = group.create_task(
                strike_in_turn(killer, victims, pace, chance, in_flight=lambda: self.tally.in_flight)
            )
        return striking.result()

    async def settle(self) -> list[dict[str, Any]]:
        """Waits until no event is open any more. All events."""
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            while True:
                events = await asyncio.to_thread(self._events)
                if all(event["status"] in FINAL for event in events):
                    return events
                await asyncio.sleep(0.5)

    def _events(self) -> list[dict[str, Any]]:
        path = f"/v1/hooks/sources/{self.source_id}/events"
        return list(self.server.client(self.key).pages(path, {"limit": 200}))

    def attempts(self, event_id: str) -> list[dict[str, Any]]:
        return list(
            self.server.client(self.key).pages(f"/v1/hooks/events/{event_id}/attempts", {"limit": 200})
        )

    async def check(self, count: int) -> None:
        events = await self.settle()
        stored = {event["event_id"]: event for event in events}
        got = Counter(self.receiver.ids())
        assert len(self.accepted) == count
        assert len(set(self.accepted.values())) == count, "two deliveries were answered with one event"
        missing = [each for each in self.accepted.values() if each not in stored]
        assert not missing, f"answered 200 and not kept: {missing}"
        lost = [each for each in self.accepted.values() if not got[each]]
        assert not lost, f"answered 200 and never delivered: {lost}"
        assert {event["status"] for event in events} == {"delivered"}
        await asyncio.to_thread(self._check_attempts, stored, got)
        await self._check_counts(len(stored))

    def _check_attempts(self, stored: dict[str, dict[str, Any]], got: Counter[str]) -> None:
        """Each call that arrived has its attempt, or the record of one that was cut short."""
        for event_id in stored:
            attempts = self.attempts(event_id)
            good = [each for each in attempts if each["status_code"] == 200]
            assert len(good) == 1, (event_id, attempts)
            assert len(attempts) >= got[event_id], (event_id, got[event_id], attempts)

    async def _check_counts(self, count: int) -> None:
        client = self.server.client(self.key)
        found: tuple[int, int, int] = (0, 0, 0)
        for _ in range(100):  # on DynamoDB tallies are folded within seconds
            source = await asyncio.to_thread(client.get, f"/v1/hooks/sources/{self.source_id}")
            connection = await asyncio.to_thread(client.get, f"/v1/hooks/connections/{self.connection_id}")
            usage = await asyncio.to_thread(client.get, "/v1/hooks/usage", {"user_id": self.user_id})
            found = (source["event_count"], connection["delivery_count"], usage["used"])
            if found == (count, count, count):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"counts are {found}, a recount says {count}")

    def report(self, say: Callable[[str], None], strikes: Sequence[Strike] = ()) -> None:
        killed = Counter(strike.victim.name.lower() for strike in strikes)
        again = len(self.receiver.got) - len(set(self.receiver.ids()))
        say(f"{len(strikes)} kills {dict(killed)}; {self.tally}; {again} calls repeated")


@asynccontextmanager
async def receiving(store: Store) -> AsyncIterator[Webhooks]:
    arguments = ("--workers", str(LANES), "--port", str(lasting_port()))
    async with Receiver() as receiver:
        receiver.delay_seconds = 0.003
        with Server(*arguments, environ={**store.environ, **ENVIRON}) as server:
            yield await asyncio.to_thread(set_up, server, receiver)


def set_up(server: Server, receiver: Receiver, key: str | None = None) -> Webhooks:
    client = server.client(key)
    user = {"email": "ann@example.com", "name": "Ann", "plan": "team"}
    user_id = client.post("/v1/hooks/users", user)["user_id"]
    wanted = {
        "user_id": user_id,
        "name": "crash",
        "provider": "github",
        "dedup": {"path": "id"},
    }
    source_id = client.post("/v1/hooks/sources", wanted)["source_id"]
    connection = {
        "name": "crash",
        "destination_url": receiver.url,
        "timeout_seconds": TIMEOUT_SECONDS,
        "retry_config": {"schedule_seconds": [0, 1, 1, 1, 1, 1, 1, 1]},
    }
    made = client.post(f"/v1/hooks/sources/{source_id}/connections", connection)
    return Webhooks(server, receiver, source_id, made["connection_id"], user_id, key)
