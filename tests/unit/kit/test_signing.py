from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from crossdock.kit.signing import KEY_BYTES, key_of_secret, make_secret, sign

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(24)).decode()


def accepts(secret: str, signature: str, message_id: str, timestamp_s: int, body: bytes) -> bool:
    """What a receiver with the public library says."""
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": signature,
    }
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def test_the_published_vector_comes_out() -> None:
    signature = sign([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(
    st.text(st.characters(codec="utf-8")),
    st.binary(min_size=1, max_size=64),
    st.text("abcXYZ_0189", min_size=1),
)
def test_the_public_library_accepts_what_we_sign(text: str, key: bytes, message_id: str) -> None:
    secret, now_s = "whsec_" + base64.b64encode(key).decode(), int(time.time())
    signature = sign([secret], message_id, now_s, text.encode())
    assert accepts(secret, signature, message_id, now_s, text.encode())


@pytest.mark.parametrize("changed", ["secret", "message_id", "timestamp", "body"])
def test_the_signature_covers_everything(changed: str) -> None:
    now_s = int(time.time())
    signature = sign([SECRET], "evt_1", now_s, b"body")
    assert not accepts(
        OTHER_SECRET if changed == "secret" else SECRET,
        signature,
        "evt_2" if changed == "message_id" else "evt_1",
        now_s + 1 if changed == "timestamp" else now_s,
        b"bodY" if changed == "body" else b"body",
    )


def test_every_secret_signs_so_that_receivers_of_the_old_and_the_new_one_accept() -> None:
    now_s = int(time.time())
    signature = sign([SECRET, OTHER_SECRET], "evt_1", now_s, b"body")
    assert [entry[:3] for entry in signature.split(" ")] == ["v1,", "v1,"]
    assert accepts(SECRET, signature, "evt_1", now_s, b"body")
    assert accepts(OTHER_SECRET, signature, "evt_1", now_s, b"body")


def test_a_new_secret_holds_the_bytes_that_were_drawn() -> None:
    key = bytes(range(KEY_BYTES))
    secret = make_secret(lambda size: key[:size])
    assert secret.startswith("whsec_")
    assert key_of_secret(secret) == key


def test_a_new_secret_fits_a_column_of_64_characters() -> None:
    assert len(make_secret(bytes)) <= 64


@pytest.mark.parametrize("form", ["whsec_YWI=", "whsec_YWI", "YWI=", "YWI"])
def test_a_secret_is_read_with_or_without_prefix_and_padding(form: str) -> None:
    assert key_of_secret(form) == b"ab"


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_*", "whsec_a b=", "whsec_A", "whsec_\u00e9\u00e9", "===="]
)
def test_what_is_no_secret_never_signs(text: str) -> None:
    with pytest.raises(ValueError, match="a signing secret is"):
        sign([text], "evt_1", 1, b"body")
