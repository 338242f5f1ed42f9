"""Idempotency-Key: a POST that is sent again is answered again, and done once.

- A record `{request_sha256, response}` is committed in the transaction of the effect itself
  (`idempotency_sql`, `idempotency_items`). There is no moment at which a crash leaves one without the other:
  before the commit nothing happened and the repeat does it; after it, the repeat finds the record.
- It is scoped to (principal, method, path, key): two principals may use one key without knowing.
- Only what was done is recorded. A refused request (4xx) leaves nothing, so it may be mended under its key.
- The same key with other bytes in its body or query is 409 `idempotency_conflict`. A repeat while the first
  is at work is 409 `idempotency_in_progress`, or waits for its answer: never a second effect.
- A record lives 24 hours. Its response is sealed; the secrets in it are repeated for 10 minutes, then masked.
- Without the engine there is no answer: the record lives where the effect does, so 503 says it for both.

A use case takes `IdempotentRequest | None` and returns `Once[T]`; a handler is three lines:

    @post("/keys")
    async def create_key(self, data: JSONBody[NewKey], principal: NamedDependency[Principal],
                         idempotency: NamedDependency[IdempotentRequest | None]) -> Response[CreatedKey]:
        return created(await self.service.create_key(principal, data, idempotency))
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from litestar import Request, Response
from litestar.params import HeaderParameter

from crossdock.http.guards import principal_of
from crossdock.http.principals import Principal
from crossdock.kit.errors import Conflict, FieldProblem, InvalidInput
from crossdock.kit.logging import MASK
from crossdock.kit.sealing import Sealer, SealError

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
KEPT_MS = 24 * 60 * 60 * 1000
SECRETS_SHOWN_MS = 10 * 60 * 1000

_KEY = re.compile(r"[\x20-\x7e]{1,255}")

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request that may come again: whose, which, and with what in it."""

    scope: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Once(Generic[T]):
    """A use case's result; `replayed`: it was done by an earlier request, and this is its answer."""

    value: T
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """How a use case's result is kept. `secrets` names its fields that must not be shown for long."""

    kind: type[T]
    secrets: tuple[str, ...] = ()

    def seal(self, value: T, request: IdempotentRequest, sealer: Sealer) -> str:
        return sealer.seal(msgspec.json.encode(value), _context(request))

    def unseal(self, response: str, request: IdempotentRequest, sealer: Sealer, age_ms: int) -> T:
        """Raises Conflict when it can't be read any more: its key was replaced, or its shape has changed."""
        try:
            value = msgspec.json.decode(sealer.unseal(response, _context(request)), type=self.kind)
        except (SealError, msgspec.DecodeError) as error:
            raise Conflict(
                "idempotency_answer_lost",
                "The first request with this key was carried out; its answer can't be shown again.",
                internal=str(error),
            ) from error
        if age_ms < SECRETS_SHOWN_MS:
            return value
        return msgspec.structs.replace(value, **dict.fromkeys(self.secrets, MASK))


def replay(
    stored: Stored[T],
    request: IdempotentRequest,
    sealer: Sealer,
    *,
    request_sha256: str,
    response: str,
    age_ms: int,
) -> Once[T]:
    """The answer to a repeat, from its record. Raises Conflict when the repeat asks for something else."""
    if request_sha256 != request.request_sha256:
        raise Conflict(
            "idempotency_conflict",
            f"This {HEADER} was used for another request. Use a new key for a new request.",
        )
    return Once(stored.unseal(response, request, sealer, age_ms), replayed=True)


def in_progress() -> Conflict:
    return Conflict(
        "idempotency_in_progress",
        f"A request with this {HEADER} is being carried out. Repeat it in a moment.",
        retry_after_seconds=1,
    )


def _context(request: IdempotentRequest) -> str:
    return f"idempotency:{request.scope}"


# --- from HTTP, and back -----------------------------------------------------------------------------


def identify(
    principal: Principal, *, method: str, path: str, query: bytes, key: str, body: bytes
) -> IdempotentRequest:
    """Pure. Every part is given its length, so that no two requests are run together into one text."""
    scope = _digest(principal.kind, principal.id, method, path.rstrip("/"), key)
    content = hashlib.sha256(b"%d:%s%s" % (len(query), query, body)).hexdigest()
    return IdempotentRequest(scope, content)


def _digest(*parts: str) -> str:
    return hashlib.sha256(
        b"".join(b"%d:%s" % (len(part.encode()), part.encode()) for part in parts)
    ).hexdigest()


def check_key(values: Sequence[str]) -> str | None:
    """The key of a request's `Idempotency-Key` headers, None without one. Raises InvalidInput."""
    if not values:
        return None
    if len(values) > 1 or _KEY.fullmatch(values[0]) is None:
        problem = FieldProblem(HEADER, "wrong_format", "One header of 1 to 255 printable ASCII characters.")
        raise InvalidInput(f"The {HEADER} header is not valid.", problem, code="invalid_idempotency_key")
    return values[0]


async def idempotent_request(
    request: Request[Any, Any, Any],
    idempotency_key: Annotated[
        str | None,
        HeaderParameter(
            name=HEADER, description="Any text of your own; a repeat with the same one is done once, in 24 h."
        ),
    ] = None,
) -> IdempotentRequest | None:
    """For `dependencies={"idempotency": Provide(idempotent_request)}`, below `authenticated`."""
    return None if idempotency_key is None else await identify_request(request, principal_of(request))


async def identify_request(request: Request[Any, Any, Any], principal: Principal) -> IdempotentRequest | None:
    """The same for a handler that finds its principal itself."""
    key = check_key(request.headers.getall(HEADER, []))
    if key is None:
        return None
    return identify(
        principal,
        method=str(request.method),
        path=request.scope["path"],
        query=request.scope["query_string"],
        key=key,
        body=await request.body(),
    )


def created(once: Once[T], status: int = 201) -> Response[T]:
    """The answer, which says whether it is a repeated one."""
    headers = {REPLAYED_HEADER: "true"} if once.replayed else {}
    return Response(once.value, status_code=status, headers=headers)
