"""The hooks part of `crossdock tour`: a GitHub webhook's way from its sender to a receiver on this machine.

The receiver listens on loopback. Where the server can't call it (it is another machine, or may not call
loopback addresses), the steps that need a delivery say so and leave it at that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from crossdock.hooks.model import DeliveryState, EventStatus
from crossdock.hooks.rules.outbound import REPLAY_HEADER
from crossdock.hooks.rules.samples import SampleWebhook, sample_webhook
from crossdock.hooks.rules.searching import moment
from crossdock.hooks.tour_receiver import Received, TourReceiver
from crossdock.kit.ids import token_hex
from crossdock.kit.signing import sign
from crossdock.terminal.client import ApiClient, path
from crossdock.terminal.failures import CommandFailed
from crossdock.terminal.options import is_this_machine
from crossdock.terminal.tour import Step, Tour, Unexpected, Visitor, expect, expect_refusal

USER_EMAIL = "tour@crossdock.invalid"
"""Users can't be deleted: every tour is this one's."""
DELIVERED_WITHIN_SECONDS = 10.0
REVOKED_WITHIN_SECONDS = 5.0
RETRY_SECONDS = 3600
"""A broken delivery is not tried again while the tour lasts."""


class WebhooksWay:
    """What the steps share: a source, its connection, the receiver, and the events that were sent."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._operator = visitor.client
        self._user: ApiClient = visitor.client
        self._provider = ApiClient(visitor.client.base_url, None)
        self._receiver = TourReceiver()
        self._github_secret = token_hex(20, visitor.random)
        self._began_at_ms = visitor.clock.now_ms()
        self._user_id: str | None = None
        self._key_id: str | None = None
        self._source_id: str | None = None
        self._connection_id: str | None = None
        self._connection_secret = ""
        self._webhook = self._sample(self._github_secret)
        self._event_id = ""
        self._broken_event_id = ""
        self._left_out = ""
        """Why nothing can be delivered to this machine; empty: it can."""

    # --- setting up ---------------------------------------------------------------------------------

    def make_user_and_key(self) -> str:
        self._user_id = self._tour_user()
        wanted = {"user_id": self._user_id, "name": "crossdock tour", "permissions": "write"}
        key = self._operator.post("/v1/hooks/keys", wanted)
        self._key_id = key["key_id"]
        self._user = self._visitor.client_with(key["api_key"])
        expect(key["api_key"][:3], "fh_", "beginning of the key")
        expect(self._user.get("/v1/hooks/me")["user_id"], self._user_id, "user_id")
        return f"user {self._user_id}, key {self._key_id}"

    def make_source(self) -> str:
        wanted = {"name": "tour", "provider": "github", "signing_secret": self._github_secret}
        source = self._user.post("/v1/hooks/sources", wanted)
        self._source_id = source["source_id"]
        expect(source["has_secret"], True, "has_secret")
        expect(source["ingest_url"].endswith(f"/in/{self._source_id}"), True, "an ingest_url of the source")
        expect(self._github_secret in str(source), False, "the secret in the answer")
        return f"source {self._source_id}"

    def make_connection(self) -> str:
        if not is_this_machine(self._operator.base_url):
            self._left_out = "left out: the server is not on this machine, and can't call it"
            return self._left_out
        self._receiver.start()
        wanted = {
            "name": "tour",
            "destination_url": self._receiver.url,
            "retry_config": {"schedule_seconds": [0, RETRY_SECONDS]},
        }
        try:
            made = self._user.post(
                path("v1", "hooks", "sources", str(self._source_id), "connections"), wanted
            )
        except CommandFailed as refusal:
            if refusal.code != "egress_refused":
                raise
            self._left_out = "left out: the server may not call 127.0.0.1 (CROSSDOCK_EGRESS_ALLOW)"
            return self._left_out
        self._connection_id = made["connection_id"]
        self._connection_secret = made["signing_secret"]
        expect(self._connection_secret[:6], "whsec_", "beginning of the signing secret")
        return f"connection {self._connection_id} to {self._receiver.url}"

    # --- coming in ----------------------------------------------------------------------------------

    def send(self) -> str:
        self._event_id = self._send(self._webhook)
        return f"event {self._event_id}"

    def send_again(self) -> str:
        expect(self._send(self._webhook), self._event_id, "event of the same delivery")
        expect(len(self._events()), 1, "events")
        expect(len(self._receiver.received), 0 if self._left_out else 1, "calls to the receiver")
        return "the first event's id, and nothing delivered"

    def send_forged(self) -> str:
        forged = self._sample("a secret of somebody else")
        refused = expect_refusal("invalid_signature", lambda: self._send(forged))
        reasons = [each["reason"] for each in self._user.get(f"{self._source_path}/refused")["data"]]
        expect(reasons, ["signature_mismatch"], "reasons in the list of refused requests")
        return f"{refused}, and in the list: {reasons[0]}"

    def read_body(self) -> str:
        event = self._user.get(path("v1", "hooks", "events", self._event_id))
        expect((event["method"], event["verified"]), ("POST", True), "method, verified")
        expect(event["body"].encode(), self._webhook.body, "body")
        return f"{event['size']} bytes, verified"

    # --- going out ----------------------------------------------------------------------------------

    def see_delivered(self) -> str:
        if self._left_out:
            return self._left_out
        received = self._receiver.received
        self._wait(lambda: bool(received), "the receiver was not called", self._event_id)
        self._expect_signed(received[0], self._event_id)
        expect(received[0].body, self._webhook.body, "body")
        self._wait_for_status(EventStatus.DELIVERED, self._event_id)
        return "byte for byte, its signature valid"

    def see_attempts(self) -> str:
        if self._left_out:
            return self._left_out
        attempts = self._attempts(self._event_id)
        expect([(each["attempt_number"], each["status_code"]) for each in attempts], [(1, 200)], "attempts")
        return f"1 attempt, 200 after {attempts[0]['latency_ms']} ms"

    def break_receiver(self) -> str:
        if self._left_out:
            return self._left_out
        self._receiver.status = 500
        self._broken_event_id = self._send(self._sample(self._github_secret))
        self._wait_for_status(EventStatus.RETRYING, self._broken_event_id)
        attempts = self._attempts(self._broken_event_id)
        expect([each["status_code"] for each in attempts], [500], "status codes")
        return "500, and waiting for its next attempt"

    def replay(self) -> str:
        if self._left_out:
            return self._left_out
        self._receiver.status = 200
        replayed = self._user.post(path("v1", "hooks", "events", self._broken_event_id, "replay"), {})
        self._wait_for_status(EventStatus.DELIVERED, self._broken_event_id)
        last = self._receiver.received[-1]
        self._expect_signed(last, self._broken_event_id)
        expect(last.header(REPLAY_HEADER), replayed["generation"], REPLAY_HEADER)
        return "delivered, and marked as a replay"

    # --- trying out ---------------------------------------------------------------------------------

    def try_filter(self) -> str:
        verdicts = []
        for branch in ("main", "release"):
            filters = [{"on": "body", "match": {"ref": {"$endsWith": f"/{branch}"}}}]
            wanted = {"filters": filters, "event_id": self._event_id}
            verdicts.append(self._user.post("/v1/hooks/filters/test", wanted)["matches"])
        expect(verdicts, [True, False], "does the branch match")
        return "main matches, release does not"

    def try_transform(self) -> str:
        steps = [{"pick": ["ref", "pusher"]}, {"move": {"from": "pusher.name", "to": "who"}}]
        answer = self._user.post(
            "/v1/hooks/transforms/test", {"transform": steps, "event_id": self._event_id}
        )
        expect(answer["body"].get("who"), "octocat", "who")
        expect("commits" in answer["body"], False, "commits in the body")
        return "a smaller body, with the name where it was moved to"

    def plan_replay(self) -> str:
        if self._left_out:
            return self._left_out
        wanted = {
            "source_id": self._source_id,
            "from": moment(self._began_at_ms - 60_000),
            "to": moment(self._visitor.clock.now_ms() + 60_000),
            "status": EventStatus.DELIVERED.value,
            "dry_run": True,
        }
        plan = self._user.post("/v1/hooks/replays", wanted)
        expect((plan["would_replay"], plan["deliveries"]), (2, 2), "events, deliveries")
        return "2 events, in 2 deliveries"

    # --- cleaning up --------------------------------------------------------------------------------

    def delete_connection(self) -> str:
        self._receiver.stop()
        if self._connection_id is None:
            return "no connection was made"
        where = path("v1", "hooks", "connections", self._connection_id)
        self._user.delete(where)
        return expect_refusal("connection_not_found", lambda: self._user.get(where))

    def delete_source(self) -> str:
        if self._source_id is None:
            return "no source was made"
        self._user.delete(self._source_path)
        return expect_refusal("source_not_found", lambda: self._user.get(self._source_path))

    def delete_key(self) -> str:
        if self._key_id is None:
            return "no key was made"
        where = path("v1", "hooks", "keys", self._key_id)
        self._operator.call("DELETE", where, query={"user_id": self._user_id})
        seconds = self._visitor.wait(self._is_refused, REVOKED_WITHIN_SECONDS, lambda: "the key still works,")
        return f"refused after {seconds:.1f} s"

    # --- in detail ----------------------------------------------------------------------------------

    @property
    def _source_path(self) -> str:
        return path("v1", "hooks", "sources", str(self._source_id))

    def _tour_user(self) -> str:
        try:
            made = self._operator.post("/v1/hooks/users", {"email": USER_EMAIL, "name": "Crossdock tour"})
            return str(made["user_id"])
        except CommandFailed as refusal:
            if refusal.code != "email_taken":
                raise
        for user in self._operator.pages("/v1/hooks/users", {"limit": 200}):
            if user["email"] == USER_EMAIL:
                return str(user["user_id"])
        raise Unexpected(f"the user {USER_EMAIL} is there and not in the list")

    def _sample(self, secret: str) -> SampleWebhook:
        return sample_webhook("github", secret, None, self._visitor.clock.now_ms(), self._visitor.random)

    def _send(self, webhook: SampleWebhook) -> str:
        where, body = path("in", str(self._source_id)), msgspec.Raw(webhook.body)
        return str(self._provider.call("POST", where, body, headers=dict(webhook.headers))["event_id"])

    def _events(self) -> list[dict[str, Any]]:
        return list(self._user.pages(f"{self._source_path}/events", {"limit": 200}))

    def _attempts(self, event_id: str) -> list[dict[str, Any]]:
        return list(self._user.pages(path("v1", "hooks", "events", event_id, "attempts")))

    def _expect_signed(self, received: Received, event_id: str) -> None:
        expect(received.header("webhook-id"), event_id, "webhook-id")
        sent_at_s = int(received.header("webhook-timestamp"))
        signature = sign([self._connection_secret], event_id, sent_at_s, received.body)
        expect(received.header("webhook-signature"), signature, "webhook-signature")

    def _wait_for_status(self, status: EventStatus, event_id: str) -> None:
        where = path("v1", "hooks", "events", event_id)
        self._wait(
            lambda: self._user.get(where)["status"] == status.value,
            f"the event is not {status.value}",
            event_id,
        )

    def _wait(self, holds: Callable[[], bool], otherwise: str, event_id: str) -> None:
        self._visitor.wait(
            holds, DELIVERED_WITHIN_SECONDS, lambda: f"{otherwise}; {self._last_attempt(event_id)},"
        )

    def _last_attempt(self, event_id: str) -> str:
        """What may help whoever sees that nothing arrives."""
        attempts = self._attempts(event_id)
        if not attempts:
            deliveries = self._user.get(path("v1", "hooks", "events", event_id))["deliveries"]
            states = [each["state"] for each in deliveries if each["state"] != DeliveryState.DELIVERED]
            return f"no attempt was made ({', '.join(states) or 'no delivery'})"
        last = attempts[-1]
        return f"the last attempt: {last['error'] or last['status_code']} from {last['destination_url']}"

    def _is_refused(self) -> bool:
        try:
            self._user.get("/v1/hooks/me")
        except CommandFailed as refusal:
            if refusal.status == 401:
                return True
            raise
        return False


