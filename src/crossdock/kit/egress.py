"""May our own requests go to this address? A pure decision over a table of the special ranges.

Whoever names a URL makes our server call it, from inside our network (SSRF). So only addresses of the public
internet are good by themselves. Everything else is refused unless a range in `allow` names it:

- An IPv4 address inside an IPv6 one (mapped, NAT64, 6to4, Teredo, ...) is a way around a check of either, and
  no public name needs it. It is refused unless `allow` names its IPv4 address, or names the IPv6 range while
  the IPv4 address is good by itself (an IPv6-only host behind DNS64 allows `64:ff9b::/96`).
- Link-local and cloud metadata addresses hand out credentials. A wide range such as `0.0.0.0/0` does not
  allow them, only one that lies within theirs does: somebody meant it.
- With `may_be_private` (upstreams that the operator named) loopback, private and carrier-grade addresses are
  good by themselves; link-local and metadata are then refused whatever `allow` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias

from crossdock.kit.errors import InvalidInput

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


class Kind(StrEnum):
    PUBLIC = "a public address"
    LOOPBACK = "a loopback address"
    PRIVATE = "a private address"
    CARRIER_GRADE = "a carrier-grade NAT address"
    LINK_LOCAL = "a link-local address"
    METADATA = "a cloud metadata address"
    MULTICAST = "a multicast address"
    UNSPECIFIED = "an unspecified address"
    DOCUMENTATION = "a documentation address"
    BENCHMARK = "a benchmark address"
    RESERVED = "a reserved address"
    EMBEDDED = "an IPv4 address inside an IPv6 one"


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    kind: Kind
    can_be_allowed: bool = True
    """False: no range in `allow` would help."""


class EgressRefused(InvalidInput):
    """A request that our server would have made, and must not."""

    def __init__(self, host: str, address: Address, verdict: Verdict) -> None:
        where = host if host == str(address) else f"{host} ({address})"
        remedy = (
            f" To allow it, add {address}/{address.max_prefixlen} to CROSSDOCK_EGRESS_ALLOW."
            if verdict.can_be_allowed
            else " No setting allows it."
        )
        super().__init__(
            f"{where} is {verdict.kind.value}, which is not called.{remedy}", code="egress_refused"
        )
        self.host = host
        self.address = address
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    allow: tuple[Network, ...] = ()
    may_be_private: bool = False

    def judge(self, address: Address) -> Verdict:
        return judge(address, self.allow, may_be_private=self.may_be_private)


def judge(address: Address, allow: Sequence[Network] = (), *, may_be_private: bool = False) -> Verdict:
    embedded = _embedded(address) if isinstance(address, IPv6Address) else ()
    if embedded:
        return _judge_embedded(address, embedded, allow, may_be_private)
    kind = kind_of(address)
    if kind in _NEVER:
        return Verdict(not may_be_private and _named_on_purpose(address, allow), kind, not may_be_private)
    good = kind is Kind.PUBLIC or (may_be_private and kind in _INTERNAL)
    return Verdict(good or _named(address, allow), kind)


@lru_cache(maxsize=4096)
def kind_of(address: Address) -> Kind:
    """What the address is, be it allowed or not."""
    special = _SPECIAL_IPV4 if isinstance(address, IPv4Address) else _SPECIAL_IPV6
    for network, kind in special:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return Kind.RESERVED
    return Kind.PUBLIC


def _judge_embedded(
    address: Address, embedded: Sequence[IPv4Address], allow: Sequence[Network], may_be_private: bool
) -> Verdict:
    inner = [judge(each, allow, may_be_private=may_be_private) for each in embedded]
    for verdict in inner:
        if verdict.kind in _NEVER and not verdict.allowed:
            return verdict
    named = all(_named(each, allow) for each in embedded) or _named(address, allow)
    return Verdict(named and all(verdict.allowed for verdict in inner), Kind.EMBEDDED)


def _named(address: Address, allow: Sequence[Network]) -> bool:
    return any(address in network for network in allow)


def _named_on_purpose(address: Address, allow: Sequence[Network]) -> bool:
    special = [network for network, kind in (*_SPECIAL_IPV4, *_SPECIAL_IPV6) if kind in _NEVER]
    return any(address in network and any(_within(network, each) for each in special) for network in allow)


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


def _embedded(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses a packet for `address` may end at, or be relayed through."""
    bits = int(address)
    last = IPv4Address(bits & 0xFFFF_FFFF)
    if any(address in network for network in _LAST_32_BITS) and bits > 1:
        return (last,)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(bits >> 80 & 0xFFFF_FFFF),)
    if address in _TEREDO:
        server, client = IPv4Address(bits >> 64 & 0xFFFF_FFFF), IPv4Address(int(last) ^ 0xFFFF_FFFF)
        return (server, client)
    if bits >> 32 & 0xFDFF_FFFF == 0x5EFE:  # ISATAP: an interface id of [02]00:5efe, under any prefix
        return (last,)
    return ()


