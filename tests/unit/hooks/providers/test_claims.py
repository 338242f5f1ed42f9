"""The forms of a claim that providers share: reasons, one by one."""

from __future__ import annotations

import pytest
from tests.unit.hooks.providers.senders import NOW_MS, SENDERS, arrival, mac

from crossdock.hooks.rules.providers.model import RefusalReason

STAMP = str(NOW_MS // 1000)
SECRET = SENDERS["stripe"].secrets[0].configured
GOOD = mac(SECRET, STAMP.encode() + b".body").hex()
BAD = "00" * 32


def reason(name: str, headers: dict[str, str]) -> RefusalReason | None:
    refusal = SENDERS[name].recipe.verify(arrival(b"body", headers), [SECRET])
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"t={STAMP},v1={GOOD}", None),
        (f"v1={GOOD},t={STAMP}", None),
        (f"t={STAMP}, v1={GOOD}", None),
        (f"t={STAMP},v1={BAD},v1={GOOD}", None),
        (f"t={STAMP},v1=broken,v1={GOOD}", None),
        (f"t={STAMP},v1={GOOD},v1={BAD},v0=x,other", None),
        (f"t={STAMP},v1={GOOD.upper()}", None),
        (f"t={STAMP},t=1,v1={GOOD}", None),
        (f"t=1,t={STAMP},v1={GOOD}", "signature_mismatch"),
        (f"t={STAMP},v1={BAD}", "signature_mismatch"),
        (f"t={STAMP},v0={GOOD}", "signature_missing"),
        (f"t={STAMP}", "signature_missing"),
        (f"t={STAMP},v1=", "signature_malformed"),
        (f"t={STAMP},v1={GOOD}0", "signature_malformed"),
        (f"t={STAMP};v1={GOOD}", "timestamp_malformed"),
        (f"t=,v1={GOOD}", "timestamp_malformed"),
        (f"t=+{STAMP},v1={GOOD}", "timestamp_malformed"),
        (f"t={STAMP}.0,v1={GOOD}", "timestamp_malformed"),
        (f"t=-1,v1={GOOD}", "timestamp_malformed"),
        (f"t={'9' * 17},v1={GOOD}", "timestamp_malformed"),
        (f"t=\u0661,v1={GOOD}", "timestamp_malformed"),
        (f"T={STAMP},v1={GOOD}", "timestamp_missing"),
        (f"v1={GOOD}", "timestamp_missing"),
        (GOOD, "timestamp_missing"),
        ("", "signature_missing"),
    ],
)
def test_a_header_of_pairs(header: str, expected: str | None) -> None:
    assert reason("stripe", {"Stripe-Signature": header}) == expected


@pytest.mark.parametrize(
    "stamp", ["", " ", "x", "-5", "1e9", f"{STAMP}.5", f" {STAMP}", "9" * 17, "0x5f", "\u00b2"]
)
@pytest.mark.parametrize("name", ["slack", "zoom"])
def test_a_time_that_is_no_whole_number_is_refused_though_it_is_signed(name: str, stamp: str) -> None:
    signature, timestamp = SENDERS[name].signed_headers
    signed = mac(SECRET, b"v0:" + stamp.encode("latin-1") + b":body").hex()
    expected = "timestamp_malformed" if stamp else "timestamp_missing"
    assert reason(name, {timestamp: stamp, signature: f"v0={signed}"}) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"sha256={BAD}", "signature_mismatch"),
        (f"sha256={BAD[:-2]}", "signature_mismatch"),
        (f"sha256={BAD[:-1]}", "signature_malformed"),
        (f"sha1={BAD}", "signature_malformed"),
        (f"SHA256={BAD}", "signature_malformed"),
        (BAD, "signature_malformed"),
        ("sha256=", "signature_malformed"),
        (f"sha256= {BAD}", "signature_malformed"),
        ("", "signature_missing"),
    ],
)
def test_a_header_with_a_prefix(value: str, expected: str) -> None:
    assert reason("github", {"X-Hub-Signature-256": value}) == expected
