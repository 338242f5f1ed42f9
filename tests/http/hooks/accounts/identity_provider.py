"""GitHub and Google as far as signing in goes, on loopback: one server that plays either, and lets nobody in
by a request that the real ones would refuse."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from crossdock.hooks.settings import HooksSettings

CLIENT_ID, CLIENT_SECRET = "our-client-id", "our-client-secret"


@dataclass
class Person:
    """Whoever sits at the browser, as the provider knows it."""

    id: int
    email: str
    name: str | None = "Grace Hopper"
    verified: bool = True


@dataclass
class _Login:
    person: Person
    redirect_uri: str
    challenge: str
    nonce: str


@dataclass
class IdentityProvider:
    person: Person
    now_seconds: int
    claims: dict[str, Any] = field(default_factory=dict)
    """What the id token says instead."""
    emails: list[dict[str, Any]] | None = None
    broken: web.Response | None = None
    """What every call of a server's is answered instead."""
    calls: int = 0
    url: str = ""
    _logins: dict[str, _Login] = field(default_factory=dict)
    _tokens: dict[str, Person] = field(default_factory=dict)
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/login/oauth/authorize", self._authorize)
        app.router.add_get("/o/oauth2/v2/auth", self._authorize)
        app.router.add_post("/login/oauth/access_token", self._github_token)
        app.router.add_post("/token", self._google_token)
        app.router.add_get("/user", self._user)
        app.router.add_get("/user/emails", self._emails)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def settings(self, **changed: Any) -> HooksSettings:
        known = {
            "github_client_id": CLIENT_ID,
            "github_client_secret": CLIENT_SECRET,
            "github_url": self.url,
            "github_api_url": self.url,
            "google_client_id": CLIENT_ID,
            "google_client_secret": CLIENT_SECRET,
            "google_url": self.url + "/",
            "google_api_url": self.url,
        }
        return HooksSettings(**{**known, **changed})

    async def _authorize(self, request: web.Request) -> web.Response:
        """The browser comes; the person agrees at once."""
        asked = request.query
        assert (asked["client_id"], asked["response_type"]) == (CLIENT_ID, "code")
        assert asked["code_challenge_method"] == "S256"
        scope = {"/login/oauth/authorize": "user:email", "/o/oauth2/v2/auth": "openid"}[request.path]
        assert scope in asked["scope"].split()
        code = secrets.token_urlsafe(8)
        self._logins[code] = _Login(
            self.person, asked["redirect_uri"], asked["code_challenge"], asked.get("nonce", "")
        )
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

    async def _exchanged(self, request: web.Request) -> _Login | str:
        """The login that a code is of, or the error."""
        self.calls += 1
        form = await request.post()
        if (form["client_id"], form["client_secret"]) != (CLIENT_ID, CLIENT_SECRET):
            return "invalid_client"
        login = self._logins.pop(str(form["code"]), None)  # a code is good once
        if login is None or form["grant_type"] != "authorization_code":
            return "invalid_grant"
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != login.challenge:
            return "invalid_grant"
        return login if form["redirect_uri"] == login.redirect_uri else "redirect_uri_mismatch"

    async def _github_token(self, request: web.Request) -> web.Response:
        login = await self._exchanged(request)
        if self.broken is not None:
            return self.broken
        if isinstance(login, str):
            error = {
                "invalid_grant": "bad_verification_code",
                "invalid_client": "incorrect_client_credentials",
            }
            return web.json_response({"error": error.get(login, login)})
        if request.headers["Accept"] != "application/json":
            return web.Response(text="access_token=x", content_type="application/x-www-form-urlencoded")
        token = secrets.token_hex(8)
        self._tokens[token] = login.person
        return web.json_response({"access_token": token, "token_type": "bearer", "scope": "user:email"})

    async def _google_token(self, request: web.Request) -> web.Response:
        login = await self._exchanged(request)
        if self.broken is not None:
            return self.broken
        if isinstance(login, str):
            return web.json_response({"error": login}, status=401 if login == "invalid_client" else 400)
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": str(login.person.id),
            "exp": self.now_seconds + 3600,
            "nonce": login.nonce,
            "email": login.person.email,
            "email_verified": login.person.verified,
            "name": login.person.name,
            **self.claims,
        }
        payload = base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()
        return web.json_response({"access_token": "unused", "id_token": f"e30.{payload}.c2ln"})

    def _bearer(self, request: web.Request) -> Person:
        person = self._tokens.get(request.headers["Authorization"].removeprefix("Bearer "))
        if person is None:
            raise web.HTTPUnauthorized
        return person

    async def _user(self, request: web.Request) -> web.Response:
        person = self._bearer(request)
        return web.json_response({"id": person.id, "login": "ghopper", "name": person.name, "email": None})

    async def _emails(self, request: web.Request) -> web.Response:
        person = self._bearer(request)
        own = {"email": person.email, "primary": True, "verified": person.verified, "visibility": None}
        return web.json_response([own] if self.emails is None else self.emails)
