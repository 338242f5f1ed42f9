from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.kit.egress import Address, EgressPolicy, EgressRefused, Kind, Network, judge, kind_of

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "168.63.129.15", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"),
    *("192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:81b::200e", "2003::1", "2620:fe::fe"),
    *("2001:200::1", "2001:db7::1", "2001:db9::1", "3ffe::1"),
]

REFUSED = [
    ("0.0.0.0", Kind.UNSPECIFIED),
    ("0.1.2.3", Kind.UNSPECIFIED),
    ("::", Kind.UNSPECIFIED),
    ("127.0.0.1", Kind.LOOPBACK),
    ("127.255.255.254", Kind.LOOPBACK),
    ("::1", Kind.LOOPBACK),
    ("10.0.0.0", Kind.PRIVATE),
    ("10.255.255.255", Kind.PRIVATE),
    ("172.16.0.1", Kind.PRIVATE),
    ("172.31.255.255", Kind.PRIVATE),
    ("192.168.0.1", Kind.PRIVATE),
    ("192.168.255.255", Kind.PRIVATE),
    ("fc00::1", Kind.PRIVATE),
    ("fdff:ffff::1", Kind.PRIVATE),
    ("fec0::1", Kind.PRIVATE),
    ("100.64.0.1", Kind.CARRIER_GRADE),
    ("100.127.255.255", Kind.CARRIER_GRADE),
    ("169.254.0.1", Kind.LINK_LOCAL),
    ("169.254.255.255", Kind.LINK_LOCAL),
    ("fe80::1", Kind.LINK_LOCAL),
    ("fe80::1%eth0", Kind.LINK_LOCAL),
    ("febf::1", Kind.LINK_LOCAL),
    ("169.254.169.254", Kind.METADATA),
    ("169.254.170.2", Kind.METADATA),
    ("169.254.170.23", Kind.METADATA),
    ("fd00:ec2::254", Kind.METADATA),
    ("fd00:ec2::23", Kind.METADATA),
    ("fd20:ce::254", Kind.METADATA),
    ("100.100.100.200", Kind.METADATA),
    ("192.0.0.192", Kind.METADATA),
    ("168.63.129.16", Kind.METADATA),
    ("224.0.0.1", Kind.MULTICAST),
    ("239.255.255.255", Kind.MULTICAST),
    ("ff02::1", Kind.MULTICAST),
    ("ff0e::1", Kind.MULTICAST),
    ("192.0.2.1", Kind.DOCUMENTATION),
    ("198.51.100.1", Kind.DOCUMENTATION),
    ("203.0.113.255", Kind.DOCUMENTATION),
    ("2001:db8::1", Kind.DOCUMENTATION),
    ("3fff::1", Kind.DOCUMENTATION),
    ("198.18.0.1", Kind.BENCHMARK),
    ("198.19.255.255", Kind.BENCHMARK),
    ("2001:2::1", Kind.BENCHMARK),
    ("192.0.0.1", Kind.RESERVED),
    ("192.88.99.1", Kind.RESERVED),
    ("240.0.0.1", Kind.RESERVED),
    ("255.255.255.255", Kind.RESERVED),
    ("2001:10::1", Kind.RESERVED),
    ("2001:20::1", Kind.RESERVED),
    ("100::1", Kind.RESERVED),
    ("200::1", Kind.RESERVED),
    ("4000::1", Kind.RESERVED),
    ("5f00::1", Kind.RESERVED),
]

# An address, and the IPv4 addresses within it.
EMBEDDED = [
    ("::ffff:8.8.8.8", ["8.8.8.8"]),
    ("::ffff:10.0.0.1", ["10.0.0.1"]),
    ("::ffff:127.0.0.1", ["127.0.0.1"]),
    ("::ffff:0:8.8.8.8", ["8.8.8.8"]),
    ("::8.8.8.8", ["8.8.8.8"]),
    ("::127.0.0.1", ["127.0.0.1"]),
    ("::0.0.0.2", ["0.0.0.2"]),
    ("64:ff9b::8.8.8.8", ["8.8.8.8"]),
    ("64:ff9b::10.0.0.1", ["10.0.0.1"]),
    ("64:ff9b:1::8.8.8.8", ["8.8.8.8"]),
    ("64:ff9b:1:2:3::192.168.1.1", ["192.168.1.1"]),
    ("2002:0808:0808::1", ["8.8.8.8"]),
    ("2002:7f00:1::", ["127.0.0.1"]),
    ("2002:c0a8:101::5", ["192.168.1.1"]),
    ("2001:0:0808:0808::f7f7:f7f7", ["8.8.8.8", "8.8.8.8"]),
    ("2001:0:0808:0808::80ff:fffe", ["8.8.8.8", "127.0.0.1"]),
    ("2a00:1450::5efe:10.0.0.1", ["10.0.0.1"]),
    ("2a00:1450::200:5efe:10.0.0.1", ["10.0.0.1"]),
]


def networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


