"""Whatever is sent to the management API, there is no 500, and every error is a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote
from uuid import UUID

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.http.access.conftest import OPERATOR_KEY, Served
from tests.support.asgi_client import Answer

ID = str(UUID(int=1))
PATHS = (
    "/v1/sync/workspaces",
    "/v1/sync/workspaces/{}",
    "/v1/sync/keys",
    "/v1/sync/keys/{}",
    "/v1/sync/keys/{}/revoke",
    "/v1/sync/settings",
    "/v1/sync/settings/{}",
    "/v1/sessions",
    "/v1/sessions/current",
    "/{}",
)
FIELDS = ("name", "label", "workspace_id", "value", "api_key", "x")

odd_text = st.text(max_size=30) | st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "\u202e",
        "é" * 300,
        "x" * 5000,
        "'; DROP TABLE workspaces; --",
        "../../etc",
        "%00",
        ID,
    ]
)
numbers = st.integers() | st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**400]) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | odd_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
    max_leaves=6,
)
bodies = (
    st.binary(max_size=60)
    | st.dictionaries(st.sampled_from(FIELDS), values, max_size=3).map(msgspec.json.encode)
    | st.sampled_from(
        [b'{"name":"\\ud800"}', b'{"name":"\xff"}', b'{"name":1e999}', b"[" * 5000, b'{"label":']
    )
    | values.map(msgspec.json.encode)
)
segments = odd_text.map(lambda text: quote(text, safe="")) | st.sampled_from(["%ff%fe", "%", "%zz", ID, "a"])
queries = st.lists(
    st.tuples(
        st.sampled_from(["limit", "cursor", "workspace_id", "%00", "limit[]", "=", "&"]),
        segments | numbers.map(str) | st.just("WzEseyJpZCI6IjAifV0"),
    ),
    max_size=3,
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))
latin = st.text(st.characters(max_codepoint=255), max_size=40)
headers = st.lists(
    st.tuples(
        st.sampled_from(
            ["idempotency-key", "content-type", "content-length", "cookie", "x-api-key", "origin", "accept"]
        ),
        latin | st.sampled_from(["application/json", "1", "crossdock_session=" + ID, "text/plain; charset"]),
    ),
    max_size=3,
)


def check(answer: Answer) -> None:
    assert answer.status < 500, answer
    if answer.status >= 400:
        assert answer.code
        assert answer.json()["detail"]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    segment: str = ""
    query: str = ""
    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()

    @property
    def target(self) -> str:
        return self.path.format(self.segment) + (f"?{self.query}" if self.query else "")


requests = st.builds(
    Request,
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]),
    path=st.sampled_from(PATHS),
    segment=segments,
    query=queries,
    body=bodies,
    headers=headers,
)


@settings(max_examples=300, deadline=None)
@given(requests)
@example(Request("GET", "/v1/sync/settings/%00"))
@example(Request("GET", "/v1/sync/keys", query="workspace_id=%00"))
@example(Request("GET", "/v1/sync/keys", query=f"workspace_id=x&workspace_id={ID}&limit=1&limit="))
@example(Request("PUT", "/v1/sync/settings/a", body=b'{"value":"\\u0000"}'))
@example(Request("POST", "/v1/sync/workspaces", body=b'{"name":"a\\u0000"}'))
@example(Request("POST", "/v1/sync/keys", body=b'{"label":"x","workspace_id":"' + ID.encode() + b'"}'))
async def test_any_request_is_answered_and_never_with_500(shared: Served, request_sent: Request) -> None:
    check(
        await shared.client.request(
            request_sent.method, request_sent.target, body=request_sent.body, headers=request_sent.headers
        )
    )


@settings(max_examples=100, deadline=None)
@given(extra=headers, key=latin | st.sampled_from([OPERATOR_KEY, "dk_" + "a" * 43]))
async def test_any_credential_is_judged_and_never_with_500(
    shared: Served, extra: list[tuple[str, str]], key: str
) -> None:
    given_headers = [*extra, ("authorization", f"Bearer {key}")]
    check(await shared.client.with_key(None).get("/v1/sync/keys", headers=given_headers))