def _table(*rows: tuple[str, Kind]) -> tuple[tuple[Network, Kind], ...]:
    return tuple((ip_network(text), kind) for text, kind in rows)


_NEVER = frozenset({Kind.LINK_LOCAL, Kind.METADATA})
_INTERNAL = frozenset({Kind.LOOPBACK, Kind.PRIVATE, Kind.CARRIER_GRADE})

# The first row that matches decides, so what lies within another range comes before it.
_SPECIAL_IPV4 = _table(
    ("169.254.169.254/32", Kind.METADATA),
    ("169.254.170.0/24", Kind.METADATA),  # AWS: credentials of containers
    ("100.100.100.200/32", Kind.METADATA),  # Alibaba
    ("192.0.0.192/32", Kind.METADATA),  # Oracle
    ("168.63.129.16/32", Kind.METADATA),  # Azure's host, on a public address
    ("169.254.0.0/16", Kind.LINK_LOCAL),
    ("0.0.0.0/8", Kind.UNSPECIFIED),
    ("127.0.0.0/8", Kind.LOOPBACK),
    ("10.0.0.0/8", Kind.PRIVATE),
    ("172.16.0.0/12", Kind.PRIVATE),
    ("192.168.0.0/16", Kind.PRIVATE),
    ("100.64.0.0/10", Kind.CARRIER_GRADE),
    ("192.0.2.0/24", Kind.DOCUMENTATION),
    ("198.51.100.0/24", Kind.DOCUMENTATION),
    ("203.0.113.0/24", Kind.DOCUMENTATION),
    ("198.18.0.0/15", Kind.BENCHMARK),
    ("192.0.0.0/24", Kind.RESERVED),
    ("192.88.99.0/24", Kind.RESERVED),  # 6to4 relays, withdrawn
    ("224.0.0.0/4", Kind.MULTICAST),
    ("240.0.0.0/4", Kind.RESERVED),
)

_SPECIAL_IPV6 = _table(
    ("fd00:ec2::/32", Kind.METADATA),  # AWS
    ("fd20:ce::254/128", Kind.METADATA),  # Google
    ("fe80::/10", Kind.LINK_LOCAL),
    ("::/128", Kind.UNSPECIFIED),
    ("::1/128", Kind.LOOPBACK),
    ("fc00::/7", Kind.PRIVATE),
    ("fec0::/10", Kind.PRIVATE),  # site-local, withdrawn and still routed by some
    ("ff00::/8", Kind.MULTICAST),
    ("2001:db8::/32", Kind.DOCUMENTATION),
    ("3fff::/20", Kind.DOCUMENTATION),
    ("2001:2::/48", Kind.BENCHMARK),
    ("2001::/23", Kind.RESERVED),  # protocol assignments
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_LAST_32_BITS = (
    IPv6Network("::ffff:0:0/96"),  # mapped
    IPv6Network("::ffff:0:0:0/96"),  # translated (SIIT)
    IPv6Network("::/96"),  # compatible
    IPv6Network("64:ff9b::/96"),  # NAT64
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of a local network
)
