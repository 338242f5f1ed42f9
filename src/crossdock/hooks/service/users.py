"""Users: made, shown, listed, changed.

An e-mail address is one user's, in any case of its letters, however many ask for it at once: that rests on
guards in the user's own transactions, never on an index. A new password ends the user's sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossdock.engines.items.port import Items, Put, Refused, Write
from crossdock.hooks.model import Plan, User
from crossdock.hooks.rules.passwords import check_password
from crossdock.hooks.service.passwords import PasswordHasher
from crossdock.hooks.service.principals import SessionResolver, checked_user_id, no_user
from crossdock.hooks.store import accounts as store
from crossdock.hooks.store.guards import GuardKind, email_guard_key, holder_of, taken
from crossdock.hooks.store.tables import MAIN, user_key
from crossdock.http.idempotency import IdempotentRequest, Once, Stored
from crossdock.http.idempotency_items import Effect, ItemsIdempotency
from crossdock.http.outgoing import check_url
from crossdock.http.pages import Page, PageRequest
from crossdock.kit.clock import Clock, ms_from_rfc3339
from crossdock.kit.errors import Conflict, FieldProblem, InvalidInput, MalformedRequest, NotFound
from crossdock.kit.ids import Random, nanoid
from crossdock.kit.pagination import encode_cursor

_CREATED = Stored(User)
_POSITION = {"created_at": str, "user_id": str}
_ATTEMPTS = 5
_NOBODY = "usr_"
"""No user's id: looked up for an unknown e-mail address, so that it takes as long as for a known one."""


class Users:
    def __init__(
        self,
        items: Items,
        idempotency: ItemsIdempotency,
        hasher: PasswordHasher,
        sessions: SessionResolver,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._items = items
        self._idempotency = idempotency
        self._hasher = hasher
        self._sessions = sessions
        self._clock = clock
        self._random = random

    async def create(
        self,
        fields: Mapping[str, str | None],
        request: IdempotentRequest | None,
        *,
        email_proven: bool,
    ) -> Once[User]:
        """`fields`: email and name; perhaps password, plan, alert_url, stripe_customer_id."""
        password = fields.get("password")
        _check(fields)
        if password is not None:
            request = await self._hasher.guarded(request)

        async def prepare() -> Effect[User]:
            new = store.NewUser(
                user_id=new_user_id(self._random),
                email=str(fields["email"]),
                name=str(fields["name"]),
                plan=Plan(fields.get("plan") or Plan.FREE),
                password_hash=None if password is None else await self._hasher.hash(password),
                alert_url=fields.get("alert_url"),
                stripe_customer_id=fields.get("stripe_customer_id"),
                email_proven=email_proven,
            )
            writes = store.new_user(new, self._clock.now_ms())
            return Effect(_user_in(writes), writes)

        once = await self._idempotency.once(request, _CREATED, prepare)
        if isinstance(once, Refused):
            raise _conflict(once)
        return once

    async def get(self, user_id: str) -> User:
        item = await self._items.get(MAIN, user_key(checked_user_id(user_id)))
        if item is None:
            raise no_user()
        return store.user_of(item)

    async def list(self, page: PageRequest) -> Page[User]:
        """Newest first. The index says which, the table what they are now."""
        position = page.after(_POSITION)
        after = None if position is None else _checked_position(position)
        found = await self._items.query(store.users_by_age(page.limit, after))
        current = await self._items.get_many(MAIN, [MAIN.key_of(item) for item in found.items])
        users = [store.user_of(item) for item in current if item is not None]
        if found.cursor is None:
            return Page(users, None)
        return Page(users, encode_cursor(store.age_position(found.items[-1])))

    async def change(
        self, user_id: str, fields: Mapping[str, str | None], *, email_proven: bool = False
    ) -> User:
        """`fields`: those of `create` to change; None removes."""
        _check(fields)
        changed = {name: value for name, value in fields.items() if name != "password"}
        password = fields.get("password")
        if password is not None:
            await self.get(user_id)  # before the work of hashing
            changed["password_hash"] = await self._hasher.hash(password)
        for _ in range(_ATTEMPTS):
            user = await self.get(user_id)
            if not changed:
                return user
            now_ms = self._clock.now_ms()
            writes = store.user_changed(user, changed, now_ms, email_proven=email_proven)
            outcome = await self._items.transact(writes)
            if not isinstance(outcome, Refused):
                if password is not None:
                    self._sessions.forget_all()
                return await self.get(user_id)
            if taken(outcome) is not None:
                raise _conflict(outcome)
        raise changed_meanwhile()

    # --- for logins ---

    async def login_of_email(self, email: str) -> store.Login | None:
        """By the guard, which is never late; None: nobody has this address."""
        guard = await self._items.get(MAIN, email_guard_key(email))
        user_id = _NOBODY if guard is None else holder_of(guard)
        item = await self._items.get(MAIN, user_key(user_id))
        if item is None or str(item["email"]).lower() != email.lower():
            return None
        return store.login_of(item)


def new_user_id(random: Random) -> str:
    return f"usr_{nanoid(random, 16)}"


def changed_meanwhile() -> Conflict:
    return Conflict("user_changed", "The user is being changed by others. Try again.", retry_after_seconds=1)


def _check(fields: Mapping[str, str | None]) -> None:
    """What the types of the fields can't say. Raises InvalidInput."""
    password, alert_url = fields.get("password"), fields.get("alert_url")
    if password is not None:
        check_password(password)
    if alert_url is not None:
        try:
            check_url(alert_url)
        except InvalidInput as error:
            problem = FieldProblem("alert_url", error.code, error.message)
            raise InvalidInput(error.message, problem, code=error.code) from error


_TAKEN: dict[GuardKind | None, tuple[str, str]] = {
    "EMAIL": ("email_taken", "A user with this e-mail address exists."),
    "STRIPE": ("stripe_customer_taken", "Another user is this Stripe customer."),
}


def _conflict(refused: Refused) -> Conflict:
    kind = taken(refused)
    return Conflict(*_TAKEN[kind]) if kind in _TAKEN else changed_meanwhile()


def _user_in(writes: Sequence[Write]) -> User:
    put = writes[0]
    assert isinstance(put, Put)
    return store.user_of(put.item)


def _checked_position(position: Mapping[str, str | int]) -> tuple[str, str]:
    """A cursor comes back from the client: a store is not asked to begin at a place that can't exist."""
    created_at, user_id = str(position["created_at"]), str(position["user_id"])
    try:
        ms_from_rfc3339(created_at)
        return created_at, checked_user_id(user_id)
    except (ValueError, NotFound):
        raise MalformedRequest(
            "invalid_cursor", "The cursor is not one this list gave out. Start again without a cursor."
        ) from None
