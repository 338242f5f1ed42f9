"""Whatever is done to an event's deliveries, in whatever order, its counts and status are theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, TypedDict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.hooks_events import Reading, made_event
from tests.support.hooks_sources import KeysByHeart, key_of

from crossdock.delivery.limits import Slots
from crossdock.delivery.model import (
    INTERRUPTED,
    CallResult,
    Decision,
    GaveUp,
    GaveUpReason,
    RetryAt,
    Succeeded,
)
from crossdock.hooks.model import OPEN_STATES, Connection, Delivery, DeliveryState, Event, EventStatus, Source
from crossdock.hooks.rules.outcomes import after_call, attempt_of_call, held, released, without_call
from crossdock.hooks.service.fan_out import FanOut, Job
from crossdock.hooks.service.finishing import Kept, OpenEvent
from crossdock.hooks.store.connections import connection_deleted
from crossdock.hooks.store.events import new_event
from crossdock.http.principals import Principal
from crossdock.kit.errors import Conflict, NotFound

EVENTS, CONNECTIONS = 2, 3

Step: TypeAlias = tuple[str, int, int]
"""What, at which event, at which connection; some steps make something else of the numbers."""

STEPS: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(
        [
            "fan out",
            "claim",
            "claim",
            "claim",
            "succeed",
            "fail",
            "give up",
            "own fault",
            "replay",
            "replay",
            "replay one",
            "replay many",
            "park",
            "unpark",
            "delete",
        ]
    ),
    st.integers(0, EVENTS - 1),
    st.integers(0, CONNECTIONS - 1),
)


@dataclass
class Run:
    """One life of a source, its connections and events."""

    reading: Reading
    principal: Principal
    source: Source
    connections: list[Connection]
    events: list[Event]
    jobs: list[Job] = field(default_factory=list)
    calls: int = 0

    @classmethod
    async def begin(cls, reading: Reading) -> Run:
        source = await reading.world.source()
        connections = [
            await reading.world.connection(source, "http://127.0.0.1:1/") for _ in range(CONNECTIONS)
        ]
        principal = await KeysByHeart().resolve(key_of(source.user_id))
        assert principal is not None
        events = [
            made_event(source, received_at=reading.now_ms - number, status=EventStatus.RECEIVED)
            for number in range(EVENTS)
        ]
        for event in events:
            await reading.items.transact([new_event(event, reading.now_ms)])
        run = cls(reading, principal, source, connections, events)
        await run.fan_out(0, 0)
        return run

    async def take(self, step: Step) -> None:
        name, event, connection = step
        # Generations are told apart by the millisecond.
        self.reading.clock.advance(ms=1)
        await getattr(self, name.replace(" ", "_"))(event, connection)
        await self.reading.recount(self.source)

    # --- steps ---

    async def fan_out(self, event: int, _: int) -> None:
        engine = self.reading.node.engine
        stored = await self.reading.stored(self.events[event])
        used = await engine.sources.find(self.source.source_id)
        if stored.status is EventStatus.RECEIVED and used is not None:
            slots: Slots[str] = Slots(CONNECTIONS, CONNECTIONS)
            self.jobs += await FanOut(self.reading.items, self.reading.clock, slots, engine.marks).run(
                stored, used
            )

    async def claim(self, event: int, connection: int) -> None:
        engine = self.reading.node.engine
        delivery = await self._delivery(event, connection)
        used = await engine.sources.find(self.source.source_id)
        in_use = None if used is None else used.connection(self.connections[connection].connection_id)
        if delivery is None or delivery.state not in OPEN_STATES or used is None or in_use is None:
            return
        opened = OpenEvent(await self.reading.stored(self.events[event]))
        job = await engine.claims.claim(opened, delivery, used, in_use)
        assert job is not None
        self._kill_holder(delivery)
        self.jobs.append(job)

    async def succeed(self, event: int, connection: int) -> None:
        await self._end(event + connection, CallResult(200, "", 5), Succeeded())

    async def fail(self, event: int, connection: int) -> None:
        await self._end(event + connection, CallResult(500, "", 5), RetryAt(self.reading.now_ms + 50, True))

    async def own_fault(self, event: int, connection: int) -> None:
        await self._end(event + connection, INTERRUPTED, RetryAt(self.reading.now_ms, False))

    async def give_up(self, event: int, connection: int) -> None:
        await self._end(event + connection, CallResult(500, "", 5), GaveUp(GaveUpReason.ATTEMPTS_EXHAUSTED))

    async def replay(self, event: int, _: int) -> None:
        await self._replay(event, None)

    async def replay_one(self, event: int, connection: int) -> None:
        await self._replay(event, self.connections[connection].connection_id)

    async def replay_many(self, event: int, connection: int) -> None:
        status = ["failed", "delivered", "retrying", None][(event + connection) % 4]
        begun = await self.reading.replay(self.reading.owner, self.source, status=status)
        await self.reading.work(begun["replay_id"])
        assert (await self.reading.progress(begun["replay_id"]))["state"] == "done"

    async def park(self, event: int, connection: int) -> None:
        delivery = await self._delivery(event, connection)
        if delivery is not None and delivery.state in OPEN_STATES:
            await self._move(event, delivery, held(delivery, self.reading.now_ms))
            self._kill_holder(delivery)

    async def unpark(self, event: int, connection: int) -> None:
        delivery = await self._delivery(event, connection)
        if delivery is not None and delivery.state is DeliveryState.HELD:
            await self._move(event, delivery, released(delivery, self.reading.now_ms))

    async def delete(self, event: int, connection: int) -> None:
        """The last one stays; what is open at the others is cancelled when somebody comes to it."""
        if connection == 0:
            return
        await self.reading.items.transact([connection_deleted(self.connections[connection], "")])
        self.reading.node.engine.sources.forget(self.source.source_id)
        delivery = await self._delivery(event, connection)
        if delivery is not None and delivery.state in OPEN_STATES:
            await self._move(event, delivery, without_call(delivery, DeliveryState.CANCELLED, "gone"))

    # --- within ---

    async def _delivery(self, event: int, connection: int) -> Delivery | None:
        found = await self.reading.world.deliveries(self.events[event].event_id)
        wanted = self.connections[connection].connection_id
        return next((each for each in found if each.connection_id == wanted), None)

    def _kill_holder(self, delivery: Delivery) -> None:
        """Who has called in this generation until now: it is taken over when its lease has ended."""
        whose = (delivery.event_id, delivery.connection_id, delivery.generation)
        self.jobs = [
            job
            for job in self.jobs
            if (job.delivery.event_id, job.delivery.connection_id, job.delivery.generation) != whose
        ]

    async def _move(self, event: int, before: Delivery, after: Delivery) -> None:
        opened = OpenEvent(await self.reading.stored(self.events[event]))
        assert await self.reading.node.engine.finisher.finish(opened, before, after)

    async def _end(self, which: int, result: CallResult, decision: Decision) -> None:
        """Of a call that was made some time ago: others may have taken the delivery since."""
        if not self.jobs:
            return
        job = self.jobs.pop(which % len(self.jobs))
        self.calls += 1
        attempt, mark = attempt_of_call(job.delivery, f"https://call{self.calls}", result, 0)
        event = next(n for n, each in enumerate(self.events) if each.event_id == job.delivery.event_id)
        connection = [each.connection_id for each in self.connections].index(job.delivery.connection_id)
        before = await self._delivery(event, connection)
        assert before is not None
        is_ours = before.fence == job.delivery.fence and before.state == job.delivery.state
        after = after_call(job.delivery, decision)
        ended = await self.reading.node.engine.finisher.finish(
            job.opened, job.delivery, after, Kept(attempt, mark)
        )
        assert ended is is_ours
        assert await self._delivery(event, connection) == (after if is_ours else before)

    async def _replay(self, event: int, connection_id: str | None) -> None:
        event_id = self.events[event].event_id
        try:
            once = await self.reading.services.replays.replay_event(
                self.principal, event_id, connection_id, None
            )
        except (Conflict, NotFound) as refused:
            assert refused.code in ("event_not_sent_yet", "connection_not_found")
            return
        for each in await self.reading.world.deliveries(event_id):
            if each.connection_id in once.value.connections:
                assert (each.generation, each.attempts) == (once.value.generation, 0)
                assert each.state is DeliveryState.PENDING
            else:
                assert each.generation != once.value.generation


class Budget(TypedDict):
    deadline: None
    report_multiple_bugs: bool
    suppress_health_check: list[HealthCheck]
    phases: list[Phase]


# Each try is a conversation with a server: one failure, made small, is enough.
BUDGET: Budget = {
    "deadline": None,
    "report_multiple_bugs": False,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    "phases": [Phase.reuse, Phase.generate, Phase.shrink],
}


async def live(reading: Reading, steps: list[Step]) -> None:
    run = await Run.begin(reading)
    for step in steps:
        await run.take(step)


@settings(max_examples=20, **BUDGET)
@given(steps=st.lists(STEPS, min_size=5, max_size=15))
async def test_counts_are_a_recount_after_any_steps(reading: Reading, steps: list[Step]) -> None:
    await live(reading, steps)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=1500, **BUDGET)
@given(steps=st.lists(STEPS, min_size=20, max_size=40))
async def test_counts_are_a_recount_after_any_steps_for_long(reading: Reading, steps: list[Step]) -> None:
    await live(reading, steps)