@pytest.mark.parametrize("text", PUBLIC)
@pytest.mark.parametrize("may_be_private", [False, True])
def test_a_public_address_may_be_called(text: str, may_be_private: bool) -> None:
    verdict = judge(ip_address(text), may_be_private=may_be_private)
    assert (verdict.allowed, verdict.kind) == (True, Kind.PUBLIC)


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_any_other_address_is_refused_and_called_what_it_is(text: str, kind: Kind) -> None:
    verdict = judge(ip_address(text))
    assert (verdict.allowed, verdict.kind) == (False, kind)


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_a_refused_address_may_be_called_when_a_range_names_just_it(text: str, kind: Kind) -> None:
    address = ip_address(text.partition("%")[0])
    assert judge(address, networks(f"{address}/{address.max_prefixlen}")).allowed


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_a_range_that_names_everything_allows_all_but_link_local_and_metadata(text: str, kind: Kind) -> None:
    verdict = judge(ip_address(text), networks("0.0.0.0/0", "::/0"))
    assert verdict.allowed is (kind not in (Kind.LINK_LOCAL, Kind.METADATA))


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_an_upstream_of_the_operator_may_be_internal_and_nothing_else(text: str, kind: Kind) -> None:
    verdict = judge(ip_address(text), may_be_private=True)
    assert verdict.allowed is (kind in (Kind.LOOPBACK, Kind.PRIVATE, Kind.CARRIER_GRADE))


@pytest.mark.parametrize("text", [text for text, kind in REFUSED if kind in (Kind.LINK_LOCAL, Kind.METADATA)])
def test_no_range_allows_link_local_or_metadata_as_an_upstream(text: str) -> None:
    address = ip_address(text)
    exactly = str(address).partition("%")[0]
    verdict = judge(address, networks(exactly, "0.0.0.0/0", "::/0"), may_be_private=True)
    assert not verdict.allowed
    assert not verdict.can_be_allowed


@pytest.mark.parametrize(("text", "inner"), EMBEDDED)
@pytest.mark.parametrize("may_be_private", [False, True])
def test_an_ipv4_address_inside_an_ipv6_one_is_refused_be_it_public(
    text: str, inner: list[str], may_be_private: bool
) -> None:
    verdict = judge(ip_address(text), may_be_private=may_be_private)
    assert (verdict.allowed, verdict.kind) == (False, Kind.EMBEDDED)


@pytest.mark.parametrize(("text", "inner"), EMBEDDED)
def test_it_may_be_called_when_every_address_within_is_named(text: str, inner: list[str]) -> None:
    assert judge(ip_address(text), networks(*inner)).allowed


@pytest.mark.parametrize(("text", "inner"), EMBEDDED)
def test_naming_the_ipv6_range_allows_it_as_far_as_the_addresses_within_are_good(
    text: str, inner: list[str]
) -> None:
    public = all(kind_of(ip_address(each)) is Kind.PUBLIC for each in inner)
    assert judge(ip_address(text), networks("::/0")).allowed is public


@pytest.mark.parametrize("form", ["::ffff:{}", "::{}", "64:ff9b::{}", "64:ff9b:1::{}", "2a00::5efe:{}"])
def test_metadata_is_refused_in_every_disguise(form: str) -> None:
    address = ip_address(form.format("169.254.169.254"))
    for allow in ((), networks("0.0.0.0/0", "::/0"), networks(str(address))):
        for may_be_private in (False, True):
            verdict = judge(address, allow, may_be_private=may_be_private)
            assert (verdict.allowed, verdict.kind) == (False, Kind.METADATA)


def test_metadata_behind_6to4_and_teredo_is_refused() -> None:
    for text in ("2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::f7f7:f7f7", "2001:0:0808:0808::5601:5601"):
        assert judge(ip_address(text), networks("::/0", "0.0.0.0/0")).kind is Kind.METADATA


def test_a_teredo_address_needs_its_server_and_its_client_named() -> None:
    address = ip_address("2001:0:0808:0808::80ff:fffe")
    assert not judge(address, networks("127.0.0.1")).allowed
    assert not judge(address, networks("8.8.8.8")).allowed
    assert judge(address, networks("8.8.8.8", "127.0.0.1")).allowed


def test_an_allowed_range_allows_only_what_lies_within_it() -> None:
    allow = networks("10.1.0.0/16")
    assert judge(ip_address("10.1.255.255"), allow).allowed
    assert not judge(ip_address("10.2.0.0"), allow).allowed
    assert not judge(ip_address("::1"), allow).allowed


ADDRESSES = st.one_of(
    st.integers(0, 2**32 - 1).map(IPv4Address),
    st.integers(0, 2**128 - 1).map(IPv6Address),
    st.ip_addresses(),
)


@given(ADDRESSES)
def test_whatever_may_be_called_is_global_by_the_standard_librarys_table_too(address: Address) -> None:
    if judge(address).allowed:
        assert address.is_global
        assert not address.is_multicast


@given(ADDRESSES)
def test_allowing_ranges_never_refuses_what_was_good(address: Address) -> None:
    if judge(address).allowed:
        assert judge(address, networks("10.0.0.0/8", "fc00::/7")).allowed
        assert judge(address, may_be_private=True).allowed


def test_a_refusal_names_host_address_and_the_setting_that_would_allow_it() -> None:
    policy = EgressPolicy()
    address = ip_address("10.0.0.7")
    refused = EgressRefused("db.internal", address, policy.judge(address))
    assert refused.code == "egress_refused"
    for part in ("db.internal", "10.0.0.7", "a private address", "10.0.0.7/32 to CROSSDOCK_EGRESS_ALLOW"):
        assert part in refused.message


def test_a_refusal_that_no_setting_lifts_says_so() -> None:
    address = ip_address("169.254.169.254")
    refused = EgressRefused("metadata", address, EgressPolicy(may_be_private=True).judge(address))
    assert "No setting allows it" in refused.message
    assert "EGRESS_ALLOW" not in refused.message
