from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from crossdock.delivery.model import Outbound
from crossdock.delivery.prepare import check_headers, forwarded_headers, signed_headers
from crossdock.kit.errors import InvalidInput

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW_SECRET = "whsec_" + "QUJD" * 8

Pairs = tuple[tuple[str, str], ...]


def outbound(
    *headers: tuple[str, str], body: bytes = b"{}", secrets: tuple[str, ...] = (SECRET,)
) -> Outbound:
    return Outbound("evt_1", "https://example.org/", body, headers, secrets, 30)


# --- what is passed on -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("originals", "forwarded"),
    [
        ((), ()),
        ((("Content-Type", "text/plain"),), (("content-type", "text/plain"),)),
        (
            (("x-github-event", "push"), ("user-agent", "GitHub-Hookshot/1")),
            (("x-github-event", "push"), ("user-agent", "GitHub-Hookshot/1")),
        ),
        ((("x-tag", "a"), ("X-Tag", "b"), ("x-tag", "a")), (("x-tag", "a"), ("x-tag", "b"), ("x-tag", "a"))),
        ((("content-encoding", "gzip"),), (("content-encoding", "gzip"),)),
        ((("x-empty", ""), ("x-text", "caf\u00e9\t!")), (("x-empty", ""), ("x-text", "caf\u00e9\t!"))),
    ],
)
def test_the_senders_headers_are_passed_on_in_order_with_their_repeats(
    originals: Pairs, forwarded: Pairs
) -> None:
    assert forwarded_headers(originals) == forwarded


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Content-Length",
        "Expect",
        "Accept-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Proxy-Authorization",
        "Proxy-Connection",
    ],
)
@pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
def test_headers_of_the_senders_own_connection_are_not_passed_on(name: str, spelling: Any) -> None:
    assert forwarded_headers([(spelling(name), "x"), ("accept", "*/*")]) == (("accept", "*/*"),)


@pytest.mark.parametrize("connection", ["x-hop", "X-Hop", "close, X-Hop", "keep-alive ,x-hop,, ", "\tx-hop"])
def test_what_connection_names_is_not_passed_on(connection: str) -> None:
    originals = [("x-hop", "1"), ("X-HOP", "2"), ("x-stays", "3"), ("Connection", connection)]
    assert forwarded_headers(originals) == (("x-stays", "3"),)


def test_every_connection_header_counts() -> None:
    originals = [("connection", "x-a"), ("connection", "x-b"), ("x-a", "1"), ("x-b", "2")]
    assert forwarded_headers(originals) == ()


def test_credentials_that_the_caller_names_are_not_passed_on() -> None:
    originals = [("Authorization", "Bearer x"), ("X-Gitlab-Token", "x"), ("x-gitlab-event", "Push")]
    forwarded = forwarded_headers(originals, without={"authorization", "x-gitlab-token"})
    assert forwarded == (("x-gitlab-event", "Push"),)


def test_the_senders_own_webhook_headers_are_kept_under_another_name() -> None:
    originals = [("Webhook-Id", "msg_1"), ("webhook-signature", "v1,x"), ("webhook-topic", "t")]
    assert forwarded_headers(originals) == (
        ("original-webhook-id", "msg_1"),
        ("original-webhook-signature", "v1,x"),
        ("original-webhook-topic", "t"),
    )


def test_the_owners_headers_replace_the_senders_whatever_the_case() -> None:
    originals = [("x-tag", "a"), ("x-tag", "b"), ("accept", "*/*")]
    assert forwarded_headers(originals, [("X-Tag", "mine")]) == (("accept", "*/*"), ("X-Tag", "mine"))


def test_the_owners_headers_are_no_credentials_of_the_sender() -> None:
    originals = [("authorization", "theirs")]
    forwarded = forwarded_headers(originals, [("Authorization", "mine")], without={"authorization"})
    assert forwarded == (("Authorization", "mine"),)


@pytest.mark.parametrize(
    "header",
    [
        ("x-bad", "a\r\nx-evil: 1"),
        ("x-bad", "\0"),
        ("x-bad", "\x7f"),
        ("x-bad", "\udc80"),
        ("x bad", "1"),
        ("", "1"),
    ],
)
def test_a_header_that_cannot_be_sent_does_not_keep_the_others_from_being_sent(
    header: tuple[str, str],
) -> None:
    assert forwarded_headers([header, ("accept", "*/*")]) == (("accept", "*/*"),)


# --- what is signed ----------------------------------------------------------------------------------


def accepts(secret: str, body: bytes, headers: dict[str, str]) -> bool:
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_a_receiver_with_the_public_library_accepts_the_message_by_each_valid_secret(text: str) -> None:
    message = outbound(("content-type", "text/plain"), body=text.encode(), secrets=(SECRET, NEW_SECRET))
    headers = dict(signed_headers(message, int(time.time())))
    assert accepts(SECRET, message.body, headers)
    assert accepts(NEW_SECRET, message.body, headers)
    assert not accepts("whsec_" + "WFla" * 8, message.body, headers)
    assert not accepts(SECRET, message.body + b" ", headers)


def test_id_and_timestamp_are_the_messages_and_the_attempts() -> None:
    headers = signed_headers(outbound(("x-a", "1")), 1_735_732_800)
    assert headers["webhook-id"] == "evt_1"
    assert headers["webhook-timestamp"] == "1735732800"
    assert headers["x-a"] == "1"


