"""Signing in with GitHub and Google, against a server of our own that plays either."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp import web
from tests.http.hooks.accounts.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, Person
from tests.support.asgi_client import Answer
from tests.support.hooks_accounts import (
    ME,
    PASSWORD,
    PUBLIC_URL,
    USERS,
    HoldingFirst,
    Node,
    Served,
    make_node,
    new_email,
    new_user,
)
from tests.support.ports import free_port

from crossdock.hooks.store.tables import MAIN, guard_key
from crossdock.http.client import GuardedClient
from crossdock.kit.clock import rfc3339
from crossdock.kit.egress import EgressPolicy

PROVIDERS = ["github", "google"]
BOTH = pytest.mark.parametrize("provider", PROVIDERS)

_ids = itertools.count(1)


def new_person(**changed: Any) -> Person:
    return Person(**{"id": next(_ids), "email": new_email(), **changed})


@pytest.fixture
async def idp(shared: Served) -> AsyncIterator[IdentityProvider]:
    server = IdentityProvider(new_person(), shared.now_ms // 1000)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def node(shared: Served, idp: IdentityProvider) -> Node:
    """Sign-up is closed."""
    return shared.another_node(idp.settings())


@pytest.fixture
def open_node(shared: Served, idp: IdentityProvider) -> Node:
    return shared.another_node(idp.settings(signup="open"))


class Browser:
    """One person's: it has the one cookie, and goes where it is sent."""

    def __init__(self, node: Node, provider: str) -> None:
        self._node = node
        self._provider = provider
        self.cookie = ""

    async def start(self) -> str:
        """Where the provider is asked."""
        answer = await self._node.nobody.get(f"/v1/hooks/oauth/{self._provider}/start")
        assert answer.status == 302, answer
        self.cookie = (answer.header("set-cookie") or "").partition(";")[0]
        return answer.header("location") or ""

    async def agree(self, url: str) -> str:
        """The provider's answer: where to come back, as a target of ours."""
        async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as answer:
            assert answer.status == 302
            location = answer.headers["Location"]
        assert location.startswith(f"{PUBLIC_URL}/v1/hooks/oauth/{self._provider}/callback?")
        return location.removeprefix(PUBLIC_URL)

    async def come_back(self, target: str, cookie: str | None = None) -> Answer:
        sent = self.cookie if cookie is None else cookie
        return await self._node.nobody.get(target, headers={"cookie": sent} if sent else {})

    async def sign_in(self) -> Answer:
        return await self.come_back(await self.agree(await self.start()))


async def signed_in(node: Node, provider: str) -> dict[str, Any]:
    """Whose login it is."""
    answer = await Browser(node, provider).sign_in()
    assert answer.status == 200, answer
    me = await node.operator.with_key(answer.json()["token"]).get(ME)
    assert me.status == 200
    user: dict[str, Any] = me.json()
    return user


# --- there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "path", "scope"),
    [
        ("github", "/login/oauth/authorize", "read:user user:email"),
        ("google", "/o/oauth2/v2/auth", "openid email profile"),
    ],
)
async def test_the_browser_is_sent_with_a_sealed_state_and_a_challenge(
    node: Node, idp: IdentityProvider, provider: str, path: str, scope: str
) -> None:
    answer = await node.nobody.get(f"/v1/hooks/oauth/{provider}/start")
    assert (answer.status, answer.header("cache-control")) == (302, "no-store")
    url = urlsplit(answer.header("location") or "")
    assert f"{url.scheme}://{url.netloc}{url.path}" == idp.url + path
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert asked == {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": f"{PUBLIC_URL}/v1/hooks/oauth/{provider}/callback",
        "scope": scope,
        "state": asked["state"],
        "nonce": asked["code_challenge"],
        "code_challenge": asked["code_challenge"],
        "code_challenge_method": "S256",
    }
    cookie = answer.header("set-cookie") or ""
    verifier = cookie.partition(";")[0].partition("=")[2]
    assert len(verifier) == 43
    assert verifier not in url.query
    assert set(cookie.lower().split("; ")[1:]) == {
        "httponly",
        "max-age=600",
        f"path=/v1/hooks/oauth/{provider}",
        "samesite=lax",
        "secure",
    }


