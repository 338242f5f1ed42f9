"""Who sent a request, and to which URL, when there may be proxies of our own in between. Pure.

`X-Forwarded-*` is believed only of a peer within the networks of TRUSTED_PROXIES: anybody can send one. Of
several addresses the last that is no trusted proxy is the sender's.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from crossdock.http.asgi import Scope, header_values
from crossdock.kit.configuration import IpNetwork


def sender_address(scope: Scope, trusted: Sequence[IpNetwork]) -> str:
    """Empty where the peer is not known (a Unix socket)."""
    client = scope.get("client")
    peer = "" if client is None else str(client[0])
    if not trusted or not _is_within(peer, trusted):
        return peer
    chain = ",".join(value.decode("latin-1") for value in header_values(scope, b"x-forwarded-for"))
    for hop in reversed([each.strip() for each in chain.split(",") if each.strip()]):
        if not _is_address(hop):
            return peer
        if not _is_within(hop, trusted):
            return hop
    return peer


def _is_within(text: str, networks: Sequence[IpNetwork]) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
