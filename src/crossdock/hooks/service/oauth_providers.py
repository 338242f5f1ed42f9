"""The calls to GitHub and Google: a code becomes tokens, and tokens become who it is.

Whatever a provider does wrong is 503, with the reason in the log; only a code that it does not take is the
caller's fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlencode, urlsplit

import msgspec

from crossdock.hooks.accounts_model import OAuthProvider
from crossdock.hooks.rules.oauth import Identity, NotAnIdentity, github_identity, google_identity
from crossdock.hooks.settings import HooksSettings
from crossdock.http.client import Answer, CallFailed, GuardedClient
from crossdock.kit.clock import Clock
from crossdock.kit.errors import InvalidInput, NotFound, Unauthenticated, Unavailable

TITLES = {OAuthProvider.GITHUB: "GitHub", OAuthProvider.GOOGLE: "Google"}
TIMEOUT_SECONDS = 10.0
# What is said of a code that was used, made up, or of another login; anything else is between them and us.
_CODE_ERRORS = frozenset({"bad_verification_code", "invalid_grant"})

Headers: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class Application:
    """We, as a provider knows us."""

    provider: OAuthProvider
    client_id: str
    client_secret: str
    authorize_url: str
    token_url: str
    scope: str
    redirect_uri: str

    @property
    def cookie_path(self) -> str:
        """What the browser sends the callback's cookie to."""
        return urlsplit(self.redirect_uri).path.removesuffix("/callback")


class _Tokens(msgspec.Struct):
    access_token: str | None = None
    id_token: str | None = None
    error: str | None = None


_tokens = msgspec.json.Decoder(_Tokens)


class OAuthProviders:
    def __init__(self, client: GuardedClient, settings: HooksSettings, public_url: str, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._public_url = public_url.rstrip("/")
        self._clock = clock
        self._github_api_url = settings.github_api_url.rstrip("/")
        self._google_issuer = settings.google_url.rstrip("/")

    def application(self, provider: OAuthProvider) -> Application:
        """Raises NotFound for a provider that this server is not set up for."""
        settings = self._settings
        if provider is OAuthProvider.GITHUB:
            client_id, secret = settings.github_client_id, settings.github_client_secret
            base = settings.github_url.rstrip("/")
            authorize_url, token_url = f"{base}/login/oauth/authorize", f"{base}/login/oauth/access_token"
            scope = "read:user user:email"
        else:
            client_id, secret = settings.google_client_id, settings.google_client_secret
            authorize_url = f"{self._google_issuer}/o/oauth2/v2/auth"
            token_url = f"{settings.google_api_url.rstrip('/')}/token"
            scope = "openid email profile"
        if client_id is None or secret is None:
            raise NotFound(
                "oauth_not_configured", f"This server is not set up for signing in with {TITLES[provider]}."
            )
        redirect_uri = f"{self._public_url}/v1/hooks/oauth/{provider}/callback"
        return Application(provider, client_id, secret, authorize_url, token_url, scope, redirect_uri)

    async def identity(self, application: Application, code: str, verifier: str, nonce: str) -> Identity:
        """Raises Unauthenticated for a code that is not good, Unavailable for a provider that is not."""
        tokens = await self._exchange(application, code, verifier)
        try:
            if application.provider is OAuthProvider.GITHUB:
                return await self._github_identity(tokens)
            return google_identity(
                tokens.id_token or "",
                issuer=self._google_issuer,
                client_id=application.client_id,
                nonce=nonce,
                now_ms=self._clock.now_ms(),
            )
        except NotAnIdentity as error:
            raise _failed(application.provider, str(error)) from error

    async def _exchange(self, application: Application, code: str, verifier: str) -> _Tokens:
        form = {
            "grant_type": "authorization_code",
            "client_id": application.client_id,
            "client_secret": application.client_secret,
            "code": code,
            "redirect_uri": application.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        body = urlencode(form).encode()
        answer = await self._call(application.provider, "POST", application.token_url, headers, body)
        try:
            tokens = _tokens.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _failed(application.provider, f"status {answer.status}: {error}") from error
        if tokens.error in _CODE_ERRORS:
            raise Unauthenticated(
                "oauth_code_invalid", "The code is not valid, or not any more. Start again."
            )
        if tokens.error is not None or answer.status != 200:
            raise _failed(application.provider, f"status {answer.status}: {tokens.error}")
        return tokens

    async def _github_identity(self, tokens: _Tokens) -> Identity:
        headers = {
            "Authorization": f"Bearer {tokens.access_token or ''}",
            "Accept": "application/vnd.github+json",
        }
        user = await self._github(headers, "/user")
        emails = await self._github(headers, "/user/emails?per_page=100")
        if user.status != 200:
            raise NotAnIdentity(f"/user: status {user.status}")
        # An application may be refused the addresses; who is linked already can do without.
        return github_identity(user.body, emails.body if emails.status == 200 else b"[]")

    async def _github(self, headers: Headers, path: str) -> Answer:
        return await self._call(OAuthProvider.GITHUB, "GET", self._github_api_url + path, headers, None)

    async def _call(
        self, provider: OAuthProvider, method: str, url: str, headers: Headers, body: bytes | None
    ) -> Answer:
        try:
            return await self._client.send(
                method, url, headers=headers, body=body, timeout_seconds=TIMEOUT_SECONDS
            )
        except (CallFailed, InvalidInput) as error:
            raise _failed(provider, str(error)) from error


def _failed(provider: OAuthProvider, reason: str) -> Unavailable:
    return Unavailable(
        "oauth_provider_failed",
        f"{TITLES[provider]} did not say who you are. Try again later.",
        internal=reason,
        retry_after_seconds=5,
    )