async def test_no_two_logins_share_a_state_or_a_verifier(node: Node) -> None:
    answers = [await node.nobody.get("/v1/hooks/oauth/github/start") for _ in range(3)]
    assert len({answer.header("location") for answer in answers}) == 3
    assert len({answer.header("set-cookie") for answer in answers}) == 3


async def test_below_a_path_and_without_https_the_cookie_is_as_the_browser_needs_it(
    shared: Served, idp: IdentityProvider
) -> None:
    node = shared.another_node(idp.settings(), public_url="http://10.0.0.1:8420/crossdock/")
    answer = await node.nobody.get("/v1/hooks/oauth/google/start")
    cookie = (answer.header("set-cookie") or "").lower().split("; ")
    assert "path=/crossdock/v1/hooks/oauth/google" in cookie
    assert "secure" not in cookie
    asked = parse_qs(urlsplit(answer.header("location") or "").query)
    assert asked["redirect_uri"] == ["http://10.0.0.1:8420/crossdock/v1/hooks/oauth/google/callback"]


@pytest.mark.parametrize("path", ["start", "callback", "callback?code=x&state=y"])
@BOTH
async def test_a_provider_that_is_not_set_up_is_404(
    shared: Served, idp: IdentityProvider, provider: str, path: str
) -> None:
    for missing in (f"{provider}_client_id", f"{provider}_client_secret"):
        node = shared.another_node(idp.settings(**{missing: None}))
        answer = await node.nobody.get(f"/v1/hooks/oauth/{provider}/{path}")
        assert (answer.status, answer.code) == (404, "oauth_not_configured")
    unknown = await shared.nobody.get(f"/v1/hooks/oauth/gitlab/{path}")
    assert (unknown.status, unknown.code) == (404, "not_found")


# --- whose login it is -----------------------------------------------------------------------------


@BOTH
async def test_a_verified_address_links_the_user_that_has_it(
    shared: Served, node: Node, idp: IdentityProvider, provider: str
) -> None:
    user = await shared.user(email=idp.person.email.upper())
    answer = await Browser(node, provider).sign_in()
    assert answer.status == 200
    assert answer.json().keys() == {"token", "expires_at"}
    assert "max-age=0" in (answer.header("set-cookie") or "").lower()
    me = await shared.operator.with_key(answer.json()["token"]).get(ME)
    assert me.json() == user | {f"{provider}_id": str(idp.person.id), "updated_at": me.json()["updated_at"]}
    guard = await shared.items.get(MAIN, guard_key(provider.upper(), str(idp.person.id)))  # type: ignore[arg-type]
    assert guard is not None
    assert guard["userId"] == user["user_id"]
    await shared.token(user["email"])  # its password goes on working


@BOTH
async def test_who_is_linked_is_known_again_whatever_the_address_is_now(
    shared: Served, node: Node, idp: IdentityProvider, provider: str
) -> None:
    user = await shared.user(email=idp.person.email)
    await signed_in(node, provider)
    idp.person.email, idp.person.verified = new_email(), False
    body = {"email": new_email()}
    assert (await shared.operator.request("PATCH", f"{USERS}/{user['user_id']}", json=body)).status == 200
    assert (await signed_in(node, provider))["user_id"] == user["user_id"]


async def test_one_user_may_sign_in_with_both(shared: Served, node: Node, idp: IdentityProvider) -> None:
    user = await shared.user(email=idp.person.email)
    for _ in range(2):
        for provider in PROVIDERS:
            assert (await signed_in(node, provider))["user_id"] == user["user_id"]


@BOTH
async def test_who_has_no_user_gets_one_where_sign_up_is_open(
    shared: Served, open_node: Node, idp: IdentityProvider, provider: str
) -> None:
    user = await signed_in(open_node, provider)
    assert await signed_in(open_node, provider) == user
    stored, now = await shared.stored_user(user["user_id"]), rfc3339(shared.now_ms)
    assert stored == {
        "PK": f"USER#{user['user_id']}",
        "SK": "PROFILE",
        "GSI1PK": f"EMAIL#{idp.person.email}",
        "GSI1SK": "USER",
        "GSI2PK": "USERS",
        "GSI2SK": f"{now}#{user['user_id']}",
        "userId": user["user_id"],
        "email": idp.person.email,
        "name": "Grace Hopper",
        "passwordHash": None,
        "plan": "free",
        f"{provider}Id": str(idp.person.id),
        "usageThisMonth": 0,
        "usagePeriodStart": now[:10],
        "emailProven": True,
        "createdAt": now,
        "updatedAt": now,
    }
    taken = await shared.operator.post(USERS, new_user(email=idp.person.email))
    assert (taken.status, taken.code) == (409, "email_taken")


