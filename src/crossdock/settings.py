"""Every setting of the product: one tree, read once at start; docs/reference/settings.md is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from crossdock.access.settings import AccessSettings
from crossdock.devices.settings import DevicesSettings
from crossdock.hooks.settings import HooksSettings
from crossdock.kit.configuration import IpNetwork, group, setting, url

SLICES = ("hooks", "devices")

_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Settings:
    data_dir: Path = setting(
        Path("crossdock-data"),
        "Where everything that lasts is kept: the embedded PostgreSQL, secrets, exports.",
    )
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8420, "TCP port to listen on; 0 takes a free one.", minimum=0, maximum=65_535)
    workers: int = setting(1, "Lane processes that answer requests.", minimum=1, maximum=64)
    slices: tuple[str, ...] = setting(SLICES, "Slices that serve and work, by name.", choices=SLICES)
    database_url: str | None = setting(
        None,
        "External PostgreSQL 15 or newer, as postgresql://user:password@host/database. "
        "Without it, an embedded PostgreSQL runs in the data directory.",
        secret=True,
        check=url("postgresql", "postgres", host_required=False),
    )
    items: Literal["postgres", "dynamodb"] = setting(
        "postgres", "Where the slices on the Items port keep their data."
    )
    dynamodb_endpoint: str | None = setting(
        None,
        "DynamoDB endpoint, for DynamoDB Local; AWS's own by default. Credentials and region come from the "
        "usual AWS variables.",
        check=url("http", "https"),
    )
    table_prefix: str = setting("", "Put before the name of every items table.")
    redis_url: str | None = setting(
        None, "Redis, for limits and caches shared by processes.", secret=True, check=url("redis", "rediss")
    )
    public_url: str | None = setting(
        None,
        "How the outside sees us: for signed URLs, links and callbacks. By default the host and port.",
        check=url("http", "https"),
    )
    trusted_proxies: tuple[IpNetwork, ...] = setting(
        (), "Networks of proxies whose X-Forwarded-* headers are believed."
    )
    sync_files_dir: Path | None = setting(
        None, "Where local_file destinations may write; `exports` in the data directory by default."
    )
    operator_key: str | None = setting(
        None,
        "The key that may do everything. Made on first start, printed once, and kept in the data directory "
        "unless given.",
        secret=True,
    )
    secret_key: str | None = setting(
        None,
        "Seals stored secrets: 32 random bytes in hex or base64. Made on first start and kept in the data "
        "directory unless given; several nodes need the same one.",
        secret=True,
    )
    egress_allow: tuple[IpNetwork, ...] | None = setting(
        None,
        "Networks that outgoing requests may reach besides public addresses. By default loopback when HOST "
        "is loopback, else none.",
    )
    access: AccessSettings = group(AccessSettings)
    devices: DevicesSettings = group(DevicesSettings)
    hooks: HooksSettings = group(HooksSettings)

    @property
    def egress_allowed(self) -> tuple[IpNetwork, ...]:
        if self.egress_allow is not None:
            return self.egress_allow
        return _LOOPBACK if self.host in ("127.0.0.1", "::1", "localhost") else ()

    @property
    def reachable_url(self) -> str:
        """The public URL, or the address it listens on."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"
