"""Batches that come again: duplicates, conflicts, and what is left when markers are gone."""

from __future__ import annotations

from typing import Any

from tests.support.devices import DAY_MS, READINGS, Served, new_batch_id, reading

from crossdock.devices.store import BATCHES, batch_key
from crossdock.devices.store import READINGS as READINGS_TABLE


def acknowledged(*batch_ids: str) -> dict[str, Any]:
    return {"acknowledged": list(batch_ids), "duplicates": [], "rejected": []}


def duplicates(*batch_ids: str) -> dict[str, Any]:
    return {"acknowledged": [], "duplicates": list(batch_ids), "rejected": []}


def rejected(verdict: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["index"], each["code"]) for each in verdict["rejected"]]


async def test_a_batch_sent_again_is_a_duplicate_and_stored_once(shared: Served) -> None:
    hardware_id, batch_id = await shared.device(), new_batch_id()
    sent = [reading(shared.now_ms - n, batch_id) for n in range(3)]
    assert await shared.verdict(hardware_id, *sent) == acknowledged(batch_id)
    for _ in range(2):
        assert await shared.verdict(hardware_id, *sent) == duplicates(batch_id)
    assert len(await shared.rows(hardware_id)) == 3


async def test_a_request_may_hold_batches_of_every_kind(shared: Served) -> None:
    hardware_id = await shared.device()
    known, fresh, changed = new_batch_id(), new_batch_id(), new_batch_id()
    now_ms = shared.now_ms
    await shared.verdict(hardware_id, reading(now_ms, known), reading(now_ms, changed))
    verdict = await shared.verdict(
        hardware_id,
        reading(now_ms, changed, sensors={}),
        reading(now_ms, fresh),
        "no reading",
        reading(now_ms, known),
    )
    assert (verdict["acknowledged"], verdict["duplicates"]) == ([fresh], [known])
    assert rejected(verdict) == [(0, "batch_conflict"), (2, "invalid_reading")]


async def test_other_content_under_a_known_batch_id_is_a_conflict_and_changes_nothing(shared: Served) -> None:
    hardware_id, batch_id, now_ms = await shared.device(), new_batch_id(), shared.now_ms
    sent = [reading(now_ms - 1, batch_id), reading(now_ms, batch_id)]
    await shared.verdict(hardware_id, *sent)
    stored = await shared.rows(hardware_id)
    others = [
        [reading(now_ms - 1, batch_id, sensors={"temp_c": 21.6}), sent[1]],
        [sent[0]],
        [*sent, reading(now_ms - 2, batch_id)],
        sent[::-1],
        [sent[0] | {"timestamp_ms": now_ms - 5}, sent[1]],
        [*sent, {"batch_id": batch_id}],
    ]
    for other in others:
        verdict = await shared.verdict(hardware_id, *other)
        assert (verdict["acknowledged"], verdict["duplicates"]) == ([], []), other
        assert (0, "batch_conflict") in rejected(verdict)
        assert len(verdict["rejected"]) == len(other)
    assert await shared.rows(hardware_id) == stored


async def test_the_same_content_with_other_keys_order_and_white_space_is_a_duplicate(shared: Served) -> None:
    hardware_id, batch_id, now_ms = await shared.device(), new_batch_id(), shared.now_ms
    text = (
        '{{"readings":[{{ "sensors": {{"b":1,\n"a":2.50}}, "sensor_status": {{}}, "firmware_version": "1",'
        '"boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7","timestamp_ms":{now},"batch_id":"{batch}"}}],'
        '"hardware_id":"{device}"}}'
    )
    body = text.format(now=now_ms, batch=batch_id, device=hardware_id).encode()
    client = shared.operator.with_key(await shared.any_key())
    assert (await client.request("POST", READINGS, body=body)).json() == acknowledged(batch_id)
    again = reading(now_ms, batch_id, firmware_version="1", sensors={"a": 2.5, "b": 1}, sensor_status={})
    assert await shared.verdict(hardware_id, again) == duplicates(batch_id)


async def test_another_devices_batch_id_is_a_conflict(shared: Served) -> None:
    first, second, batch_id = await shared.device(), await shared.device(), new_batch_id()
    sent = reading(shared.now_ms, batch_id)
    await shared.verdict(first, sent)
    assert rejected(await shared.verdict(second, sent)) == [(0, "batch_conflict")]
    assert await shared.rows(second) == []


async def test_a_batch_with_good_and_bad_readings_is_answered_alike_again(shared: Served) -> None:
    hardware_id, batch_id, now_ms = await shared.device(), new_batch_id(), shared.now_ms
    bad = reading(now_ms - 1, batch_id, colour="red")
    sent = [reading(now_ms - 2, batch_id), bad, reading(now_ms, batch_id)]
    assert rejected(first := await shared.verdict(hardware_id, *sent)) == [(1, "invalid_reading")]
    assert first["acknowledged"] == [batch_id]
    again = await shared.verdict(hardware_id, *sent)
    assert again == first | {"acknowledged": [], "duplicates": [batch_id]}
    mended = [sent[0], reading(now_ms - 1, batch_id), sent[2]]
    verdict = await shared.verdict(hardware_id, *mended)
    assert rejected(verdict) == [(n, "batch_conflict") for n in range(3)]
    under_a_new_id = reading(now_ms - 1)
    assert await shared.verdict(hardware_id, under_a_new_id) == acknowledged(under_a_new_id["batch_id"])


