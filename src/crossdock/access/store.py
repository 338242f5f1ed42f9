"""The SQL of access: the only file that knows its tables. Connections see the schema `derrick` first."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import asyncpg

from crossdock.access.model import ApiKey, Session, Setting, Workspace
from crossdock.access.rules import OPERATOR_LABEL, Fingerprint
from crossdock.engines.sql.target import Connection, Pool

_KEY_COLUMNS = "id, key_prefix, label, workspace_id, is_active, created_at, updated_at"
# A key whose workspace was deleted is as good as revoked.
_GOOD_KEY = """
    api_keys k LEFT JOIN workspaces w ON w.id = k.workspace_id
    WHERE k.is_active AND (k.workspace_id IS NULL OR w.deleted_at IS NULL)
"""

# --- workspaces --------------------------------------------------------------------------------------


async def insert_workspace(connection: Connection, workspace_id: UUID, name: str, now: datetime) -> Workspace:
    row = await connection.fetchrow(
        "INSERT INTO workspaces (id, name, created_at, updated_at) VALUES ($1, $2, $3, $3) RETURNING *",
        workspace_id,
        name,
        now,
    )
    assert row is not None
    return _workspace(row)


async def workspace(pool: Pool, workspace_id: UUID) -> Workspace | None:
    row = await pool.fetchrow("SELECT * FROM workspaces WHERE id = $1 AND deleted_at IS NULL", workspace_id)
    return None if row is None else _workspace(row)


async def hold_workspace(connection: Connection, workspace_id: UUID) -> bool:
    """Is it there? If so, nobody deletes it before this transaction ends."""
    row = await connection.fetchrow(
        "SELECT id FROM workspaces WHERE id = $1 AND deleted_at IS NULL FOR SHARE", workspace_id
    )
    return row is not None


async def workspaces(pool: Pool, only: UUID | None, before: UUID | None, count: int) -> list[Workspace]:
    """Newest first."""
    rows = await pool.fetch(
        """
        SELECT * FROM workspaces
        WHERE deleted_at IS NULL AND ($1::uuid IS NULL OR id = $1) AND ($2::uuid IS NULL OR id < $2)
        ORDER BY id DESC LIMIT $3
        """,
        only,
        before,
        count,
    )
    return [_workspace(row) for row in rows]


async def rename_workspace(pool: Pool, workspace_id: UUID, name: str, now: datetime) -> Workspace | None:
    row = await pool.fetchrow(
        "UPDATE workspaces SET name = $2, updated_at = $3 WHERE id = $1 AND deleted_at IS NULL RETURNING *",
        workspace_id,
        name,
        now,
    )
    return None if row is None else _workspace(row)


async def delete_workspace(pool: Pool, workspace_id: UUID, now: datetime) -> bool:
    row = await pool.fetchrow(
        """
        UPDATE workspaces SET deleted_at = $2, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL RETURNING id
        """,
        workspace_id,
        now,
    )
    return row is not None


def _workspace(row: asyncpg.Record) -> Workspace:
    return Workspace(**dict(row))


# --- keys --------------------------------------------------------------------------------------------


async def insert_key(
    connection: Connection,
    key_id: UUID,
    fingerprint: Fingerprint,
    *,
    label: str,
    workspace_id: UUID | None,
    now: datetime,
) -> ApiKey:
    row = await connection.fetchrow(
        f"""
        INSERT INTO api_keys (id, key_hash, key_prefix, label, workspace_id, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING {_KEY_COLUMNS}
        """,  # noqa: S608 (a constant)
        key_id,
        fingerprint.key_hash,
        fingerprint.key_prefix,
        label,
        workspace_id,
        now,
    )
    assert row is not None
    return _key(row)


async def key(pool: Pool, key_id: UUID) -> ApiKey | None:
    row = await pool.fetchrow(f"SELECT {_KEY_COLUMNS} FROM api_keys WHERE id = $1", key_id)  # noqa: S608
    return None if row is None else _key(row)


async def keys(pool: Pool, workspace_id: UUID | None, before: UUID | None, count: int) -> list[ApiKey]:
    """Newest first; of one workspace, or all."""
    rows = await pool.fetch(
        f"""
        SELECT {_KEY_COLUMNS} FROM api_keys
        WHERE ($1::uuid IS NULL OR workspace_id = $1) AND ($2::uuid IS NULL OR id < $2)
        ORDER BY id DESC LIMIT $3
        """,  # noqa: S608
        workspace_id,
        before,
        count,
    )
    return [_key(row) for row in rows]


async def relabel_key(pool: Pool, key_id: UUID, label: str, now: datetime) -> ApiKey | None:
    row = await pool.fetchrow(
        f"UPDATE api_keys SET label = $2, updated_at = $3 WHERE id = $1 RETURNING {_KEY_COLUMNS}",  # noqa: S608
        key_id,
        label,
        now,
    )
    return None if row is None else _key(row)


async def revoke_key(pool: Pool, key_id: UUID, now: datetime) -> ApiKey | None:
    """Revoking again changes nothing, not even `updated_at`."""
    row = await pool.fetchrow(
        f"""
        UPDATE api_keys SET is_active = false, updated_at = CASE WHEN is_active THEN $2 ELSE updated_at END
        WHERE id = $1 RETURNING {_KEY_COLUMNS}
        """,  # noqa: S608
        key_id,
        now,
    )
    return None if row is None else _key(row)


async def good_key(pool: Pool, key_hash: str) -> tuple[UUID, UUID | None] | None:
    """Id and workspace of the key that may authenticate with this hash."""
    row = await pool.fetchrow(
        f"SELECT k.id, k.workspace_id FROM {_GOOD_KEY} AND k.key_hash = $1",  # noqa: S608
        key_hash,
    )
    return None if row is None else (row["id"], row["workspace_id"])


async def put_operator_key(
    connection: Connection, key_id: UUID, fingerprint: Fingerprint, now: datetime
) -> bool:
    """Make it the only active operator key of the configuration. True: something changed."""
    replaced = await connection.fetch(
        """
        UPDATE api_keys SET is_active = false, updated_at = $3
        WHERE label = $1 AND workspace_id IS NULL AND is_active AND key_hash <> $2 RETURNING id
        """,
        OPERATOR_LABEL,
        fingerprint.key_hash,
        now,
    )
    written = await connection.fetchrow(
        """
        INSERT INTO api_keys (id, key_hash, key_prefix, label, workspace_id, created_at, updated_at)
        VALUES ($1, $2, $3, $4, NULL, $5, $5)
        ON CONFLICT (key_hash) DO UPDATE
            SET is_active = true, label = excluded.label, workspace_id = NULL,
                updated_at = excluded.updated_at
            WHERE NOT api_keys.is_active OR api_keys.label <> excluded.label
               OR api_keys.workspace_id IS NOT NULL
        RETURNING id
        """,
        key_id,
        fingerprint.key_hash,
        fingerprint.key_prefix,
        OPERATOR_LABEL,
        now,
    )
    return bool(replaced) or written is not None


def _key(row: asyncpg.Record) -> ApiKey:
    return ApiKey(**dict(row))


# --- sessions ----------------------------------------------------------------------------------------


async def insert_session(
    connection: Connection, session_id: UUID, key_id: UUID, now: datetime, expires_at: datetime
) -> Session | None:
    """None: the key is not good any more."""
    row = await connection.fetchrow(
        f"""
        WITH good AS (SELECT k.id, k.label, k.workspace_id FROM {_GOOD_KEY} AND k.id = $2),
        started AS (
            INSERT INTO sessions (id, api_key_id, created_at, expires_at)
            SELECT $1, good.id, $3, $4 FROM good RETURNING api_key_id, created_at, expires_at)
        SELECT started.*, good.label, good.workspace_id FROM started, good
        """,  # noqa: S608
        session_id,
        key_id,
        now,
        expires_at,
    )
    return None if row is None else Session(**dict(row))


async def session(pool: Pool, session_id: UUID, now: datetime) -> Session | None:
    row = await pool.fetchrow(
        f"""
        SELECT s.api_key_id, s.created_at, s.expires_at, good.label, good.workspace_id
        FROM sessions s JOIN (SELECT k.id, k.label, k.workspace_id FROM {_GOOD_KEY}) good
            ON good.id = s.api_key_id
        WHERE s.id = $1 AND s.expires_at > $2
        """,  # noqa: S608
        session_id,
        now,
    )
    return None if row is None else Session(**dict(row))


async def delete_session(pool: Pool, session_id: UUID) -> None:
    await pool.execute("DELETE FROM sessions WHERE id = $1", session_id)


async def delete_expired_sessions(pool: Pool, now: datetime) -> int:
    status = await pool.execute("DELETE FROM sessions WHERE expires_at <= $1", now)
    return int(status.rpartition(" ")[2])


# --- settings ----------------------------------------------------------------------------------------


async def setting(pool: Pool, key: str) -> Setting | None:
    row = await pool.fetchrow("SELECT * FROM settings WHERE key = $1", key)
    return None if row is None else Setting(**dict(row))


async def settings(pool: Pool, after: str | None, count: int) -> list[Setting]:
    rows = await pool.fetch(
        """
        SELECT * FROM settings WHERE $1::text IS NULL OR key > $1 ORDER BY key LIMIT $2
        """,
        after,
        count,
    )
    return [Setting(**dict(row)) for row in rows]


async def put_setting(pool: Pool, key: str, value: str, now: datetime) -> Setting:
    row = await pool.fetchrow(
        """
        INSERT INTO settings (key, value, updated_at) VALUES ($1, $2, $3)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
        RETURNING *
        """,
        key,
        value,
        now,
    )
    assert row is not None
    return Setting(**dict(row))


async def delete_setting(pool: Pool, key: str) -> bool:
    return await pool.fetchval("DELETE FROM settings WHERE key = $1 RETURNING key", key) is not None
