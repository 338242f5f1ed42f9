"""Sources and connections of a bench, and signed requests to them."""

from __future__ import annotations

import contextlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime

from bench.harness.load import render_request
from bench.harness.options import Options
from bench.harness.servers import Product, running_product

SECRET = "a secret of the bench"
BODY_BYTES = 1024
ENVIRON = {"CROSSDOCK_HOOKS_MONTHLY_EVENTS_TEAM": "1000000000"}


@dataclass(frozen=True)
class Source:
    """One of GitHub's, whose deliveries all have ids of their own."""

    product: Product
    source_id: str

    def requests(self) -> Iterator[bytes]:
        for number in itertools.count():
            yield self.request(f"{self.source_id}-{number:08d}")

    def request(self, delivery_id: str) -> bytes:
        body = json.dumps({"id": delivery_id, "action": "opened", "padding": ""}).encode()
        body = body[:-2] + b"x" * (BODY_BYTES - len(body)) + b'"}'
        signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/044aadd",
            "X-GitHub-Event": "issues",
            "X-GitHub-Delivery": delivery_id,
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        return render_request("POST", f"/in/{self.source_id}", headers, body)

    async def event_count(self) -> int:
        found = await self.product.call("GET", f"/v1/hooks/sources/{self.source_id}")
        return int(found["event_count"])

    async def connect(self, url: str) -> str:
        made = await self.product.call(
            "POST",
            f"/v1/hooks/sources/{self.source_id}/connections",
            {"name": "bench", "destination_url": url},
        )
        return str(made["connection_id"])

    async def delivered(self, connection_id: str) -> int:
        found = await self.product.call("GET", f"/v1/hooks/connections/{connection_id}")
        return int(found["delivery_count"])

    async def latencies_ms(self, since_ms: float) -> list[float]:
        """From receipt to recorded delivery, of the events since then."""
        found: list[float] = []
        cursor = ""
        while True:
            path = f"/v1/hooks/sources/{self.source_id}/events?limit=200{cursor}"
            page = await self.product.call("GET", path)
            for event in page["data"]:
                received_ms = _ms(event["received_at"])
                if received_ms < since_ms:
                    return found
                if event["delivered_at"] is not None:
                    found.append(_ms(event["delivered_at"]) - received_ms)
            if page["next_cursor"] is None:
                return found
            cursor = f"&cursor={page['next_cursor']}"


def _ms(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1000


@contextlib.asynccontextmanager
async def running_hooks(options: Options, name: str) -> AsyncIterator[Product]:
    directory = options.directory / name
    async with running_product(
        directory, workers=options.workers, slices=["hooks"], environ=ENVIRON
    ) as product:
        yield product


async def make_user(product: Product) -> str:
    user = {"email": "bench@example.com", "name": "Bench", "plan": "team"}
    return str((await product.call("POST", "/v1/hooks/users", user))["user_id"])


async def make_source(product: Product, user_id: str, secret: str | None = SECRET) -> Source:
    wanted = {"user_id": user_id, "name": "bench", "provider": "github", "signing_secret": secret}
    made = await product.call("POST", "/v1/hooks/sources", wanted)
    return Source(product, str(made["source_id"]))