async def test_a_batch_with_nothing_good_in_it_is_not_known_after(shared: Served) -> None:
    hardware_id, batch_id = await shared.device(), new_batch_id()
    verdict = await shared.verdict(hardware_id, reading(1, batch_id))
    assert rejected(verdict) == [(0, "timestamp_out_of_range")]
    assert await shared.stored(BATCHES, batch_key(batch_id)) is None
    assert await shared.verdict(hardware_id, reading(shared.now_ms, batch_id)) == acknowledged(batch_id)


async def test_a_reading_that_was_too_far_ahead_is_not_taken_for_stored_when_its_time_has_come(
    served: Served,
) -> None:
    hardware_id, batch_id = await served.device(), new_batch_id()
    ahead_ms = served.now_ms + DAY_MS + 60_000
    # Three, of which the last comes within the second that the marker's time leaves open.
    sent = [
        reading(served.now_ms, batch_id),
        reading(ahead_ms, batch_id),
        reading(served.now_ms + DAY_MS, batch_id),
    ]
    assert rejected(await served.verdict(hardware_id, *sent)) == [(1, "timestamp_out_of_range")]
    served.clock.advance(seconds=86_400)
    verdict = await served.verdict(hardware_id, *sent)
    assert verdict["duplicates"] == [batch_id]
    assert rejected(verdict) == [(1, "timestamp_out_of_range")]
    assert ahead_ms not in [row["timestamp_ms"] for row in await served.rows(hardware_id)]


async def test_once_its_marker_has_expired_a_batch_with_equal_rows_is_still_a_duplicate(
    served: Served,
) -> None:
    hardware_id, batch_id = await served.device(), new_batch_id()
    sent = [
        reading(served.now_ms - n, batch_id, sensors={"a": 2.0, "b": 1e20, "c": 0.1, "d": -7})
        for n in range(3)
    ]
    await served.verdict(hardware_id, *sent)
    rows = await served.rows(hardware_id)
    served.clock.advance(seconds=30 * 86_400)
    assert await served.stored(BATCHES, batch_key(batch_id)) is None
    assert await served.verdict(hardware_id, *sent) == duplicates(batch_id)
    assert await served.rows(hardware_id) == rows
    marker = await served.stored(BATCHES, batch_key(batch_id))
    assert marker is not None
    assert marker["expiration_time"] == served.now_ms // 1000 + 30 * 86_400
    assert await served.verdict(hardware_id, *sent) == duplicates(batch_id)
    assert len(await served.rows(hardware_id)) == 3


async def test_once_its_marker_has_expired_a_batch_with_other_rows_is_a_conflict(served: Served) -> None:
    hardware_id, batch_id, now_ms = await served.device(), new_batch_id(), served.now_ms
    await served.verdict(hardware_id, reading(now_ms, batch_id), reading(now_ms - 1, batch_id))
    rows = await served.rows(hardware_id)
    served.clock.advance(seconds=30 * 86_400 + 1)
    for other in (
        [reading(now_ms, batch_id, sensors={"temp_c": 1})],
        [reading(now_ms, batch_id), reading(now_ms - 2, batch_id)],
    ):
        verdict = await served.verdict(hardware_id, *other)
        assert rejected(verdict) == [(n, "batch_conflict") for n in range(len(other))]
    assert await served.rows(hardware_id) == rows
    assert await served.stored(BATCHES, batch_key(batch_id)) is None


async def test_an_expired_batch_id_may_be_used_again_for_other_times(served: Served) -> None:
    hardware_id, batch_id = await served.device(), new_batch_id()
    await served.verdict(hardware_id, reading(served.now_ms, batch_id))
    served.clock.advance(seconds=31 * 86_400)
    assert await served.verdict(hardware_id, reading(served.now_ms, batch_id)) == acknowledged(batch_id)
    assert len(await served.rows(hardware_id)) == 2


async def test_readings_past_their_retention_are_absent_and_rejected_when_they_come_again(
    served: Served,
) -> None:
    hardware_id, batch_id = await served.device(), new_batch_id()
    sent = reading(served.now_ms, batch_id)
    await served.verdict(hardware_id, sent)
    served.clock.advance(seconds=90 * 86_400)
    assert await served.rows(hardware_id) == []
    assert rejected(await served.verdict(hardware_id, sent)) == [(0, "expired")]


async def test_a_repeat_notes_activity_that_was_lost_with_the_first_answer(served: Served) -> None:
    """As after a crash between the commit and the answer: another process gets the repeat."""
    hardware_id, batch_id, key = await served.device(), new_batch_id(), await served.any_key()
    sent = reading(served.now_ms, batch_id)
    await served.verdict(hardware_id, sent)
    served.clock.advance(seconds=120)
    answer = await served.another_node().send(key, hardware_id, sent)
    assert answer.json() == duplicates(batch_id)
    shown = await served.operator.get(f"/v1/devices/{hardware_id}")
    assert shown.json()["last_seen_at"] > shown.json()["first_registered_at"]


async def test_a_reading_is_kept_as_it_was_first_stored(served: Served) -> None:
    """A repeat after a change of the device's name or of the retention overwrites nothing."""
    hardware_id, batch_id = await served.device(friendly_name="first"), new_batch_id()
    sent = reading(served.now_ms, batch_id)
    await served.verdict(hardware_id, sent)
    key = {"hardware_id": hardware_id, "ts_batch": f"{served.now_ms:013}#{batch_id}"}
    stored = await served.stored(READINGS_TABLE, key)
    assert stored is not None
    await served.operator.request("PATCH", f"/v1/devices/{hardware_id}", json={"friendly_name": "other"})
    served.clock.advance(seconds=31 * 86_400)
    other_node = served.another_node(retention_days=365)
    answer = await other_node.send(await served.any_key(), hardware_id, sent)
    assert answer.json() == duplicates(batch_id)
    assert await served.stored(READINGS_TABLE, key) == stored
