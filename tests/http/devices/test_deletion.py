from __future__ import annotations

import asyncio

from tests.support.asgi_client import Answer
from tests.support.devices import DEVICES, Served, new_batch_id, new_hardware_id, reading

from crossdock.devices.service.purge import PAGE, Purge
from crossdock.devices.service.registration import GONE_AFTER_MS, PURGED_AT_ONCE_MAX
from crossdock.devices.store import BATCHES, batch_key, device_deleted
from crossdock.devices.store import DEVICES as DEVICES_TABLE

GONE_AFTER_SECONDS = GONE_AFTER_MS / 1000


async def delete(served: Served, hardware_id: str) -> Answer:
    return await served.operator.request("DELETE", f"{DEVICES}/{hardware_id}")


async def finish(served: Served, *, after_seconds: float = GONE_AFTER_SECONDS) -> int:
    served.clock.advance(seconds=after_seconds)
    return await served.node.services.devices.finish_deletions()


async def test_a_deleted_device_is_gone_at_once_for_everybody(lagging: Served) -> None:
    hardware_id = await lagging.device()
    await lagging.verdict(hardware_id, reading(lagging.now_ms))
    assert (await delete(lagging, hardware_id)).status == 204
    for method, path in [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/readings"),
        ("GET", "/readings?bucket=1h"),
        ("GET", "/readings/latest"),
        ("GET", "/gaps?expected_seconds=60"),
    ]:
        json = {"friendly_name": "x"} if method == "PATCH" else None
        answer = await lagging.operator.request(method, f"{DEVICES}/{hardware_id}{path}", json=json)
        assert (answer.status, answer.code) == (404, "device_not_found"), (method, path)
    listed = await lagging.operator.get(DEVICES)
    assert listed.json()["data"] == []
    answer = await lagging.send(hardware_id, reading(lagging.now_ms))
    assert (answer.status, answer.code) == (404, "device_not_registered")


async def test_an_unknown_device_can_not_be_deleted(shared: Served) -> None:
    answer = await delete(shared, new_hardware_id())
    assert (answer.status, answer.code) == (404, "device_not_found")


async def test_its_readings_and_their_markers_are_purged_and_nobody_elses(shared: Served) -> None:
    hardware_id, other = await shared.device(), await shared.device()
    batch_ids = [new_batch_id() for _ in range(60)]
    kept = reading(shared.now_ms)
    await shared.verdict(other, kept)
    for start in range(0, 60, 20):
        await shared.verdict(
            hardware_id,
            *(
                reading(shared.now_ms - n, batch_id)
                for batch_id in batch_ids[start : start + 20]
                for n in range(5)
            ),
        )
    assert len(await shared.rows(hardware_id)) == 300
    await delete(shared, hardware_id)
    assert await shared.rows(hardware_id) == []
    markers = await shared.items.get_many(BATCHES, [batch_key(each) for each in batch_ids])
    assert markers == [None] * 60
    assert len(await shared.rows(other)) == 1
    assert await shared.stored(BATCHES, batch_key(kept["batch_id"])) is not None


async def test_a_marker_that_meanwhile_is_another_devices_stays(served: Served) -> None:
    first, second, batch_id = await served.device(), await served.device(), new_batch_id()
    await served.verdict(first, reading(served.now_ms, batch_id))
    served.clock.advance(seconds=31 * 86_400)
    await served.verdict(second, reading(served.now_ms, batch_id))
    await delete(served, first)
    assert await served.rows(first) == []
    marker = await served.stored(BATCHES, batch_key(batch_id))
    assert marker is not None
    assert marker["hardware_id"] == second


async def test_what_is_too_much_for_the_request_is_left_to_the_role(served: Served) -> None:
    hardware_id = await served.device()
    count = PURGED_AT_ONCE_MAX + PAGE
    for start in range(0, count, 100):
        await served.verdict(
            hardware_id,
            *(reading(served.now_ms - start - n, f"{hardware_id}_{start}_{n % 2}") for n in range(100)),
        )
    await delete(served, hardware_id)
    assert 0 < len(await served.rows(hardware_id)) <= count - PURGED_AT_ONCE_MAX
    assert await served.node.services.devices.finish_deletions() == 0
    assert await served.rows(hardware_id) == []


