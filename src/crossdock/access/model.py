"""Workspaces, keys, sessions and settings, as the API shows them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """`workspace_id` null means full access: an operator's key."""

    id: UUID
    key_prefix: str
    label: str
    workspace_id: UUID | None
    is_active: bool
    created_at: datetime
    updated_at: datetime


class CreatedKey(ApiKey, frozen=True, kw_only=True):
    """A new key, with the only showing of the key itself."""

    key: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A login, without its id: that is the cookie, and never in a body."""

    api_key_id: UUID
    label: str
    workspace_id: UUID | None
    created_at: datetime
    expires_at: datetime


class StartedSession(Session, frozen=True, kw_only=True):
    cookie: str


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str
    updated_at: datetime