def steps(visitor: Visitor) -> Sequence[Step]:
    way = WebhooksWay(visitor)
    return (
        Step("make a user and a key", "a key of the user", way.make_user_and_key, essential=True),
        Step("make a source for GitHub", "its URL, and no secret", way.make_source, essential=True),
        Step("connect it to a receiver here", "a signing secret", way.make_connection, essential=True),
        Step("send a signed webhook", "an event", way.send, essential=True),
        Step("read the event", "its body, verified", way.read_body),
        Step("wait for its delivery", "signed by the connection", way.see_delivered),
        Step("list its attempts", "1, answered 200", way.see_attempts),
        Step("send it again", "the same event", way.send_again),
        Step("send one with a wrong signature", "invalid_signature, and listed", way.send_forged),
        Step("break the receiver, send another", "retrying", way.break_receiver),
        Step("mend it, replay the event", "delivered", way.replay),
        Step("try out a filter", "one branch of two matches", way.try_filter),
        Step("try out a transform", "a reshaped body", way.try_transform),
        Step("plan to replay everything", "2 events", way.plan_replay),
        Step("delete the connection", "gone", way.delete_connection, cleans_up=True),
        Step("delete the source", "gone", way.delete_source, cleans_up=True),
        Step("delete the key", "refused within 5 s", way.delete_key, cleans_up=True),
    )


TOUR = Tour("hooks", steps)
