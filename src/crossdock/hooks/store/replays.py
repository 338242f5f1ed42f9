"""Replays: one event's deliveries begun anew, and jobs that do it for many (`PK REPLAY#{id}, SK REPLAY`).

A job is listed with its source's (GSI1 `REPLAYS#{sourceId}`, by when it was made), and as long as it runs
with all that run (GSI2 `REPLAYING`). Its progress moves on only from the cursor that it was read with, so
that no page of events is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossdock.engines.items.conditions import Absent, Condition, Exists, all_of, equals
from crossdock.engines.items.port import Add, Item, Put, Query, Remove, Set, Update, Value, Write
from crossdock.hooks.model import Event, EventStatus
from crossdock.hooks.rules.progress import moved
from crossdock.hooks.rules.replaying import Progress, Replay, ReplayState, Restart
from crossdock.hooks.store.attributes import integer_of, present, text_of
from crossdock.hooks.store.deliveries import delivery_changed, new_delivery
from crossdock.hooks.store.events import event_moved
from crossdock.hooks.store.tables import EVENTS

REPLAYING = "REPLAYING"
KEPT_SECONDS = 30 * 86_400


def replay_key(replay_id: str) -> dict[str, str]:
    return {"PK": f"REPLAY#{replay_id}", "SK": "REPLAY"}


# --- one event's deliveries ------------------------------------------------------------------------


def event_replayed(event: Event, restarts: Sequence[Restart], now_ms: int) -> list[Write]:
    """All of them or none, with the event's counts; on condition that everything is as it was read."""
    counts: Mapping[str, int] = event.counts
    writes: list[Write] = []
    for restart in restarts:
        before = restart.before
        counts = moved(counts, None if before is None else before.state, restart.after.state)
        writes.append(
            new_delivery(restart.after) if before is None else delivery_changed(before, restart.after)
        )
    if counts != event.counts:
        writes.append(event_moved(event, counts, now_ms))
    return writes


# --- jobs ------------------------------------------------------------------------------------------


def new_replay(replay: Replay) -> Put:
    item: Item = {
        **replay_key(replay.replay_id),
        "GSI1PK": f"REPLAYS#{replay.source_id}",
        "GSI1SK": _listed_by(replay.created_at, replay.replay_id),
        "GSI2PK": REPLAYING,
        "GSI2SK": replay.replay_id,
        "replayId": replay.replay_id,
        "sourceId": replay.source_id,
        "userId": replay.user_id,
        "generation": replay.generation,
        "state": replay.state.value,
        "createdAt": replay.created_at,
        "fromMs": replay.from_ms,
        "toMs": replay.to_ms,
        "lookedAt": replay.looked_at,
        "replayed": replay.replayed,
        "skipped": replay.skipped,
        "deliveries": replay.deliveries,
        "expiresAt": replay.created_at // 1000 + KEPT_SECONDS,
        **present(
            {
                "status": None if replay.status is None else replay.status.value,
                "connectionId": replay.connection_id,
            }
        ),
    }
    return Put(EVENTS, item, Absent("PK"))


def _listed_by(created_at: int, replay_id: str) -> str:
    return f"{created_at:013d}#{replay_id}"


def replay_of(item: Mapping[str, Value]) -> Replay:
    status = text_of(item, "status")
    return Replay(
        replay_id=str(item["replayId"]),
        source_id=str(item["sourceId"]),
        user_id=str(item["userId"]),
        generation=str(item["generation"]),
        state=ReplayState(str(item["state"])),
        created_at=integer_of(item, "createdAt"),
        from_ms=integer_of(item, "fromMs"),
        to_ms=integer_of(item, "toMs"),
        status=None if status is None else EventStatus(status),
        connection_id=text_of(item, "connectionId"),
        cursor=text_of(item, "cursor"),
        looked_at=integer_of(item, "lookedAt"),
        replayed=integer_of(item, "replayed"),
        skipped=integer_of(item, "skipped"),
        deliveries=integer_of(item, "deliveries"),
        finished_at=None if item.get("finishedAt") is None else integer_of(item, "finishedAt"),
        reason=text_of(item, "reason"),
    )


def replays_of_source(source_id: str, limit: int, after: tuple[int, str] | None) -> Query:
    """Keys, newest first; `after`: when the last one of the page before was made, and its id."""
    partition = f"REPLAYS#{source_id}"
    cursor = None
    if after is not None:
        cursor = {**replay_key(after[1]), "GSI1PK": partition, "GSI1SK": _listed_by(*after)}
    return Query(EVENTS, partition, index="GSI1", descending=True, limit=limit, after=cursor)


def running_replays(limit: int) -> Query:
    """Keys."""
    return Query(EVENTS, REPLAYING, index="GSI2", limit=limit)


def replay_advanced(replay: Replay, progress: Progress, cursor: str) -> Update:
    """On condition that nobody else has, since it was read. One that was cancelled meanwhile counts this
    page still: its events were replayed."""
    at_cursor: Condition = Absent("cursor") if replay.cursor is None else equals("cursor", replay.cursor)
    changes = (
        Set("cursor", cursor),
        Add("lookedAt", progress.looked_at),
        Add("replayed", progress.replayed),
        Add("skipped", progress.skipped),
        Add("deliveries", progress.deliveries),
    )
    return Update(EVENTS, replay_key(replay.replay_id), changes, all_of(Exists("PK"), at_cursor))


def replay_ended(replay_id: str, state: ReplayState, now_ms: int, reason: str | None = None) -> Update:
    """On condition that it runs."""
    changes = (
        Set("state", state.value),
        Set("finishedAt", now_ms),
        Remove("reason") if reason is None else Set("reason", reason),
        Remove("GSI2PK"),
        Remove("GSI2SK"),
    )
    return Update(EVENTS, replay_key(replay_id), changes, equals("state", ReplayState.RUNNING.value))
