"""A user's sources, page by page, without the deleted ones."""

from __future__ import annotations

from tests.support.asgi_client import AsgiClient
from tests.support.hooks_sources import SOURCES, Served, shown

from crossdock.engines.items.port import Put
from crossdock.hooks.model import Source, Status
from crossdock.hooks.store.sources import new_source
from crossdock.hooks.store.tables import MAIN


async def ids_of(client: AsgiClient, query: str = "") -> list[str]:
    """Every source's id, page by page."""
    found: list[str] = []
    cursor = ""
    while True:
        page = shown(await client.get(f"{SOURCES}?{query}{cursor}"))
        found += [each["source_id"] for each in page["data"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def deleted_source(user_id: str, source_id: str) -> Put:
    source = Source(
        source_id=source_id,
        user_id=user_id,
        name="gone",
        provider="stripe",
        status=Status.DELETED,
        created_at="2025-01-01T12:00:00Z",
    )
    return new_source(source, "hmac-sha256")


async def test_a_users_sources_are_listed_each_once_without_the_deleted_ones(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    made = sorted([(await shared.source(client))["source_id"] for _ in range(9)])
    for source_id in (*made[:2], made[4], made[8]):
        assert (await client.request("DELETE", f"{SOURCES}/{source_id}")).status == 204
    left = [made[2], made[3], *made[5:8]]
    for limit in (1, 2, 3, 5, 9, 200):
        assert await ids_of(client, f"limit={limit}") == left
        assert await ids_of(shared.operator, f"limit={limit}&user_id={user_id}") == left


async def test_a_page_is_full_although_deleted_sources_lie_between(shared: Served) -> None:
    _, client = await shared.user_and_client()
    made = sorted([(await shared.source(client))["source_id"] for _ in range(6)])
    for source_id in made[1:4]:
        await client.request("DELETE", f"{SOURCES}/{source_id}")
    page = shown(await client.get(f"{SOURCES}?limit=2"))
    assert [each["source_id"] for each in page["data"]] == [made[0], made[4]]


async def test_a_list_goes_on_where_it_ended_although_that_source_is_deleted(shared: Served) -> None:
    _, client = await shared.user_and_client()
    made = sorted([(await shared.source(client))["source_id"] for _ in range(3)])
    page = shown(await client.get(f"{SOURCES}?limit=1"))
    await client.request("DELETE", f"{SOURCES}/{made[0]}")
    rest = shown(await client.get(f"{SOURCES}?limit=5&cursor={page['next_cursor']}"))
    assert [each["source_id"] for each in rest["data"]] == made[1:]


async def test_more_deleted_sources_than_a_page_looks_at_do_not_end_the_list(shared: Served) -> None:
    """An answer may then have fewer entries than asked for, and says where to go on."""
    user_id, client = await shared.user_and_client()
    gone = [deleted_source(user_id, f"src_{number:016d}") for number in range(150)]
    for start in (0, 75):
        await shared.items.transact(gone[start : start + 75])
    last = await shared.source(client)
    last_id = "src_zzzzzzzzzzzzzzzz"
    await shared.items.put(MAIN, {**deleted_source(user_id, last_id).item, "status": "active"})
    first = shown(await client.get(f"{SOURCES}?limit=1"))
    assert first["data"] == []
    assert first["next_cursor"] is not None
    assert set(await ids_of(client, "limit=1")) == {last["source_id"], last_id}


async def test_somebody_elses_sources_are_not_listed(shared: Served) -> None:
    user_id, client = await shared.user_and_client()
    await shared.source(client)
    _, other = await shared.user_and_client()
    assert await ids_of(other) == []
    answer = await other.get(f"{SOURCES}?user_id={user_id}")
    assert (answer.status, answer.code) == (404, "user_not_found")


async def test_the_operator_says_whose_sources_to_list(shared: Served) -> None:
    answer = await shared.operator.get(SOURCES)
    assert (answer.status, answer.fields) == (422, [("user_id", "required")])


async def test_a_cursor_of_another_list_is_refused(shared: Served) -> None:
    _, client = await shared.user_and_client()
    for cursor in ("x", "WzEseyJhZnRlcl9pZCI6Ingifb0", "WzEseyJhZnRlcl9pZCI6IngifV0"):
        answer = await client.get(f"{SOURCES}?cursor={cursor}")
        assert (answer.status, answer.code) == (400, "invalid_cursor")
