"""What a user says of a connection, checked field by field. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crossdock.delivery.limits import parse_rate_limit
from crossdock.delivery.prepare import check_headers
from crossdock.delivery.schedule import parse_retry_policy
from crossdock.hooks.model import TIMEOUT_SECONDS_DEFAULT, Connection
from crossdock.hooks.rules.filters import parse_filters
from crossdock.hooks.rules.transforms import parse_transform
from crossdock.hooks.service.problems import Problems
from crossdock.http.outgoing import check_url
from crossdock.kit.errors import FieldProblem
from crossdock.kit.logging import MASK

_CHECKS: tuple[tuple[str, Callable[[object, str], object]], ...] = (
    ("filters", parse_filters),
    ("transform", parse_transform),
    ("retry_config", parse_retry_policy),
    ("headers", check_headers),
    ("rate_limit", parse_rate_limit),
)
_DEFAULTS: dict[str, Any] = {"headers": {}, "ordered": False, "timeout_seconds": TIMEOUT_SECONDS_DEFAULT}


def check_connection(given: Mapping[str, Any], before: Connection | None) -> None:
    """`given`: the fields of a request; `before` None: for a new one. Raises InvalidInput with all that is
    wrong. Where the destination leads is not looked at."""
    problems = Problems()
    if "destination_url" in given:
        with problems.collected("destination_url"):
            check_url(given["destination_url"])
    for name, check in _CHECKS:
        if given.get(name) is not None:
            with problems.collected():
                check(given[name], name)
    known = {} if before is None else before.headers
    for name in kept_headers(given) - known.keys():
        detail = f"{MASK} stands for a value that is stored, and there is none of this name."
        problems.add(FieldProblem(f"headers.{name}", "masked", detail))
    problems.refuse()


def kept_headers(given: Mapping[str, Any]) -> set[str]:
    """The headers that come back as they were shown, masked: their values stay."""
    return {name for name, value in (given.get("headers") or {}).items() if value == MASK}


def with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """Null puts a field back to what it is for a connection that never had it."""
    return {name: _DEFAULTS.get(name) if value is None else value for name, value in given.items()}
