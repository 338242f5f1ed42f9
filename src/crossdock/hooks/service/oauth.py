"""Signing in with GitHub or Google (OAuth 2 with PKCE): there and back, and whose login it is.

- `state` is sealed: nobody else can make one, and it says until when it is good. A cookie binds it to the
  browser; its value is the PKCE verifier. So neither a login that somebody else began nor a code that was
  overheard is of any use.
- Who comes back is the user that the identity is linked to; else the one with the e-mail address that the
  provider verified, who is linked now; else, where sign-up is open, a new one.
- An address that a user merely claimed (signed up with, or changed to by itself) is no proof that it is the
  same person, so nobody is let in by it: 409, and that user's password goes on working.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from crossdock.engines.items.port import Item, Items
from crossdock.hooks.accounts_model import OAuthProvider, StartedSession
from crossdock.hooks.rules.oauth import Identity, authorization_url, challenge_of
from crossdock.hooks.service.logins import Logins, Proven
from crossdock.hooks.service.oauth_providers import TITLES, OAuthProviders
from crossdock.hooks.service.principals import new_token
from crossdock.hooks.service.users import changed_meanwhile, new_user_id
from crossdock.hooks.store import accounts as store
from crossdock.hooks.store.guards import email_guard_key, holder_of
from crossdock.hooks.store.tables import MAIN, user_key
from crossdock.kit.clock import Clock
from crossdock.kit.errors import Conflict, FieldProblem, Forbidden, InvalidInput, MalformedRequest
from crossdock.kit.ids import Random
from crossdock.kit.sealing import Sealer, SealError

STATE_SECONDS = 600
_STATE_CONTEXT = "hooks.oauth:state"
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Beginning:
    url: str
    """Where the browser is sent."""
    cookie: str
    cookie_path: str


@dataclass(frozen=True, slots=True)
class Return:
    """What the browser comes back with."""

    state: str | None
    code: str | None
    error: str | None
    cookie: str | None


class _State(msgspec.Struct, frozen=True):
    provider: OAuthProvider
    challenge: str
    expires_at: int


_state = msgspec.json.Decoder(_State)


class OAuth:
    def __init__(
        self,
        items: Items,
        providers: OAuthProviders,
        logins: Logins,
        sealer: Sealer,
        *,
        may_sign_up: bool,
        clock: Clock,
        random: Random,
    ) -> None:
        self._items = items
        self._providers = providers
        self._logins = logins
        self._sealer = sealer
        self._may_sign_up = may_sign_up
        self._clock = clock
        self._random = random

    def begin(self, provider: OAuthProvider) -> Beginning:
        application = self._providers.application(provider)
        verifier = new_token("", self._random)
        challenge = challenge_of(verifier)
        state = _State(provider, challenge, self._clock.now_ms() // 1000 + STATE_SECONDS)
        url = authorization_url(
            application.authorize_url,
            client_id=application.client_id,
            redirect_uri=application.redirect_uri,
            scope=application.scope,
            state=self._sealer.seal(msgspec.json.encode(state), _STATE_CONTEXT),
            challenge=challenge,
        )
        return Beginning(url, verifier, application.cookie_path)

    def cookie_path(self, provider: OAuthProvider) -> str:
        return self._providers.application(provider).cookie_path

    async def finish(self, provider: OAuthProvider, came: Return) -> StartedSession:
        application = self._providers.application(provider)
        verifier = self._verifier(provider, came)
        if came.error is not None:
            raise Forbidden("oauth_denied", f"{TITLES[provider]} did not let you in.", internal=came.error)
        if not came.code:
            problem = FieldProblem("code", "required", "This parameter is required.")
            raise InvalidInput("A parameter is missing.", problem)
        nonce = challenge_of(verifier)
        identity = await self._providers.identity(application, came.code, verifier, nonce)
        return (await self._logins.start(await self._user_of(identity))).value

    def _verifier(self, provider: OAuthProvider, came: Return) -> str:
        """Raises MalformedRequest for a login that this browser did not begin here, or too long ago."""
        verifier = came.cookie or ""
        try:
            state = _state.decode(self._sealer.unseal(came.state or "", _STATE_CONTEXT))
            is_same_browser = state.challenge == challenge_of(verifier)
        except (SealError, UnicodeEncodeError, msgspec.DecodeError) as error:
            raise _invalid_state() from error
        is_over = state.expires_at <= self._clock.now_ms() // 1000
        if state.provider is not provider or not is_same_browser or is_over:
            raise _invalid_state()
        return verifier

    # --- whose login it is ---

    async def _user_of(self, identity: Identity) -> Proven:
        for _ in range(_ATTEMPTS):
            item = await self._linked_user(identity)
            if item is None:
                item = await self._user_with_address(identity)
                if item is None:
                    await self._sign_up(identity)
                else:
                    await self._link(item, identity)
                continue  # done, or somebody was faster: either way it is linked now
            login = store.login_of(item)
            return Proven(login.user_id, login.session_epoch)
        raise changed_meanwhile()

    async def _linked_user(self, identity: Identity) -> Item | None:
        return await self._guarded(store.link_guard_key(identity.provider, identity.id))

    async def _user_with_address(self, identity: Identity) -> Item | None:
        if identity.email is None:
            raise Forbidden(
                "email_not_verified",
                f"{TITLES[identity.provider]} has verified no e-mail address of yours that can be used here.",
            )
        return await self._guarded(email_guard_key(identity.email))

    async def _guarded(self, key: dict[str, str]) -> Item | None:
        guard = await self._items.get(MAIN, key)
        return None if guard is None else await self._items.get(MAIN, user_key(holder_of(guard)))

    async def _link(self, item: Item, identity: Identity) -> None:
        user, now_ms = store.user_of(item), self._clock.now_ms()
        if identity.email is None or user.email.lower() != identity.email.lower():
            return  # it was changed between two reads
        link = store.link_of(item, identity.provider)
        if link == identity.id:
            return  # by a twin of this login, between two reads
        if not store.is_email_proven(item):
            raise Conflict(
                "email_not_proven",
                "A user has this e-mail address, and has never proven it. Log in with that user's password, "
                "or ask the operator.",
            )
        if link is not None:
            raise Conflict(
                "linked_to_other",
                f"The user with this e-mail address has another {TITLES[identity.provider]} account.",
            )
        await self._items.transact(store.linked(user, identity.provider, identity.id, now_ms))

    async def _sign_up(self, identity: Identity) -> None:
        if not self._may_sign_up:
            raise Forbidden("signup_closed", "Nobody signs up by itself here: ask the operator for a user.")
        assert identity.email is not None
        new = store.NewUser(
            user_id=new_user_id(self._random),
            email=identity.email,
            name=identity.name,
            link=(identity.provider, identity.id),
            email_proven=True,
        )
        await self._items.transact(store.new_user(new, self._clock.now_ms()))


def _invalid_state() -> MalformedRequest:
    return MalformedRequest(
        "invalid_oauth_state", "This login was not begun in this browser, or too long ago. Start again."
    )