@pytest.mark.parametrize("secrets", [(SECRET,), ()])
def test_no_header_of_the_message_overrides_the_signature(secrets: tuple[str, ...]) -> None:
    fakes = [
        ("Webhook-Id", "fake"),
        ("webhook-id", "fake"),
        ("WEBHOOK-TIMESTAMP", "fake"),
        ("webhook-signature", "fake"),
        ("Webhook-Signature", "fake"),
    ]
    headers = signed_headers(outbound(*fakes, secrets=secrets), 1_735_732_800)
    assert "fake" not in headers.values()
    assert len(headers) == (4 if secrets else 3)


def test_a_message_without_a_secret_goes_unsigned() -> None:
    headers = signed_headers(outbound(secrets=()), 1)
    assert set(headers) == {"accept-encoding", "webhook-id", "webhook-timestamp"}


def test_repeats_survive_the_signing() -> None:
    headers = signed_headers(outbound(("x-tag", "a"), ("x-tag", "b")), 1)
    assert headers.getall("x-tag") == ["a", "b"]


def test_neither_secrets_nor_headers_nor_bodies_show_in_repr() -> None:
    shown = repr(outbound(("authorization", "hunter2"), body=b"hunter2"))
    assert "hunter2" not in shown
    assert SECRET not in shown


NAMES = st.sampled_from(
    [
        "x-a",
        "X-A",
        "x-b",
        "webhook-id",
        "Webhook-Signature",
        "authorization",
        "host",
        "connection",
        "te",
        "accept",
    ]
)
HEADERS = st.lists(st.tuples(NAMES, st.sampled_from(["x-a", "close", "1", "a\nb"])), max_size=12)
OWN = st.dictionaries(st.sampled_from(["X-A", "accept", "Authorization"]), st.just("own"), max_size=3)


@given(HEADERS, OWN)
def test_whatever_comes_in_only_good_headers_go_out_and_the_owners_win(
    originals: list[tuple[str, str]], own: dict[str, str]
) -> None:
    forwarded = forwarded_headers(originals, tuple(own.items()), without={"authorization"})
    names = [name.lower() for name, _ in forwarded]
    assert not {"host", "connection", "te", "webhook-id", "webhook-signature"} & set(names)
    assert all("\n" not in value for _, value in forwarded)
    for name, value in own.items():
        assert [v for n, v in forwarded if n.lower() == name.lower()] == [value]
    assert "authorization" not in names or "Authorization" in own


# --- what a user may configure -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "headers"),
    [
        (None, ()),
        ({}, ()),
        ({"Authorization": "Bearer x"}, (("Authorization", "Bearer x"),)),
        ({"X-Empty": "", "x-text": "caf\u00e9 \t!"}, (("X-Empty", ""), ("x-text", "caf\u00e9 \t!"))),
        ({"x-1": "a" * 8189}, (("x-1", "a" * 8189),)),
        ({f"x-{n}": "v" for n in range(50)}, tuple((f"x-{n}", "v") for n in range(50))),
        ({"original-webhook-id": "x", "webhooks": "x"}, (("original-webhook-id", "x"), ("webhooks", "x"))),
    ],
)
def test_good_headers_are_taken_as_they_are(raw: object, headers: Pairs) -> None:
    assert check_headers(raw) == headers


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        ([["x-a", "1"]], [("headers", "wrong_type")]),
        ("x-a: 1", [("headers", "wrong_type")]),
        ({"x-a": 1}, [("headers.x-a", "wrong_type")]),
        ({"x-a": None}, [("headers.x-a", "wrong_type")]),
        ({"x-a": ["1"]}, [("headers.x-a", "wrong_type")]),
        ({"": "1"}, [("headers", "wrong_format")]),
        ({"x a": "1"}, [("headers.x a", "wrong_format")]),
        ({"x-a:": "1"}, [("headers.x-a:", "wrong_format")]),
        ({"x-a\n": "1"}, [("headers.x-a\n", "wrong_format")]),
        ({"x-\u00e9": "1"}, [("headers.x-\u00e9", "wrong_format")]),
        ({"x-a": "1\r\nx-b: 2"}, [("headers.x-a", "wrong_format")]),
        ({"x-a": "1\n"}, [("headers.x-a", "wrong_format")]),
        ({"x-a": "\0"}, [("headers.x-a", "wrong_format")]),
        ({"x-a": "\x1b"}, [("headers.x-a", "wrong_format")]),
        ({"x-a": "\ud800"}, [("headers.x-a", "wrong_format")]),
        ({"X-A": "1", "x-a": "2"}, [("headers.x-a", "duplicate")]),
        (
            {"x-a": "\n", "ok": "1", "Host": "x"},
            [("headers.x-a", "wrong_format"), ("headers.Host", "reserved")],
        ),
        ({f"x-{n}": "v" for n in range(51)}, [("headers", "too_many")]),
        ({"x-1": "a" * 8190}, [("headers", "too_large")]),
        ({"x-1": "\u20ac" * 2730}, [("headers", "too_large")]),
    ],
)
def test_a_header_that_is_wrong_is_refused_by_its_name(raw: object, problems: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_headers(raw)
    assert [(problem.field, problem.code) for problem in caught.value.fields] == problems


@pytest.mark.parametrize(
    "name",
    [
        "host",
        "Content-Length",
        "transfer-encoding",
        "connection",
        "Keep-Alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
        "proxy-authorization",
        "webhook-id",
        "Webhook-Signature",
        "webhook-anything",
    ],
)
def test_a_header_of_the_connection_or_the_signature_is_not_the_users_to_set(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_headers({name: "x"}, "webhook.headers")
    assert [(p.field, p.code) for p in caught.value.fields] == [(f"webhook.headers.{name}", "reserved")]
