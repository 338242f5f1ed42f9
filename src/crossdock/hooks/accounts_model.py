"""What the accounts part takes and answers beyond `model`. Frozen, and without I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from crossdock.hooks.model import Plan

EMAIL_PATTERN = r"^[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,187}[A-Za-z0-9])?\Z"
USER_ID_PATTERN = r"^usr_[A-Za-z0-9_-]{16}\Z"
KEY_ID_PATTERN = r"^key_[A-Za-z0-9_-]{16}\Z"

KEYS_MAX = 100
"""Keys of a user."""
SESSION_SECONDS = 86_400

# ASCII, since other alphabets have letters that look like these or become them in lower case: an address
# that was proven at an identity provider must never be taken for somebody else's.
Email: TypeAlias = Annotated[
    str, Meta(pattern=EMAIL_PATTERN, description="an e-mail address in ASCII, like ann@example.com")
]
Name: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f]{1,128}\Z", description="1 to 128 characters, without control characters"
    ),
]
Password: TypeAlias = Annotated[str, Meta(max_length=1024, description="8 to 72 bytes")]
AlertUrl: TypeAlias = Annotated[str, Meta(max_length=2048, description="an http or https URL")]
StripeCustomerId: TypeAlias = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_]{1,128}\Z", description="a Stripe customer id, like cus_NffrFeUfNV2Hib")
]


class OAuthProvider(StrEnum):
    GITHUB = "github"
    GOOGLE = "google"


class StartedSession(msgspec.Struct, frozen=True):
    """`token` is shown this once."""

    token: str
    expires_at: str


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Periods begin at midnight UTC; `period_end` is the first day of the next one."""

    plan: Plan
    period_start: str
    period_end: str
    used: int
    limit: int
    remaining: int


class BillingOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of an event of Stripe's: the user's plan, or why nothing was changed."""

    applied: bool
    plan: Plan | None = None
    reason: str | None = None
