from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.unit.hooks.providers.senders import NOW_MS, SENDERS, arrival, b64, mac, with_headers

from crossdock.hooks.rules.providers.model import Arrival, RefusalReason
from crossdock.hooks.rules.providers.recipes import recipe_of

RECIPE = recipe_of("standard-webhooks", None)
SENDER = SENDERS["standard-webhooks"]
SECRET, OTHER, _ = SENDER.secrets
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = "whpk_" + b64(KEY.public_key().public_bytes_raw())
STAMP = str(NOW_MS // 1000)
BODY = b'{"type": "contact.created"}'


def signed(message_id: str = "msg_1", stamp: str = STAMP, body: bytes = BODY) -> bytes:
    return f"{message_id}.{stamp}.".encode() + body


def sent(signature: str, *, prefix: str = "webhook", message_id: str = "msg_1", **more: str) -> Arrival:
    own = {"id": message_id, "timestamp": STAMP, "signature": signature}
    return arrival(BODY, {f"{prefix}-{name}": value for name, value in own.items()} | more)


def v1(message_id: str = "msg_1", key: bytes = SECRET.signing) -> str:
    return "v1," + b64(mac(key, signed(message_id)))


def v1a(key: Ed25519PrivateKey = KEY) -> str:
    return "v1a," + b64(key.sign(signed()))


def reason(request: Arrival, *secrets: str) -> RefusalReason | None:
    refusal = RECIPE.verify(request, secrets)
    return None if refusal is None else refusal.reason


def test_the_svix_names_of_the_headers_are_taken_too() -> None:
    assert reason(sent(v1(), prefix="svix"), SECRET.configured) is None
    assert reason(sent(v1(), prefix="Svix"), SECRET.configured) is None


def test_headers_of_both_names_are_not_mixed() -> None:
    """Else a signed request could be given an id that is not signed, and be delivered again."""
    request = sent(v1(), prefix="svix", **{"webhook-id": "msg_2", "webhook-timestamp": "1"})
    assert reason(request, SECRET.configured) is None
    assert RECIPE.delivery_id(request) == "msg_1"
    request = sent(v1(), prefix="webhook", **{"svix-id": "msg_2"})
    assert RECIPE.delivery_id(request) == "msg_1"


@pytest.mark.parametrize("form", ["whsec_{}", "{}"])
@pytest.mark.parametrize("padding", ["=", ""])
def test_a_secret_is_base64_with_or_without_its_prefix_and_padding(form: str, padding: str) -> None:
    text = base64.b64encode(SECRET.signing).decode().rstrip("=") + padding
    assert reason(sent(v1()), form.format(text)) is None


@pytest.mark.parametrize(
    "signature",
    [
        f"{v1(key=b'old')} {v1()}",
        f"{v1()} {v1(key=b'old')}",
        f"v2,unknown {v1()}",
        f"v1,broken {v1()}",
        f"{v1a()} {v1()}",
        v1().rstrip("="),
    ],
)
def test_one_good_signature_of_several_is_enough(signature: str) -> None:
    assert reason(sent(signature), SECRET.configured) is None


@pytest.mark.parametrize("signature", [v1a(), f"v1,AAAA {v1a()}", f"{v1a()} {v1(key=b'old')}"])
def test_an_asymmetric_signature_is_verified_by_the_public_key(signature: str) -> None:
    assert reason(sent(signature), PUBLIC) is None
    other = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
    assert reason(sent(signature), "whpk_" + b64(other)) is RefusalReason.SIGNATURE_MISMATCH


def test_a_source_may_go_over_from_one_kind_of_secret_to_the_other() -> None:
    for signature in (v1(), v1a()):
        assert reason(sent(signature), PUBLIC, SECRET.configured) is None
        assert reason(sent(signature), SECRET.configured, PUBLIC) is None
    assert reason(sent(v1()), PUBLIC, OTHER.configured) is RefusalReason.SIGNATURE_MISMATCH


def test_a_public_key_is_never_taken_for_a_shared_secret() -> None:
    """Everybody knows it: signed with it as a secret, a forged request would pass."""
    forged = "v1," + b64(mac(KEY.public_key().public_bytes_raw(), signed()))
    assert reason(sent(forged), PUBLIC) is RefusalReason.SIGNATURE_MALFORMED
    assert reason(sent(forged.replace("v1,", "v1a,")), PUBLIC) is RefusalReason.SIGNATURE_MISMATCH


def test_a_message_is_not_read_as_another_whose_id_holds_its_time() -> None:
    """`id.time.body` with the boundaries moved: the same bytes, another body."""
    body = f"{STAMP}.rest".encode()
    signature = "v1," + b64(mac(SECRET.signing, signed(body=body)))
    headers = {"webhook-id": "msg_1", "webhook-timestamp": STAMP, "webhook-signature": signature}
    assert reason(arrival(body, headers), SECRET.configured) is None
    moved = arrival(b"rest", headers | {"webhook-id": f"msg_1.{STAMP}"})
    assert reason(moved, SECRET.configured) is RefusalReason.ID_MALFORMED


@pytest.mark.parametrize("message_id", ["evt.1", "a.b.c", "order.12345.created", "1735732800"])
def test_an_id_may_have_dots(message_id: str) -> None:
    assert reason(sent(v1(message_id), message_id=message_id), SECRET.configured) is None


def test_a_flood_of_signatures_is_cut_short() -> None:
    flood = " ".join(["v1," + b64(bytes(32))] * 16)
    assert reason(sent(f"{flood} {v1()}"), SECRET.configured) is RefusalReason.SIGNATURE_MISMATCH
    assert reason(sent(f"{v1()} {flood}"), SECRET.configured) is None


def test_an_id_in_utf_8_is_signed_as_the_bytes_it_was_sent_as() -> None:
    request = sent(v1("ä"), message_id="ä".encode().decode("latin-1"))
    assert reason(request, SECRET.configured) is None
    assert (
        reason(with_headers(request, request.headers[:1]), SECRET.configured)
        is RefusalReason.SIGNATURE_MISSING
    )
