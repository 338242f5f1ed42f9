from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from crossdock.http.forwarded import sender_address

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),  # anybody can send the header
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.7, 203.0.113.9"], "203.0.113.9"),  # what stands before was sent along
        ("10.0.0.1", ["203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", "10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, garbage"], "10.0.0.1"),
        ("10.0.0.1", [" , "], "10.0.0.1"),
        ("fd00::1", ["2001:db8::5"], "2001:db8::5"),
    ],
)
def test_only_a_trusted_proxy_is_believed_about_the_sender(
    peer: str, forwarded: list[str], expected: str
) -> None:
    assert sender_address(scope(peer, forwarded), PROXIES) == expected


def test_without_trusted_proxies_the_peer_is_the_sender() -> None:
    assert sender_address(scope("10.0.0.1", ["203.0.113.9"]), ()) == "10.0.0.1"


def test_a_peer_without_an_address_is_nobody() -> None:
    assert sender_address({"client": None, "headers": []}, PROXIES) == ""


def scope(peer: str, forwarded: list[str]) -> dict[str, Any]:
    return {"client": (peer, 1), "headers": [(b"x-forwarded-for", each.encode()) for each in forwarded]}
