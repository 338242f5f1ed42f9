"""Whatever is sent to the accounts API, there is no 500, and every error is a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.asgi_client import Answer
from tests.support.devices import OPERATOR_KEY
from tests.support.hooks_accounts import OPEN, PASSWORD, Node, Served

USER_ID, KEY_ID = "usr_0123456789abcdef", "key_0123456789abcdef"
PATHS = (
    "/v1/hooks/users",
    "/v1/hooks/users/{}",
    "/v1/hooks/me",
    "/v1/hooks/keys",
    "/v1/hooks/keys/{}",
    "/v1/hooks/login",
    "/v1/hooks/logout",
    "/v1/hooks/usage",
    "/v1/hooks/oauth/github/start",
    "/v1/hooks/oauth/github/callback",
    "/v1/hooks/oauth/{}/callback",
    "/v1/hooks/billing/stripe",
)
FIELDS = (
    "email",
    "name",
    "password",
    "plan",
    "alert_url",
    "stripe_customer_id",
    "user_id",
    "permissions",
    "x",
)

odd_text = st.text(max_size=30) | st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "\u202e",
        "é" * 300,
        "x" * 5000,
        "a@example.com",
        "http://[",
        "https://x",
        USER_ID,
        KEY_ID,
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | odd_text
    | st.sampled_from(["read", "pro", PASSWORD]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
    max_leaves=6,
)
plausible = st.fixed_dictionaries(
    {
        "email": st.sampled_from(["a@example.com", "b@example.com"]) | odd_text,
        "name": st.just("n") | odd_text,
    },
    optional={"password": st.just(PASSWORD) | odd_text, "alert_url": odd_text, "user_id": st.just(USER_ID)},
)
bodies = (
    st.binary(max_size=60)
    | st.dictionaries(st.sampled_from(FIELDS), values, max_size=4).map(msgspec.json.encode)
    | plausible.map(msgspec.json.encode)
    | st.sampled_from([b'{"name":"\\ud800"}', b'{"name":"\xff"}', b"[" * 5000, b'{"email":'])
)
segments = odd_text.map(lambda text: quote(text, safe="")) | st.sampled_from(
    ["%ff%fe", "%", "%zz", USER_ID, KEY_ID]
)
queries = st.lists(
    st.tuples(
        st.sampled_from(["limit", "cursor", "user_id", "code", "state", "error", "%00", "limit[]", "&"]),
        segments | st.integers().map(str) | st.just("WzEseyJjcmVhdGVkX2F0IjoiIiwia2V5X2lkIjoiIn1d"),
    ),
    max_size=3,
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))
headers = st.lists(
    st.tuples(
        st.sampled_from(["idempotency-key", "content-type", "cookie", "stripe-signature", "x-api-key"]),
        st.text(st.characters(max_codepoint=255), max_size=40)
        | st.sampled_from(["application/json", "1", "crossdock_oauth=x", "t=1,v1=00"]),
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
    key: str | None = OPERATOR_KEY

    @property
    def target(self) -> str:
        return self.path.format(self.segment) + (f"?{self.query}" if self.query else "")


requests = st.builds(
    Request,
    method=st.sampled_from(["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW"]),
    path=st.sampled_from(PATHS),
    segment=segments,
    query=queries,
    body=bodies,
    headers=headers,
    key=st.sampled_from([OPERATOR_KEY, None, "fhs_x", "dh"]),
)


@pytest.fixture(scope="module")
def nodes(shared: Served) -> list[Node]:
    """Sign-up is closed on the first, and open on the second."""
    return [shared.node, shared.another_node(OPEN)]


@settings(max_examples=300, deadline=None)
@given(requests)
@example(Request("GET", "/v1/hooks/users/%00"))
@example(
    Request(
        "GET", "/v1/hooks/users", query="cursor=WzEseyJjcmVhdGVkX2F0IjoiMjAyNC0wMS0wMSIsInVzZXJfaWQiOiIifV0"
    )
)
@example(Request("GET", "/v1/hooks/me", query="user_id=%00"))
@example(Request("GET", "/v1/hooks/usage", query=f"user_id={USER_ID}&user_id=x"))
@example(Request("POST", "/v1/hooks/login", body=b'{"email":"\\u0000","password":"x"}', key=None))
@example(Request("GET", "/v1/hooks/oauth/google/callback", query="state=%ff&code=%00x"))
async def test_any_request_is_answered_and_never_with_500(nodes: list[Node], sent: Request) -> None:
    for node in nodes:
        client = node.operator.with_key(sent.key)
        check(await client.request(sent.method, sent.target, body=sent.body, headers=sent.headers))
