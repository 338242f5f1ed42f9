"""A kept event as a request to a developer's own machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.hooks.rules.forwarding import forwarded_headers, is_below, target_url
from crossdock.hooks.rules.outbound import REDACTED

BASE = "http://localhost:3000/hook"


@pytest.mark.parametrize(
    ("base", "path", "query", "url"),
    [
        (BASE, "", "", BASE),
        (BASE, "/orders/1", "", f"{BASE}/orders/1"),
        (BASE + "/", "/orders", "", f"{BASE}/orders"),
        (BASE + "/", "", "", f"{BASE}/"),
        (BASE, "/", "", f"{BASE}/"),
        ("http://localhost:3000", "", "", "http://localhost:3000/"),
        ("http://localhost:3000", "/a", "", "http://localhost:3000/a"),
        (BASE, "", "a=1&b=%20", f"{BASE}?a=1&b=%20"),
        (BASE + "?key=k", "/x", "a=1", f"{BASE}/x?key=k&a=1"),
        (BASE + "?key=k", "", "", f"{BASE}?key=k"),
        (BASE + "#part", "", "a=1", f"{BASE}?a=1"),
        (BASE, "/grüße/50% off?", "", f"{BASE}/gr%C3%BC%C3%9Fe/50%25%20off%3F"),
        (BASE, "/a b\r\nHost: evil", "", f"{BASE}/a%20b%0D%0AHost:%20evil"),
        (BASE, "", "a=\xfc b#c", f"{BASE}?a=%FC%20b%23c"),
        (BASE, "//evil.example/x", "", f"{BASE}//evil.example/x"),
        (BASE, "/../admin", "", f"{BASE}/../admin"),
        ("http://[::1]:3000", "/a", "", "http://[::1]:3000/a"),
    ],
)
def test_path_and_query_come_below_and_after_the_targets_own(
    base: str, path: str, query: str, url: str
) -> None:
    assert target_url(base, path, query) == url


@given(path=st.text(), query=st.text())
def test_whatever_a_sender_chose_goes_to_the_target_and_nowhere_else(path: str, query: str) -> None:
    url = target_url(BASE, "/" + path, query)
    assert url.startswith(BASE + "/")
    assert url.isascii()
    assert url.isprintable()
    assert " " not in url


@pytest.mark.parametrize(
    "name",
    [
        *("Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Host"),
        *("Content-Length", "Proxy-Authorization", "proxy-connection"),
    ],
)
def test_what_belonged_to_its_own_connection_is_left_out(name: str) -> None:
    kept = ("X-Kept", "yes")
    assert forwarded_headers([(name, "x"), kept]) == [kept]


def test_what_the_connection_header_names_is_left_out_too() -> None:
    given = [("Connection", "close, X-Own"), ("x-own", "1"), ("X-Other", "2")]
    assert forwarded_headers(given) == [("X-Other", "2")]


def test_credentials_that_were_not_kept_are_not_sent_as_what_stands_for_them() -> None:
    assert forwarded_headers([("Authorization", REDACTED), ("X-Signature", "abc")]) == [
        ("X-Signature", "abc")
    ]


def test_all_else_goes_as_it_came_signatures_and_repeated_names_too() -> None:
    given = [
        ("webhook-id", "msg_1"),
        ("webhook-signature", "v1,abc"),
        ("Content-Type", "application/json"),
        ("X-Twice", "1"),
        ("x-twice", "2"),
        ("X-Text", "grüße"),
        ("Accept-Encoding", "gzip"),
    ]
    assert forwarded_headers(given) == given


@pytest.mark.parametrize(
    ("name", "value"),
    [("a b", "x"), ("", "x"), ("ä", "x"), ("X-A", "a\r\nb"), ("X-A", "\ud800"), ("X-A", "\0")],
)
def test_a_header_that_can_not_be_sent_does_not_keep_the_event_back(name: str, value: str) -> None:
    assert forwarded_headers([(name, value), ("X-Kept", "yes")]) == [("X-Kept", "yes")]


@pytest.mark.parametrize(
    ("path", "prefix", "below"),
    [
        ("", "", True),
        ("/orders", "", True),
        ("/orders", "/", True),
        ("/orders", "/orders", True),
        ("/orders/1", "/orders", True),
        ("/orders/1", "orders/", True),
        ("/orders-old", "/orders", False),
        ("", "/orders", False),
        ("/", "/orders", False),
        ("/a/orders", "/orders", False),
    ],
)
def test_a_path_is_below_another_part_by_part(path: str, prefix: str, below: bool) -> None:
    assert is_below(path, prefix) is below
