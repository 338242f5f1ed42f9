"""A source's signing secrets: sealed at rest, shown never, replaced with a grace."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from tests.support.hooks_sources import SOURCES, Served, shown

from crossdock.kit.clock import rfc3339

DAY_MS = 86_400_000


async def test_a_secrets_text_is_nowhere_in_what_is_stored_answered_or_logged(
    shared: Served, caplog: pytest.LogCaptureFixture
) -> None:
    user_id, client = await shared.user_and_client()
    secrets = ["whsec_f1rst", "whsec_sec0nd", "whsec_th1rd"]
    with caplog.at_level(logging.DEBUG):
        made = await shared.source(client, signing_secret=secrets[0])
        path = f"{SOURCES}/{made['source_id']}"
        answers = [
            await client.post(f"{path}/rotate-secret", {"signing_secret": secrets[1]}),
            await client.get(path),
            await client.request("PATCH", path, json={"signing_secret": secrets[2]}),
            await client.get(SOURCES),
        ]
        stored = [await shared.source_item(user_id, made["source_id"])]
        await client.post(f"{path}/rotate-secret", {"signing_secret": secrets[0]})
        stored.append(await shared.source_item(user_id, made["source_id"]))
    text = caplog.text + str(made) + "".join(answer.body.decode() for answer in answers)
    for secret in secrets:
        assert secret not in text
        assert secret not in msgspec.json.encode(stored).decode()


async def test_the_secret_until_now_stays_good_for_a_day_unless_told_otherwise(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    path = f"{SOURCES}/{source_id}/rotate-secret"
    now_ms = shared.now_ms
    rotated = shown(await client.post(path, {"signing_secret": "two"}))
    assert rotated["has_secret"] is True
    assert rotated["previous_secrets_valid_until"] == [rfc3339(now_ms + DAY_MS)]
    assert await shared.source_secrets(user_id, source_id) == [("two", None), ("one", now_ms + DAY_MS)]
    shown(await client.post(path, {"signing_secret": "three", "grace_seconds": 60}))
    assert await shared.source_secrets(user_id, source_id) == [
        ("three", None),
        ("two", now_ms + 60_000),
        ("one", now_ms + DAY_MS),
    ]


async def test_without_grace_the_old_secret_ends_at_once(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    body = {"signing_secret": "two", "grace_seconds": 0}
    rotated = shown(await client.post(f"{SOURCES}/{source_id}/rotate-secret", body))
    assert rotated["previous_secrets_valid_until"] == []
    assert await shared.source_secrets(user_id, source_id) == [("two", None)]


async def test_an_ended_secret_is_dropped_at_the_next_rotation_and_not_shown(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    path = f"{SOURCES}/{source_id}"
    shown(await client.post(f"{path}/rotate-secret", {"signing_secret": "two", "grace_seconds": 1}))
    shared.clock.advance(seconds=1)
    assert shown(await client.get(path))["previous_secrets_valid_until"] == []
    shown(await client.post(f"{path}/rotate-secret", {"signing_secret": "three"}))
    assert [secret for secret, _ in await shared.source_secrets(user_id, source_id)] == ["three", "two"]


async def test_at_most_five_earlier_secrets_are_kept_the_newest(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="s0"))["source_id"]
    for number in range(1, 9):
        body = {"signing_secret": f"s{number}", "grace_seconds": 604_800}
        shown(await client.post(f"{SOURCES}/{source_id}/rotate-secret", body))
    found = [secret for secret, _ in await shared.source_secrets(user_id, source_id)]
    assert found == ["s8", "s7", "s6", "s5", "s4", "s3"]


async def test_a_source_without_a_secret_gets_its_first_by_rotation(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    rotated = shown(await client.post(f"{SOURCES}/{source_id}/rotate-secret", {"signing_secret": "one"}))
    assert (rotated["has_secret"], rotated["previous_secrets_valid_until"]) == (True, [])
    assert await shared.source_secrets(user_id, source_id) == [("one", None)]


@pytest.mark.parametrize(("secret", "left"), [("new", [("new", None)]), (None, [])])
async def test_a_secret_that_is_patched_ends_all_others_at_once(
    shared: Served, secret: str | None, left: list[Any]
) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    path = f"{SOURCES}/{source_id}"
    shown(await client.post(f"{path}/rotate-secret", {"signing_secret": "two"}))
    shown(await client.request("PATCH", path, json={"signing_secret": secret}))
    assert await shared.source_secrets(user_id, source_id) == left


async def test_a_change_of_something_else_leaves_the_secrets_as_they_are(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    path = f"{SOURCES}/{source_id}"
    shown(await client.post(f"{path}/rotate-secret", {"signing_secret": "two"}))
    before = await shared.source_secrets(user_id, source_id)
    shown(await client.request("PATCH", path, json={"name": "new", "provider": "github"}))
    assert await shared.source_secrets(user_id, source_id) == before


async def test_the_algorithm_follows_the_provider_the_settings_and_the_secret(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, provider="standard-webhooks"))["source_id"]
    public_key = "whpk_" + "A" * 43 + "="
    custom = {"header": "X-Signature", "algorithm": "sha1"}
    seen = []
    for changed in (
        {},
        {"signing_secret": public_key},
        {"provider": "twilio", "signing_secret": "x"},
        {"provider": "custom", "signing": custom},
        {"signing": custom | {"algorithm": "sha512"}},
    ):
        shown(await client.request("PATCH", f"{SOURCES}/{source_id}", json=changed))
        seen.append((await shared.source_item(user_id, source_id))["signingAlgorithm"])
    assert seen == ["hmac-sha256", "ed25519", "hmac-sha1", "hmac-sha1", "hmac-sha512"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ("signing_secret", "required")),
        ({"signing_secret": ""}, ("signing_secret", "unusable_secret")),
        ({"signing_secret": None}, ("signing_secret", "wrong_type")),
        ({"signing_secret": "x", "grace_seconds": -1}, ("grace_seconds", "out_of_range")),
        ({"signing_secret": "x", "grace_seconds": 604_801}, ("grace_seconds", "out_of_range")),
        ({"signing_secret": "x", "grace_seconds": 1.5}, ("grace_seconds", "wrong_type")),
        ({"signing_secret": "x", "grace": 1}, ("grace", "unknown_field")),
    ],
)
async def test_a_rotation_that_can_not_be_is_422_and_changes_nothing(
    shared: Served, body: dict[str, Any], expected: tuple[str, str]
) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    answer = await client.post(f"{SOURCES}/{source_id}/rotate-secret", body)
    assert (answer.status, answer.fields) == (422, [expected])
    assert await shared.source_secrets(user_id, source_id) == [("one", None)]


async def test_a_rotation_needs_a_secret_of_the_provider(shared: Served) -> None:
    client, source_id = await shared.any_source()
    shown(await client.request("PATCH", f"{SOURCES}/{source_id}", json={"provider": "discord"}))
    answer = await client.post(f"{SOURCES}/{source_id}/rotate-secret", {"signing_secret": "no key"})
    assert (answer.status, answer.fields) == (422, [("signing_secret", "unusable_secret")])


async def test_a_rotation_repeated_under_its_idempotency_key_is_done_once(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="one"))["source_id"]
    body, headers = {"signing_secret": "two"}, {"idempotency-key": "mine"}
    path = f"{SOURCES}/{source_id}/rotate-secret"
    first = await client.post(path, body, headers=headers)
    again = await client.post(path, body, headers=headers)
    assert (first.status, again.status, again.json()) == (200, 200, first.json())
    assert again.header("idempotency-replayed") == "true"
    assert [secret for secret, _ in await shared.source_secrets(user_id, source_id)] == ["two", "one"]


async def test_two_rotations_at_once_lose_no_secret(shared: Served) -> None:
    """Whoever comes second replaces the first one's, which stays good like any other."""
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client, signing_secret="old"))["source_id"]
    path = f"{SOURCES}/{source_id}/rotate-secret"
    answers = await asyncio.gather(
        *(client.post(path, {"signing_secret": f"new{number}"}) for number in range(4))
    )
    assert [answer.status for answer in answers] == [200] * 4
    found = await shared.source_secrets(user_id, source_id)
    assert {secret for secret, _ in found} == {"old", "new0", "new1", "new2", "new3"}
    assert found[-1][0] == "old"
    assert [until is None for _, until in found] == [True, False, False, False, False]


async def test_a_provider_and_its_settings_changed_at_once_never_end_up_unfit(shared: Served) -> None:
    """Each change is checked against what it leaves as it is."""
    custom = {"header": "X-Signature"}
    for _ in range(5):
        client, source_id = await shared.any_source()
        path = f"{SOURCES}/{source_id}"
        answers = await asyncio.gather(
            client.request("PATCH", path, json={"provider": "custom", "signing": custom}),
            client.request("PATCH", path, json={"provider": "discord"}),
            client.request("PATCH", path, json={"signing_secret": "no key of discord"}),
        )
        assert {answer.status for answer in answers} <= {200, 422}
        ended = shown(await client.get(path))
        assert (ended["signing"] is not None) == (ended["provider"] == "custom")
        assert not (ended["provider"] == "discord" and ended["has_secret"])