@BOTH
async def test_two_who_come_back_at_once_for_the_first_time_are_one_user(
    shared: Served, idp: IdentityProvider, provider: str
) -> None:
    nodes = [shared.another_node(idp.settings(signup="open")) for _ in range(3)]
    users = await asyncio.gather(*(signed_in(node, provider) for node in nodes))
    assert len({user["user_id"] for user in users}) == 1


@BOTH
async def test_who_was_made_by_a_twin_between_two_reads_is_that_user(
    shared: Served, open_node: Node, idp: IdentityProvider, provider: str
) -> None:
    links = provider.upper() + "#"
    holding = HoldingFirst(shared.items, lambda key: key.get("PK", "").startswith(links))
    late = asyncio.create_task(signed_in(shared.another_node(idp.settings(signup="open"), holding), provider))
    await holding.is_held.wait()
    user = await signed_in(open_node, provider)
    holding.may_go.set()
    assert (await late)["user_id"] == user["user_id"]


@BOTH
async def test_who_has_no_user_is_403_where_sign_up_is_closed(node: Node, provider: str) -> None:
    answer = await Browser(node, provider).sign_in()
    assert (answer.status, answer.code) == (403, "signup_closed")


@pytest.mark.parametrize("email", ["", "\u212aate@example.com", "a@b@example.com"])
async def test_an_address_that_we_would_not_take_proves_nothing(
    open_node: Node, idp: IdentityProvider, email: str
) -> None:
    idp.person.email = email
    for provider in PROVIDERS:
        answer = await Browser(open_node, provider).sign_in()
        assert (answer.status, answer.code) == (403, "email_not_verified")


@BOTH
async def test_an_address_that_is_not_verified_proves_nothing(
    shared: Served, open_node: Node, idp: IdentityProvider, provider: str
) -> None:
    user = await shared.user(email=idp.person.email)
    idp.person.verified = False
    answer = await Browser(open_node, provider).sign_in()
    assert (answer.status, answer.code) == (403, "email_not_verified")
    assert f"{provider}Id" not in await shared.stored_user(user["user_id"])


async def test_of_githubs_addresses_the_primary_one_counts_if_it_is_verified(
    shared: Served, node: Node, idp: IdentityProvider
) -> None:
    claimed, other, primary = new_email(), new_email(), new_email()
    users = {email: await shared.user(email=email) for email in (claimed, other, primary)}
    idp.emails = [
        {"email": claimed, "primary": False, "verified": False},
        {"email": other, "primary": False, "verified": True},
        {"email": primary, "primary": True, "verified": True},
    ]
    assert (await signed_in(node, "github"))["user_id"] == users[primary]["user_id"]
    idp.person = new_person()
    idp.emails[2]["verified"] = False
    assert (await signed_in(node, "github"))["user_id"] == users[other]["user_id"]


@BOTH
async def test_an_address_that_a_user_only_claims_lets_nobody_in(
    shared: Served, open_node: Node, idp: IdentityProvider, provider: str
) -> None:
    """Else whoever signs up with a stranger's address waits in the account until the stranger uses it."""
    body = new_user(email=idp.person.email)
    squatter = (await open_node.nobody.post(USERS, body)).json()
    answer = await Browser(open_node, provider).sign_in()
    assert (answer.status, answer.code) == (409, "email_not_proven")
    assert f"{provider}Id" not in await shared.stored_user(squatter["user_id"])
    await shared.token(idp.person.email)
    vouched = await shared.operator.request(
        "PATCH", f"{USERS}/{squatter['user_id']}", json={"email": idp.person.email}
    )
    assert vouched.status == 200
    assert (await signed_in(open_node, provider))["user_id"] == squatter["user_id"]


