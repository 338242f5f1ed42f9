"""A connection's signing secret: ours to make, shown once, sealed at rest, replaced with a grace."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from tests.support.hooks_sources import CONNECTIONS, SOURCES, Served, shown

from crossdock.kit.clock import rfc3339
from crossdock.kit.signing import key_of_secret

DAY_MS = 86_400_000


async def secrets_of(served: Served, source_id: str, connection_id: str) -> list[str]:
    return [secret for secret, _ in await served.connection_secrets(source_id, connection_id)]


async def test_a_secret_is_shown_once_and_its_text_is_nowhere_in_what_is_stored_or_logged(
    shared: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        client, source_id = await shared.any_source()
        made = await shared.connection(client, source_id)
        path = f"{CONNECTIONS}/{made['connection_id']}"
        rotated = shown(await client.post(f"{path}/rotate-secret", {}))
        answers = [
            await client.get(path),
            await client.request("PATCH", path, json={"name": "new"}),
            await client.get(f"{SOURCES}/{source_id}/connections"),
            await client.post(f"{path}/pause"),
        ]
    stored = msgspec.json.encode(await shared.connection_item(source_id, made["connection_id"])).decode()
    secrets = [rotated["signing_secret"], made["signing_secret"]]
    for secret in secrets:
        bare = secret.removeprefix("whsec_")
        assert bare not in stored + caplog.text + "".join(answer.body.decode() for answer in answers)
    assert await secrets_of(shared, source_id, made["connection_id"]) == secrets


async def test_the_old_secret_signs_too_for_a_day_unless_told_otherwise(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    [old] = await secrets_of(shared, source_id, connection_id)
    path, now_ms = f"{CONNECTIONS}/{connection_id}/rotate-secret", shared.now_ms
    rotated = shown(await client.post(path, {}))
    assert len(key_of_secret(rotated["signing_secret"])) == 32
    assert rotated["previous_secrets_valid_until"] == [rfc3339(now_ms + DAY_MS)]
    assert await shared.connection_secrets(source_id, connection_id) == [
        (rotated["signing_secret"], None),
        (old, now_ms + DAY_MS),
    ]
    last = shown(await client.post(path, {"grace_seconds": 0}))
    assert await shared.connection_secrets(source_id, connection_id) == [
        (last["signing_secret"], None),
        (old, now_ms + DAY_MS),
    ]


async def test_a_rotated_connection_is_shown_as_it_is(shared: Served) -> None:
    client, _, connection_id = await shared.any_connection(headers={"X-A": "b"}, max_in_flight=3)
    shared.clock.advance(seconds=1)
    rotated = shown(await client.post(f"{CONNECTIONS}/{connection_id}/rotate-secret", {}))
    del rotated["signing_secret"]
    assert rotated == shown(await client.get(f"{CONNECTIONS}/{connection_id}"))
    assert rotated["updated_at"] == rfc3339(shared.now_ms)


async def test_at_most_five_earlier_secrets_are_kept_the_newest(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    made = await secrets_of(shared, source_id, connection_id)
    for _ in range(8):
        answer = await client.post(f"{CONNECTIONS}/{connection_id}/rotate-secret", {"grace_seconds": 604_800})
        made.insert(0, shown(answer)["signing_secret"])
    assert await secrets_of(shared, source_id, connection_id) == made[:6]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"grace_seconds": -1}, ("grace_seconds", "out_of_range")),
        ({"grace_seconds": 604_801}, ("grace_seconds", "out_of_range")),
        ({"grace_seconds": "1"}, ("grace_seconds", "wrong_type")),
        ({"signing_secret": "whsec_x"}, ("signing_secret", "unknown_field")),
    ],
)
async def test_a_rotation_that_can_not_be_is_422_and_changes_nothing(
    shared: Served, body: dict[str, Any], expected: tuple[str, str]
) -> None:
    client, source_id, connection_id = await shared.any_connection()
    before = await secrets_of(shared, source_id, connection_id)
    answer = await client.post(f"{CONNECTIONS}/{connection_id}/rotate-secret", body)
    assert (answer.status, answer.fields) == (422, [expected])
    assert await secrets_of(shared, source_id, connection_id) == before


async def test_a_rotation_repeated_under_its_idempotency_key_is_done_once(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    path, headers = f"{CONNECTIONS}/{connection_id}/rotate-secret", {"idempotency-key": "mine"}
    first, again = [await client.post(path, {}, headers=headers) for _ in range(2)]
    assert (first.status, again.status, again.json()) == (200, 200, first.json())
    assert len(await secrets_of(shared, source_id, connection_id)) == 2
    shared.clock.advance(seconds=600)
    masked = await client.post(path, {}, headers=headers)
    assert masked.json() == first.json() | {"signing_secret": "***"}


async def test_two_rotations_at_once_under_one_idempotency_key_are_one(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    path, headers = f"{CONNECTIONS}/{connection_id}/rotate-secret", {"idempotency-key": "mine"}
    answers = await asyncio.gather(*(client.post(path, {}, headers=headers) for _ in range(5)))
    assert {answer.status for answer in answers} <= {200, 409}
    shown_secrets = {answer.json()["signing_secret"] for answer in answers if answer.status == 200}
    found = await secrets_of(shared, source_id, connection_id)
    assert (shown_secrets, len(found)) == ({found[0]}, 2)


async def test_every_secret_that_was_shown_is_good_although_they_were_made_at_once(shared: Served) -> None:
    client, source_id, connection_id = await shared.any_connection()
    [first] = await secrets_of(shared, source_id, connection_id)
    path = f"{CONNECTIONS}/{connection_id}/rotate-secret"
    answers = await asyncio.gather(*(client.post(path, {}) for _ in range(5)))
    made = {shown(answer)["signing_secret"] for answer in answers}
    assert len(made) == 5
    found = await shared.connection_secrets(source_id, connection_id)
    assert {secret for secret, _ in found} == made | {first}
    assert [until is None for _, until in found] == [True] + [False] * 5
