"""Many at once: the bound on connections is exact, and what is deleted stays so."""

from __future__ import annotations

import asyncio

from tests.support.asgi_client import Answer, AsgiClient
from tests.support.hooks_sources import CONNECTIONS, GOOD_URL, SOURCES, Served, shown

from crossdock.engines.items.port import Query
from crossdock.hooks.model import CONNECTIONS_MAX
from crossdock.hooks.store.tables import MAIN

BODY = {"name": "billing", "destination_url": GOOD_URL}


async def connect(client: AsgiClient, source_id: str) -> Answer:
    return await client.post(f"{SOURCES}/{source_id}/connections", BODY)


async def live_connections(served: Served, source_id: str) -> list[str]:
    """As the table has them."""
    page = await served.items.query(Query(MAIN, f"SRC#{source_id}", limit=1000))
    assert page.cursor is None
    return [str(item["connectionId"]) for item in page.items if item["status"] != "deleted"]


async def test_of_60_connections_made_at_once_exactly_50_are(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    answers = await asyncio.gather(*(connect(client, source_id) for _ in range(60)))
    assert sorted(answer.status for answer in answers) == [201] * 50 + [409] * 10
    assert {answer.code for answer in answers if answer.status == 409} == {"too_many_connections"}
    made = {answer.json()["connection_id"] for answer in answers if answer.status == 201}
    assert set(await live_connections(shared, source_id)) == made
    assert (await shared.source_item(user_id, source_id))["connectionCount"] == CONNECTIONS_MAX


async def test_the_count_agrees_with_a_recount_however_many_are_made_and_deleted_at_once(
    shared: Served,
) -> None:
    user_id, client = await shared.user_and_client()
    source_id = (await shared.source(client))["source_id"]
    made = [shown(await connect(client, source_id), 201)["connection_id"] for _ in range(10)]

    async def remove(connection_id: str) -> Answer:
        return await client.request("DELETE", f"{CONNECTIONS}/{connection_id}")

    removing = [remove(connection_id) for connection_id in made for _ in range(2)]
    answers = await asyncio.gather(*removing, *(connect(client, source_id) for _ in range(20)))
    assert sorted(answer.status for answer in answers[:20]) == [204] * 10 + [404] * 10
    assert [answer.status for answer in answers[20:]] == [201] * 20
    item = await shared.source_item(user_id, source_id)
    assert item["connectionCount"] == len(await live_connections(shared, source_id)) == 20


async def test_a_source_deleted_while_connections_are_made_leaves_none(shared: Served) -> None:
    for _ in range(3):
        user_id, client = await shared.user_and_client()
        source_id = (await shared.source(client))["source_id"]
        for _ in range(3):
            await connect(client, source_id)
        deleting = client.request("DELETE", f"{SOURCES}/{source_id}")
        answers = await asyncio.gather(
            *(connect(client, source_id) for _ in range(10)),
            deleting,
            *(connect(client, source_id) for _ in range(10)),
        )
        assert answers[10].status == 204
        assert {answer.status for answer in answers} <= {201, 204, 404}
        assert await live_connections(shared, source_id) == []
        item = await shared.source_item(user_id, source_id)
        assert (item["status"], item["connectionCount"]) == ("deleted", 0)


async def test_a_source_is_deleted_once(shared: Served) -> None:
    client, source_id, _ = await shared.any_connection()
    answers = await asyncio.gather(*(client.request("DELETE", f"{SOURCES}/{source_id}") for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [204, 404, 404, 404, 404]


async def test_what_is_deleted_while_it_is_changed_stays_deleted(shared: Served) -> None:
    client, source_id = await shared.any_source()
    for _ in range(5):
        connection_id = shown(await connect(client, source_id), 201)["connection_id"]
        path = f"{CONNECTIONS}/{connection_id}"
        answers = await asyncio.gather(
            client.request("PATCH", path, json={"name": "new", "headers": {"X-A": "b"}}),
            client.post(f"{path}/pause"),
            client.request("DELETE", path),
            client.post(f"{path}/rotate-secret", {}),
            client.post(f"{path}/resume"),
        )
        assert answers[2].status == 204
        assert {answer.status for answer in answers} <= {200, 204, 404}
        stored = await shared.connection_item(source_id, connection_id)
        assert stored["status"] == "deleted"
        assert stored.keys().isdisjoint({"signingSecret", "previousSecrets", "headers"})
    path = f"{SOURCES}/{source_id}"
    _, deleted, _, _ = await asyncio.gather(
        client.request("PATCH", path, json={"name": "new", "signing_secret": "x"}),
        client.request("DELETE", path),
        client.post(f"{path}/rotate-secret", {"signing_secret": "y"}),
        client.post(f"{path}/pause"),
    )
    assert deleted.status == 204
    assert (await client.get(path)).status == 404


async def test_changes_of_different_fields_at_once_are_all_kept(shared: Served) -> None:
    client, _, connection_id = await shared.any_connection()
    path = f"{CONNECTIONS}/{connection_id}"
    changes = {
        "name": "new",
        "max_in_flight": 3,
        "timeout_seconds": 9,
        "filters": [{"on": "method", "match": "POST"}],
        "ordered": True,
    }
    answers = await asyncio.gather(
        *(client.request("PATCH", path, json={name: value}) for name, value in changes.items()),
        client.post(f"{path}/pause"),
        client.post(f"{path}/rotate-secret", {}),
    )
    assert [answer.status for answer in answers] == [200] * 7
    assert shown(await client.get(path)).items() >= (changes | {"status": "paused"}).items()
