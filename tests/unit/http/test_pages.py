from __future__ import annotations

import msgspec
import pytest

from crossdock.http.pages import Page, PageRequest, page_json, page_of
from crossdock.kit.errors import MalformedRequest
from crossdock.kit.pagination import encode_cursor


def pages_of(rows: list[int], limit: int) -> list[list[int]]:
    """What a client gets that follows the cursors over a store of sorted rows."""
    pages: list[list[int]] = []
    cursor: str | None = None
    while True:
        after = PageRequest(limit, cursor).after({"row": int})
        found = [row for row in rows if after is None or row > int(after["row"])][: limit + 1]
        page = page_of(found, limit, lambda row: {"row": row})
        pages.append(page.data)
        if page.next_cursor is None:
            return pages
        cursor = page.next_cursor


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, [0]), (1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2]), (5, [2, 2, 1])]
)
def test_pages_are_full_and_the_last_one_says_so(count: int, sizes: list[int]) -> None:
    pages = pages_of(list(range(count)), 2)
    assert [len(page) for page in pages] == sizes
    assert [row for page in pages for row in page] == list(range(count))


def test_a_cursor_of_another_list_is_refused() -> None:
    request = PageRequest(2, encode_cursor({"name": "x"}))
    with pytest.raises(MalformedRequest, match="invalid_cursor"):
        request.after({"row": int})


def test_without_a_cursor_a_list_begins_at_its_start() -> None:
    assert PageRequest(2).after({"row": int}) is None


def test_a_page_may_be_converted_entry_by_entry() -> None:
    assert Page([1, 2], "c").map(str) == Page(["1", "2"], "c")


@pytest.mark.parametrize("cursor", [None, 'a"b'])
@pytest.mark.parametrize("items", [[], [b"1"], [b'{"a":1}', b'{"a":2}']])
def test_a_page_of_ready_json_is_the_page_of_its_values(items: list[bytes], cursor: str | None) -> None:
    values = [msgspec.json.decode(item) for item in items]
    assert msgspec.json.decode(page_json(items, cursor)) == {"data": values, "next_cursor": cursor}
