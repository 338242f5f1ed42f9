from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.hooks.providers.senders import ITEM, SENDERS, URL, adyen_body, arrival, with_body

from crossdock.hooks.rules.providers.dedup import Dedup
from crossdock.hooks.rules.providers.model import Refusal, RefusalReason, Reply
from crossdock.hooks.rules.providers.recipes import PROVIDERS

# These two sign what the body says, not its bytes; each has a property of its own below.
NOT_BYTES = {"twilio", "adyen"}
BYTE_SIGNERS = [name for name in PROVIDERS if SENDERS[name].tampered is not None and name not in NOT_BYTES]

latin1 = st.text(st.characters(max_codepoint=255), max_size=60)
values = latin1 | st.text(max_size=20) | st.from_regex(r"\A[a-z0-9]{1,3}[=,;][A-Za-z0-9+/=,;]{0,80}\Z")
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
names_in_bodies = st.sampled_from(
    [
        *("id", "type", "event", "challenge", "payload", "plainToken", "events", "webhookTimestamp"),
        *(
            "notificationItems",
            "NotificationRequestItem",
            "additionalData",
            "hmacSignature",
            "amount",
            "value",
        ),
    ]
)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names_in_bodies | st.text(max_size=5), inner),
    max_leaves=12,
)
bodies = st.binary(max_size=80) | documents.map(lambda document: json.dumps(document).encode())
dedups = st.none() | st.builds(
    Dedup, header=st.none() | st.just("X-Id"), path=st.none() | st.sampled_from(["id", "events.0.id", "0"])
)


@pytest.mark.parametrize("name", PROVIDERS)
@settings(deadline=None)
@given(data=st.data())
def test_no_request_makes_a_recipe_raise(name: str, data: st.DataObject) -> None:
    sender = SENDERS[name]
    known = st.sampled_from([*sender.signed_headers, "X-Id", "X-GitHub-Delivery", "Authorization"])
    headers = data.draw(st.dictionaries(known | latin1, values, max_size=6))
    url = data.draw(st.just(URL) | st.text(max_size=40) | st.just(URL + "?bodySHA256=" + "0" * 64))
    sent = arrival(data.draw(bodies), headers, url=url, received_at_ms=data.draw(st.integers(0, 2**53)))
    secrets = data.draw(st.lists(st.text(max_size=20) | st.just(sender.secrets[0].configured), max_size=3))
    assert isinstance(sender.recipe.verify(sent, secrets), Refusal)
    assert isinstance(sender.recipe.challenge(sent, secrets), Reply | None)
    found = sender.recipe.delivery_id(sent, data.draw(dedups))
    assert found is None or 0 < len(found) <= 512


@pytest.mark.parametrize("name", BYTE_SIGNERS)
@settings(deadline=None)
@given(data=st.data())
def test_no_other_body_is_taken_for_the_signed_one(name: str, data: st.DataObject) -> None:
    sender = SENDERS[name]
    sent = sender.send()
    start = data.draw(st.integers(0, len(sent.body)))
    end = data.draw(st.integers(start, len(sent.body)))
    other = sent.body[:start] + data.draw(st.binary(max_size=8) | st.just(sent.body)) + sent.body[end:]
    refusal = sender.recipe.verify(with_body(sent, other), [sender.secrets[0].configured])
    if other == sent.body:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.reason is RefusalReason.SIGNATURE_MISMATCH


@settings(deadline=None)
@given(st.sampled_from([*ITEM, "amount.value", "amount.currency"]), st.text(max_size=20), st.integers(0, 1))
def test_no_other_field_is_taken_for_the_one_that_adyen_signed(name: str, text: str, position: int) -> None:
    sender = SENDERS["adyen"]
    document = json.loads(sender.send().body)
    item = document["notificationItems"][position]["NotificationRequestItem"]
    holder, _, last = name.rpartition(".")
    holder = item[holder] if holder else item
    before, holder[last] = holder[last], text
    sent = arrival(json.dumps(document).encode())
    refusal = sender.recipe.verify(sent, [sender.secrets[0].configured])
    assert (refusal is None) == (str(before) == text)


form_text = st.text(st.characters(codec="utf-8", exclude_characters="&=%+"), min_size=1, max_size=6)


@settings(deadline=None)
@given(st.dictionaries(form_text, form_text, max_size=4), st.integers(0, 3), form_text)
def test_no_other_value_is_taken_for_the_one_that_twilio_signed(
    form: dict[str, str], position: int, text: str
) -> None:
    sender = SENDERS["twilio"]
    signed = "&".join(f"{name}={value}" for name, value in form.items()).encode()
    if not signed:
        return
    sent = arrival(signed, sender.sign(sender.secrets[0].signing, signed, 0))
    assert sender.recipe.verify(sent, [sender.secrets[0].configured]) is None
    name = list(form)[position % len(form)]
    other = "&".join(f"{each}={text if each == name else value}" for each, value in form.items()).encode()
    refusal = sender.recipe.verify(with_body(sent, other), [sender.secrets[0].configured])
    assert (refusal is None) == (form[name] == text)


@settings(deadline=None)
@given(st.lists(st.sampled_from([ITEM, ITEM | {"success": "false"}]), min_size=2, max_size=4), st.data())
def test_one_item_of_adyens_that_is_not_signed_spoils_them_all(
    items: list[dict[str, object]], data: st.DataObject
) -> None:
    sender = SENDERS["adyen"]
    assert sender.sign_body is not None
    document = json.loads(sender.sign_body(sender.secrets[0].signing, adyen_body(*items)))
    position = data.draw(st.integers(0, len(items) - 1))
    del document["notificationItems"][position]["NotificationRequestItem"]["additionalData"]
    refusal = sender.recipe.verify(arrival(json.dumps(document).encode()), [sender.secrets[0].configured])
    assert refusal is not None
    assert refusal.reason is RefusalReason.SIGNATURE_MISSING