async def test_readings_let_in_by_another_process_that_did_not_know_yet_are_purged_too(
    served: Served,
) -> None:
    hardware_id, other_node, key = await served.device(), served.another_node(), await served.any_key()
    await other_node.send(key, hardware_id, reading(served.now_ms))
    await delete(served, hardware_id)
    late = reading(served.now_ms)
    assert (await other_node.send(key, hardware_id, late)).status == 200
    served.clock.advance(seconds=5)
    answer = await other_node.send(key, hardware_id, reading(served.now_ms))
    assert (answer.status, answer.code) == (404, "device_not_registered")
    assert await finish(served) == 1
    assert await served.rows(hardware_id) == []
    assert await served.stored(BATCHES, batch_key(late["batch_id"])) is None


async def test_the_record_goes_when_no_process_can_know_the_device_any_more(lagging: Served) -> None:
    hardware_id = await lagging.device()
    await delete(lagging, hardware_id)
    await asyncio.sleep(0.6)  # an index lags half a second: a round of the role may come too early
    assert await finish(lagging, after_seconds=GONE_AFTER_SECONDS - 1) == 0
    assert await lagging.stored(DEVICES_TABLE, {"hardware_id": hardware_id}) is not None
    assert await finish(lagging, after_seconds=1) == 1
    assert await lagging.stored(DEVICES_TABLE, {"hardware_id": hardware_id}) is None
    assert await finish(lagging) == 0


async def test_a_clock_that_goes_back_only_makes_the_deletion_take_longer(served: Served) -> None:
    hardware_id = await served.device()
    await delete(served, hardware_id)
    served.clock.set_wall_clock(served.now_ms - 3_600_000)
    assert await finish(served) == 0
    assert await finish(served, after_seconds=3_600) == 1
    assert await served.stored(DEVICES_TABLE, {"hardware_id": hardware_id}) is None


async def test_registering_again_waits_for_the_end_of_the_deletion_and_begins_anew(served: Served) -> None:
    hardware_id = await served.device(friendly_name="old")
    first = (await served.operator.get(f"{DEVICES}/{hardware_id}")).json()
    sent = [reading(served.now_ms - n, new_batch_id()) for n in range(3)]
    await served.verdict(hardware_id, *sent)
    await delete(served, hardware_id)
    answer = await served.register(hardware_id)
    assert (answer.status, answer.code) == (409, "device_being_deleted")
    assert answer.header("retry-after") == str(int(GONE_AFTER_SECONDS))
    assert await finish(served) == 1
    answer = await served.register(hardware_id)
    assert answer.status == 201
    assert answer.json()["friendly_name"] is None
    assert answer.json()["confirmation_id"] != first["confirmation_id"]
    verdict = await served.verdict(hardware_id, *sent)
    assert verdict["acknowledged"] == [each["batch_id"] for each in sent]
    assert len(await served.rows(hardware_id)) == 3


async def test_a_purge_that_was_left_behind_takes_nothing_from_the_device_that_came_back(
    served: Served,
) -> None:
    hardware_id = await served.device()
    sent = reading(served.now_ms)
    await served.verdict(hardware_id, sent)
    await Purge(served.items).run(hardware_id)
    assert len(await served.rows(hardware_id)) == 1
    assert await served.stored(BATCHES, batch_key(sent["batch_id"])) is not None
    await served.items.transact([device_deleted(hardware_id, served.now_ms)])
    await Purge(served.items).run(hardware_id)
    assert await served.rows(hardware_id) == []


async def test_two_processes_may_finish_deletions_at_once(served: Served) -> None:
    for _ in range(3):
        hardware_id = await served.device()
        await served.verdict(hardware_id, *(reading(served.now_ms - n) for n in range(100)))
        await delete(served, hardware_id)
    served.clock.advance(seconds=GONE_AFTER_SECONDS)
    nodes = [served.node, served.another_node(await served.open_items())]
    await asyncio.gather(*(node.services.devices.finish_deletions() for node in nodes))
    assert await served.stored(DEVICES_TABLE, {"hardware_id": hardware_id}) is None
    assert (await served.register(hardware_id)).status == 201
