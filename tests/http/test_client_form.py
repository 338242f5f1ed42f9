"""What a URL may look like, and what a redirect makes of a call: no server needed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from multidict import CIMultiDict
from yarl import URL

from crossdock.http.outgoing import Call, check_url, follow
from crossdock.kit.errors import InvalidInput

GOOD = [
    ("http://example.com", "http://example.com"),
    ("https://example.com:8443/a?b=c", "https://example.com:8443/a?b=c"),
    ("HTTP://EXAMPLE.com/", "http://example.com/"),
    ("https://example.com/a#fragment", "https://example.com/a"),
    ("http://8.8.8.8:1/", "http://8.8.8.8:1/"),
    ("http://[2606:4700::1]:65535/", "http://[2606:4700::1]:65535/"),
    ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
]

BAD = [
    *("", "example.com", "/path", "//example.com/", "http://", "http:///path", "https://:443/"),
    *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "unix:///run/x.sock"),
    *("javascript:alert(1)", "http:example.com"),
    *("http://user@example.com/", "http://user:pass@example.com/", "http://:pass@example.com/"),
    *("http://127.0.0.1@example.com/", "http://example.com@127.0.0.1/"),
    *(
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:http/",
        "http://example.com:-1/",
    ),
    *(
        "http://exa mple.com/",
        " http://example.com/",
        "http://example.com/\r\nX: y",
        "http://example.com\\@evil/",
    ),
    *("http://example.com/\x00", "http://example.com/\x7f", "http://[::1/", "http://[zz]/"),
    *(
        "http://2130706433/",
        "http://127.1/",
        "http://017700000001/",
        "http://0127.0.0.1/",
        "http://1.2.3.4.5/",
    ),
    "http://example.com/" + "a" * 9000,
]


@pytest.mark.parametrize(("text", "url"), GOOD)
def test_a_plain_http_url_is_taken(text: str, url: str) -> None:
    assert str(check_url(text)) == url


@pytest.mark.parametrize("text", BAD)
def test_any_other_url_is_invalid_naming_the_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_url(text)
    assert caught.value.code == "invalid_url"
    assert [problem.field for problem in caught.value.fields] == ["url"]


def call(method: str = "POST", url: str = "https://a.example/x/y", body: bytes | None = b"{}") -> Call:
    headers = {"X-Api-Key": "k", "Authorization": "Bearer t", "Accept": "*/*", "Content-Type": "text/plain"}
    return Call.make(method, URL(url), headers, body)


@pytest.mark.parametrize(
    ("method", "status", "then", "keeps_body"),
    [
        ("POST", 301, "GET", False),
        ("POST", 302, "GET", False),
        ("POST", 303, "GET", False),
        ("POST", 307, "POST", True),
        ("POST", 308, "POST", True),
        ("PUT", 302, "PUT", True),
        ("PUT", 303, "GET", False),
        ("HEAD", 303, "HEAD", False),
        ("DELETE", 307, "DELETE", True),
    ],
)
def test_a_redirect_keeps_method_and_body_as_http_says(
    method: str, status: int, then: str, keeps_body: bool
) -> None:
    followed = follow(call(method), status, "/z")
    assert (followed.method, followed.body) == (then, b"{}" if keeps_body else None)
    assert ("Content-Type" in followed.headers) is keeps_body


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/z", "https://a.example/z"),
        ("z?q=1", "https://a.example/x/z?q=1"),
        ("?q=1", "https://a.example/x/y?q=1"),
        ("//b.example/z", "https://b.example/z"),
        ("http://b.example:81/", "http://b.example:81/"),
    ],
)
def test_a_redirect_may_be_relative(location: str, url: str) -> None:
    assert str(follow(call(), 307, location).url) == url


def test_the_same_origin_gets_the_callers_headers_again() -> None:
    assert follow(call(), 307, "/z").headers == call().headers


@pytest.mark.parametrize("location", ["https://b.example/", "http://a.example/", "https://a.example:8443/"])
def test_another_origin_gets_no_header_that_could_hold_a_key(location: str) -> None:
    followed = follow(call(), 307, location)
    assert followed.headers == CIMultiDict({"Accept": "*/*", "Content-Type": "text/plain"})
    assert follow(call(), 303, location).headers == CIMultiDict({"Accept": "*/*"})


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "http://user:pass@b.example/",
        "http://b.example:0/",
        "http://[::1",
        "http://127.1/",
    ],
)
def test_a_redirect_to_what_may_not_be_called_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput):
        follow(call(), 302, location)


def test_a_redirect_that_wants_a_streamed_body_again_is_refused() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"once"

    streamed = Call.make("POST", URL("https://a.example/"), None, body())
    with pytest.raises(InvalidInput):
        follow(streamed, 307, "/z")
    assert follow(streamed, 303, "/z").body is None


@pytest.mark.parametrize(
    ("method", "headers", "code"),
    [
        ("post", {}, "invalid_method"),
        ("GET / HTTP/1.1\r\nX: y", {}, "invalid_method"),
        ("", {}, "invalid_method"),
        ("GET", {"X": "a\r\nY: b"}, "invalid_header"),
        ("GET", {"X": "a\0"}, "invalid_header"),
        ("GET", {"X: y\r\nZ": "a"}, "invalid_header"),
        ("GET", {"": "a"}, "invalid_header"),
    ],
)
def test_a_method_or_header_that_would_break_the_request_is_refused(
    method: str, headers: dict[str, str], code: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Call.make(method, URL("https://a.example/"), headers, None)
    assert caught.value.code == code
