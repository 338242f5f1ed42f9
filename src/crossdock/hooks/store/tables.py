"""The two tables of the contract, and the keys of everything in them.

    ferryhook-main    USER#{userId}          PROFILE | SRC#{sourceId} | KEY#{keyId}
                      SRC#{sourceId}         CONN#{connectionId}
                      EMAIL#… GITHUB#… GOOGLE#… STRIPE#…   UNIQUE      (guards: who has the value)
                      SESSION#{sha256}       SESSION
    ferryhook-events  SRC#{sourceId}         EVT#{receivedAt}#{eventId} | REF#{slot}
                      EVT#{eventId}          ATT#… | DLV#{connectionId}
                      DUP#{sourceId}#{sha256}  DUP
                      REPLAY#{id}            REPLAY
                      PARKING#{connectionId} PARKING   (there may be parked work)

Index keys of `ferryhook-main` are the contract's, and GSI2 lists users (`USERS`), GSI3 finds connections
(`CONNID#{connectionId}`). GSI2 of `ferryhook-events` holds due work (`DUE#{shard}`) and parked work
(`PARK#{connectionId}#{shard}`), sorted by the time from which anybody may take it.
"""

from __future__ import annotations

from typing import Literal

from crossdock.engines.items.port import Index, Table

MAIN = Table(
    "ferryhook-main",
    "PK",
    "SK",
    indexes=(
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("GSI3", "GSI3PK", "GSI3SK"),
    ),
    ttl="expiresAt",
    point_in_time_recovery=True,
)
EVENTS = Table(
    "ferryhook-events",
    "PK",
    "SK",
    indexes=(
        Index("GSI1", "GSI1PK", "GSI1SK", projection="keys"),
        Index("GSI2", "GSI2PK", "GSI2SK", projection="keys"),
    ),
    ttl="expiresAt",
    wide=("body", "headers"),
    point_in_time_recovery=True,
)
TABLES = (MAIN, EVENTS)


# --- ferryhook-main --------------------------------------------------------------------------------

USERS = "USERS"
"""The partition of GSI2 that lists users, by when they were made."""


def user_key(user_id: str) -> dict[str, str]:
    return {"PK": f"USER#{user_id}", "SK": "PROFILE"}


def source_key(user_id: str, source_id: str) -> dict[str, str]:
    return {"PK": f"USER#{user_id}", "SK": f"SRC#{source_id}"}


def connection_key(source_id: str, connection_id: str) -> dict[str, str]:
    return {"PK": f"SRC#{source_id}", "SK": f"CONN#{connection_id}"}


def api_key_key(user_id: str, key_id: str) -> dict[str, str]:
    return {"PK": f"USER#{user_id}", "SK": f"KEY#{key_id}"}


def guard_key(kind: Literal["EMAIL", "GITHUB", "GOOGLE", "STRIPE"], value: str) -> dict[str, str]:
    """Of the item that says whose a unique value is."""
    return {"PK": f"{kind}#{value}", "SK": "UNIQUE"}


def session_key(token_sha256: str) -> dict[str, str]:
    return {"PK": f"SESSION#{token_sha256}", "SK": "SESSION"}


# --- ferryhook-events ------------------------------------------------------------------------------


def event_key(source_id: str, received_at: int, event_id: str) -> dict[str, str]:
    return {"PK": f"SRC#{source_id}", "SK": f"EVT#{received_at:013d}#{event_id}"}


def delivery_key(event_id: str, connection_id: str) -> dict[str, str]:
    return {"PK": f"EVT#{event_id}", "SK": f"DLV#{connection_id}"}
