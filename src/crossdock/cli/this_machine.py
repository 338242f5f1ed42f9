"""Where commands find the server and its operator's key, unless they are told."""

from __future__ import annotations

from collections.abc import Mapping

from crossdock.cli.configuration import read_configuration
from crossdock.cli.runtime import Runtime
from crossdock.settings import Settings

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- to be replaced


class ThisMachine:
    """By the settings that `crossdock up` reads, too."""

    def __init__(self, environ: Mapping[str, str], runtime: Runtime) -> None:
        self._environ = environ
        self._runtime = runtime

    def url(self) -> str:
        settings = self._settings()
        return local_url(settings.host, settings.port)

    def operator_key(self) -> str | None:
        return self._runtime.operator_key(self._settings())

    def _settings(self) -> Settings:
        return read_configuration(self._environ, {}).settings


def local_url(host: str, port: int) -> str:
    """How a process on this machine reaches a server that listens there."""
    address = _EVERY_ADDRESS.get(host, host)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
