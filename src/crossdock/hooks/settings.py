"""Settings of the hooks slice: `CROSSDOCK_HOOKS_…`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crossdock.hooks.model import Plan
from crossdock.kit.configuration import setting, url


@dataclass(frozen=True, slots=True)
class HooksSettings:
    signup: Literal["closed", "open"] = setting(
        "closed", "Whether anybody may make a user; when closed, the operator makes them."
    )
    monthly_events_free: int = setting(10_000, "Events a month on the plan free.", minimum=0)
    monthly_events_starter: int = setting(100_000, "Events a month on the plan starter.", minimum=0)
    monthly_events_pro: int = setting(1_000_000, "Events a month on the plan pro.", minimum=0)
    monthly_events_team: int = setting(10_000_000, "Events a month on the plan team.", minimum=0)
    stripe_webhook_secret: str | None = setting(
        None, "Signing secret of Stripe's own webhooks, which move users between plans.", secret=True
    )
    stripe_prices: tuple[str, ...] = setting(
        (), "Which plan a Stripe price buys, as price_id=plan, comma-separated."
    )
    github_client_id: str | None = setting(None, "OAuth application at GitHub, for signing in with it.")
    github_client_secret: str | None = setting(None, "Its secret.", secret=True)
    github_url: str = setting(
        "https://github.com", "GitHub, or a GitHub Enterprise.", check=url("http", "https")
    )
    github_api_url: str = setting("https://api.github.com", "Its API.", check=url("http", "https"))
    google_client_id: str | None = setting(None, "OAuth client at Google, for signing in with it.")
    google_client_secret: str | None = setting(None, "Its secret.", secret=True)
    google_url: str = setting(
        "https://accounts.google.com", "Where Google asks its user.", check=url("http", "https")
    )
    google_api_url: str = setting(
        "https://oauth2.googleapis.com", "Where Google gives tokens.", check=url("http", "https")
    )
    deliveries_at_once: int = setting(
        128, "Deliveries under way at a time in each process.", minimum=1, maximum=1_000
    )

    def monthly_events(self, plan: Plan) -> int:
        return {
            Plan.FREE: self.monthly_events_free,
            Plan.STARTER: self.monthly_events_starter,
            Plan.PRO: self.monthly_events_pro,
            Plan.TEAM: self.monthly_events_team,
        }[plan]
