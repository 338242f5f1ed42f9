"""Who is asking. Slices make them (through resolvers), `http` carries them, services decide by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from crossdock.kit.errors import Forbidden, NotFound

ALL_PERMISSIONS = frozenset({"*"})


@dataclass(frozen=True, slots=True)
class Principal:
    """A credential that was found good.

    `kind` is what it is (`operator`, `workspace`, `device`, …), `id` the stored credential's own id, `tenant`
    whose things it may see (None: everybody's), `permissions` what it may do (`devices:ingest`; `*` is all).
    """

    kind: str
    id: str
    tenant: str | None
    permissions: frozenset[str]

    def may(self, permission: str) -> bool:
        return permission in self.permissions or "*" in self.permissions

    def sees(self, tenant: str | None) -> bool:
        """May it know of a thing of this tenant? What belongs to nobody (None) is the operator's alone."""
        return self.tenant is None or self.tenant == tenant


class Resolver(Protocol):
    """Turns one kind of credential into its principal.

    None: there is no such credential, or not any more. Raises `Unavailable` when that can't be known now; it
    never answers None for want of an engine, since a client would throw a good key away.
    """

    async def resolve(self, credential: str) -> Principal | None: ...


CredentialSource = Literal["authorization", "x-api-key", "cookie"]


@dataclass(frozen=True, slots=True)
class Credential:
    text: str
    source: CredentialSource


def require(principal: Principal, permission: str) -> None:
    """403 unless the principal may do it."""
    if not principal.may(permission):
        raise Forbidden("permission_denied", f"This credential lacks the permission {permission}.")


def require_sight(principal: Principal, tenant: str | None, missing: NotFound) -> None:
    """Raises `missing` for a thing of another tenant, as if it weren't there: 404, never 403."""
    if not principal.sees(tenant):
        raise missing