@BOTH
async def test_an_address_that_a_user_changed_to_by_itself_lets_nobody_in(
    shared: Served, open_node: Node, idp: IdentityProvider, provider: str
) -> None:
    user = await shared.user()
    client = await shared.client_of(user["user_id"])
    for email, expected in [(user["email"].upper(), None), (idp.person.email, 409)]:
        assert (await client.request("PATCH", ME, json={"email": email})).status == 200
        assert ("emailProven" in await shared.stored_user(user["user_id"])) is (expected is None)
    answer = await Browser(open_node, provider).sign_in()
    assert (answer.status, answer.code) == (409, "email_not_proven")


@BOTH
async def test_a_user_who_is_linked_already_is_not_linked_to_another_account(
    shared: Served, node: Node, idp: IdentityProvider, provider: str
) -> None:
    user = await shared.user(email=idp.person.email)
    await signed_in(node, provider)
    idp.person = new_person(email=idp.person.email)
    answer = await Browser(node, provider).sign_in()
    assert (answer.status, answer.code) == (409, "linked_to_other")
    assert (await shared.stored_user(user["user_id"]))[f"{provider}Id"] != str(idp.person.id)


@pytest.mark.parametrize(
    ("name", "shown"),
    [(None, "ghopper"), ("", "ghopper"), ("A\nB\x1b", "AB"), ("x" * 500, "x" * 128), ("Ünï", "Ünï")],
)
async def test_a_name_is_taken_as_far_as_it_can_be(
    open_node: Node, idp: IdentityProvider, name: str | None, shown: str
) -> None:
    idp.person = new_person(name=name)
    assert (await signed_in(open_node, "github"))["name"] == shown


# --- back ------------------------------------------------------------------------------------------


@BOTH
async def test_a_login_that_this_browser_did_not_begin_is_400_and_its_code_is_not_used(
    shared: Served, open_node: Node, idp: IdentityProvider, provider: str
) -> None:
    browser, other = Browser(open_node, provider), Browser(open_node, provider)
    target = await browser.agree(await browser.start())
    await other.start()
    path, _, query = target.partition("?")
    code, state = parse_qs(query)["code"][0], parse_qs(query)["state"][0]
    other_way = "google" if provider == "github" else "github"
    attempts = [
        (target, other.cookie),
        (target, ""),
        (target, "crossdock_oauth="),
        (target, "crossdock_oauth=é"),
        (target, "crossdock_session=" + browser.cookie.partition("=")[2]),
        (f"{path}?code={code}", browser.cookie),
        (f"{path}?code={code}&state=", browser.cookie),
        (f"{path}?code={code}&state={state[:-4]}AAAA", browser.cookie),
        (f"{path}?code={code}&state=v1.00000000.AAAA", browser.cookie),
        (f"{path}?error=access_denied", browser.cookie),
        (target.replace(provider, other_way), browser.cookie),
    ]
    for attempt, cookie in attempts:
        answer = await browser.come_back(attempt, cookie)
        assert (answer.status, answer.code) == (400, "invalid_oauth_state")
    assert idp.calls == 0
    assert (await browser.come_back(target)).status == 200


async def test_a_login_must_be_back_in_ten_minutes(served: Served) -> None:
    idp = IdentityProvider(new_person(), served.now_ms // 1000)
    await idp.start()
    try:
        node = served.another_node(idp.settings(signup="open"))
        browsers = [Browser(node, "github"), Browser(node, "github")]
        targets = [await browser.agree(await browser.start()) for browser in browsers]
        served.clock.advance(seconds=599)
        assert (await browsers[0].come_back(targets[0])).status == 200
        served.clock.advance(seconds=1)
        late = await browsers[1].come_back(targets[1])
        assert (late.status, late.code) == (400, "invalid_oauth_state")
    finally:
        await idp.stop()


@BOTH
async def test_a_code_is_good_once(open_node: Node, provider: str) -> None:
    browser = Browser(open_node, provider)
    target = await browser.agree(await browser.start())
    assert (await browser.come_back(target)).status == 200
    again = await browser.come_back(target)
    assert (again.status, again.code) == (401, "oauth_code_invalid")


@BOTH
async def test_who_says_no_at_the_provider_is_403_and_without_a_code_it_is_422(
    open_node: Node, provider: str
) -> None:
    browser = Browser(open_node, provider)
    state = parse_qs(urlsplit(await browser.start()).query)["state"][0]
    target = f"/v1/hooks/oauth/{provider}/callback?state={state}"
    denied = await browser.come_back(f"{target}&error=access_denied")
    assert (denied.status, denied.code) == (403, "oauth_denied")
    for missing in (target, f"{target}&code="):
        answer = await browser.come_back(missing)
        assert (answer.status, answer.fields) == (422, [("code", "required")])


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://accounts.evil.example"},
        {"aud": "somebody-else"},
        {"nonce": "of another login"},
        {"nonce": None},
        {"exp": 1_700_000_000},
        {"sub": 7},
        {"email_verified": "yes"},
    ],
)
async def test_an_id_token_that_is_not_for_us_and_now_lets_nobody_in(
    open_node: Node, idp: IdentityProvider, claims: dict[str, Any]
) -> None:
    idp.claims = claims
    answer = await Browser(open_node, "google").sign_in()
    assert (answer.status, answer.code) == (503, "oauth_provider_failed")


