"""Pure decisions: how keys look, what is kept of them, what they may do."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from crossdock.http.principals import ALL_PERMISSIONS, Principal
from crossdock.kit.ids import Random, nanoid

KEY_PREFIX = "dk_"
OPERATOR_LABEL = "operator"

READ_WORKSPACES = "workspaces:read"
WRITE_WORKSPACES = "workspaces:write"
READ_KEYS = "keys:read"
WRITE_KEYS = "keys:write"
SETTINGS = "settings"

# `sync:*` is for the pipelines of a workspace; workspaces themselves and settings are the operator's.
WORKSPACE_PERMISSIONS = frozenset({READ_WORKSPACES, READ_KEYS, WRITE_KEYS, "sync:read", "sync:write"})

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY = re.compile(r"dk_[A-Za-z0-9_-]{32,200}")
_SETTING_KEY = re.compile(r"[a-z][a-z0-9_.]{0,63}")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is kept of a key. It has 256 random bits, so a plain hash can't be searched for it."""

    key_hash: str
    key_prefix: str


def make_key(random: Random) -> str:
    return KEY_PREFIX + nanoid(random, 43, _BASE62)


def fingerprint(raw: str) -> Fingerprint:
    return Fingerprint(
        key_hash=hashlib.sha256(raw.encode()).hexdigest(),
        key_prefix=raw.removeprefix(KEY_PREFIX)[:8],
    )


def looks_like_key(raw: str) -> bool:
    """Anything else is refused without asking the database."""
    return _KEY.fullmatch(raw) is not None


def check_operator_key(raw: str) -> None:
    """For the setting: raises ValueError saying what an operator key must look like."""
    if not looks_like_key(raw):
        raise ValueError('must be "dk_" and 32 to 200 random letters, digits, "-" or "_"')


def principal_of_key(key_id: UUID, workspace_id: UUID | None) -> Principal:
    if workspace_id is None:
        return Principal("operator", str(key_id), None, ALL_PERMISSIONS)
    return Principal("workspace", str(key_id), str(workspace_id), WORKSPACE_PERMISSIONS)


def is_setting_key(key: str) -> bool:
    return _SETTING_KEY.fullmatch(key) is not None


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
