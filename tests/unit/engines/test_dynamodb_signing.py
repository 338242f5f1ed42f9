"""Signature Version 4, with botocore's signer as the oracle."""

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.items.dynamodb.signing import Credentials, Signer

DAY_MS = 86_400_000
TARGET = "DynamoDB_20120810.PutItem"


def oracle(host: str, region: str, body: bytes, credentials: Credentials, now_ms: int) -> dict[str, str]:
    """The headers as botocore signs them: `SigV4Auth.add_auth`, but for the clock that it reads itself."""
    headers = {"Host": host, "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": TARGET}
    request = AWSRequest("POST", f"https://{host}/", headers, body)
    request.context["timestamp"] = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    theirs = BotocoreCredentials(credentials.access_key, credentials.secret_key, credentials.session_token)
    signer = SigV4Auth(theirs, "dynamodb", region)
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(text, request))
    return {name.lower(): str(value) for name, value in request.headers.items()}


PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


@given(
    body=st.binary(max_size=200),
    credentials=st.builds(Credentials, PRINTABLE, PRINTABLE, st.none() | PRINTABLE),
    now_ms=st.integers(0, 4_000_000_000_000),
    host=st.sampled_from(["dynamodb.eu-central-1.amazonaws.com", "127.0.0.1:8000"]),
)
def test_the_signature_is_botocores(body: bytes, credentials: Credentials, now_ms: int, host: str) -> None:
    signer = Signer(host, "eu-central-1")
    assert signer.headers(TARGET, body, credentials, now_ms) == oracle(
        host, "eu-central-1", body, credentials, now_ms
    )


def test_the_signing_key_is_made_anew_for_another_day_and_for_other_credentials() -> None:
    signer = Signer("host", "eu-central-1")
    ours = Credentials("id", "secret")
    for credentials in (ours, ours, Credentials("id", "other secret"), ours):
        for now_ms in (0, DAY_MS - 1, DAY_MS, 5 * DAY_MS):
            expected = oracle("host", "eu-central-1", b"{}", credentials, now_ms)
            assert signer.headers(TARGET, b"{}", credentials, now_ms) == expected


@pytest.mark.parametrize("shown", [repr, str])
def test_credentials_do_not_show_their_secrets(shown: Any) -> None:
    assert "hidden" not in shown(Credentials("id", "hidden", "hidden too"))