async def test_googles_issuer_may_be_without_its_scheme(open_node: Node, idp: IdentityProvider) -> None:
    idp.claims = {"iss": idp.url.removeprefix("http://")}
    assert (await Browser(open_node, "google").sign_in()).status == 200


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "oops"),
        (200, "not JSON"),
        (200, "[]"),
        (200, "{}"),
        (200, '{"access_token": 7}'),
        (200, '{"id_token": "a.b.c", "access_token": "unknown"}'),
        (200, '{"id_token": "abc", "access_token": "é"}'),
        (302, ""),
        (503, '{"id_token": "e30.e30.e30", "access_token": "x"}'),
        (200, '{"error": "temporarily_unavailable"}'),
    ],
)
@BOTH
async def test_a_provider_that_answers_nonsense_is_503(
    open_node: Node, idp: IdentityProvider, provider: str, status: int, text: str
) -> None:
    browser = Browser(open_node, provider)
    target = await browser.agree(await browser.start())
    idp.broken = web.Response(status=status, text=text, headers={"Location": "/"})
    answer = await browser.come_back(target)
    assert (answer.status, answer.code) == (503, "oauth_provider_failed")
    assert answer.header("retry-after") is not None


@BOTH
async def test_a_secret_that_the_provider_does_not_take_is_503_and_nobody_elses_fault(
    shared: Served, idp: IdentityProvider, provider: str
) -> None:
    node = shared.another_node(idp.settings(**{f"{provider}_client_secret": "wrong"}))
    answer = await Browser(node, provider).sign_in()
    assert (answer.status, answer.code) == (503, "oauth_provider_failed")


@BOTH
async def test_a_provider_that_is_away_is_503(shared: Served, idp: IdentityProvider, provider: str) -> None:
    browser = Browser(shared.another_node(idp.settings()), provider)
    target = await browser.agree(await browser.start())
    nowhere = f"http://127.0.0.1:{free_port()}"
    changed = idp.settings(github_url=nowhere, github_api_url=nowhere, google_api_url=nowhere)
    elsewhere = Browser(shared.another_node(changed), provider)
    answer = await elsewhere.come_back(target, browser.cookie)
    assert (answer.status, answer.code) == (503, "oauth_provider_failed")


@BOTH
async def test_an_address_that_is_not_called_is_503_and_not_told_to_strangers(
    shared: Served, idp: IdentityProvider, provider: str
) -> None:
    strict = GuardedClient(EgressPolicy())
    try:
        node = make_node(shared.items, shared.clock, strict, idp.settings())
        answer = await Browser(node, provider).sign_in()
    finally:
        await strict.close()
    assert (answer.status, answer.code) == (503, "oauth_provider_failed")
    assert b"127.0.0.1" not in answer.body


@BOTH
async def test_no_secret_is_in_a_log_line_or_in_an_answer(
    open_node: Node, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser(open_node, provider)
    with caplog.at_level(logging.DEBUG, logger="crossdock"):
        target = await browser.agree(await browser.start())
        answers = [await browser.come_back(target), await browser.come_back(target)]
    verifier = browser.cookie.partition("=")[2]
    token = answers[0].json()["token"]
    assert PASSWORD != CLIENT_SECRET
    for secret in (CLIENT_SECRET, verifier, token):
        assert secret not in caplog.text
    for answer in answers:
        assert CLIENT_SECRET.encode() not in answer.body
        assert verifier.encode() not in answer.body
