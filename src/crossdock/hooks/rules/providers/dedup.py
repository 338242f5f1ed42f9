"""Which delivery a request is: the id that stays the same when a provider sends it again.

An id that two different deliveries could share loses one of them, so where a provider's header promises less
than that, a digest of the body is part of the id. No id means no duplicate.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Annotated, TypeAlias

import msgspec

from crossdock.hooks.rules.providers.adyen import notification_items, text_of
from crossdock.hooks.rules.providers.claims import chosen_prefix
from crossdock.hooks.rules.providers.model import Arrival
from crossdock.hooks.rules.providers.settings import HeaderName, converted, refuse
from crossdock.kit.errors import FieldProblem

ID_CHARACTERS_MAX = 512
WINDOW_SECONDS_DEFAULT = 86_400

Path: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^.\x00-\x1f]{1,128}(\.[^.\x00-\x1f]{1,128}){0,15}\Z",
        description="names of fields with dots between, like data.id",
    ),
]


class Dedup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a source's delivery id stands, and for how long a second one is a duplicate.

    Neither `header` nor `path`: where the provider has it.
    """

    header: HeaderName | None = None
    path: Path | None = None
    enabled: bool = True
    window_seconds: Annotated[int, msgspec.Meta(ge=60, le=604_800)] = WINDOW_SECONDS_DEFAULT


def parse_dedup(raw: object, field: str = "dedup") -> Dedup | None:
    """None for None. Raises InvalidInput."""
    if raw is None:
        return None
    dedup = converted(raw, Dedup, field)
    if dedup.header is not None and dedup.path is not None:
        refuse(FieldProblem(field, "not_together", "Name a header or a path, not both."))
    return dedup


IdSource: TypeAlias = Callable[[Arrival], object]
"""Where a provider's delivery id stands; None or nonsense where there is none."""


def delivery_id(arrival: Arrival, source: IdSource, dedup: Dedup | None) -> str | None:
    if dedup is not None:
        if not dedup.enabled:
            return None
        if dedup.header is not None:
            return _as_id(arrival.header(dedup.header))
        if dedup.path is not None:
            return _as_id(at_path(arrival.document, dedup.path))
    return _as_id(source(arrival))


def _as_id(value: object) -> str | None:
    if type(value) is int:
        value = str(value)
    if isinstance(value, str) and 0 < len(value) <= ID_CHARACTERS_MAX:
        return value
    return None


_INDEX = re.compile(r"[0-9]{1,6}")


def at_path(document: object, path: str) -> object:
    """What stands at `data.items.0.id`; None if nothing does."""
    for step in path.split("."):
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and _INDEX.fullmatch(step) and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document


# --- where providers have it -----------------------------------------------------------------------


def nowhere(_: Arrival) -> object:
    return None


def by_header(name: str) -> IdSource:
    return lambda arrival: arrival.header(name)


def by_path(*paths: str) -> IdSource:
    """At the first of these paths where there is something."""

    def find(arrival: Arrival) -> object:
        found = (at_path(arrival.document, path) for path in paths)
        return next((value for value in found if value is not None), None)

    return find


def by_header_and_body(name: str) -> IdSource:
    """For a header that two deliveries may share."""

    def find(arrival: Arrival) -> object:
        value = arrival.header(name)
        return f"{value}:{hashlib.sha256(arrival.body).hexdigest()}" if value else None

    return find


def first_of(*sources: IdSource) -> IdSource:
    def find(arrival: Arrival) -> object:
        found = (source(arrival) for source in sources)
        return next((value for value in found if value), None)

    return find


def by_signed_header(prefixes: tuple[str, ...]) -> IdSource:
    """Of the aliases the one whose signature counts: an id in another one is not signed."""

    def find(arrival: Arrival) -> object:
        prefix = chosen_prefix(arrival, prefixes)
        return None if prefix is None else arrival.header(f"{prefix}-id")

    return find


def by_only_event(path: str | None, name: str) -> IdSource:
    """The id of the one event in a list. Several may be put together anew when they are sent again."""

    def find(arrival: Arrival) -> object:
        events = arrival.document if path is None else at_path(arrival.document, path)
        only = events[0] if isinstance(events, list) and len(events) == 1 else None
        return only.get(name) if isinstance(only, dict) else None

    return find


def by_only_adyen_item(arrival: Arrival) -> object:
    items = notification_items(arrival.document) or []
    if len(items) != 1:
        return None
    parts = [text_of(items[0].get(name)) for name in ("pspReference", "eventCode", "success")]
    return ":".join(part for part in parts if part) if all(parts) else None
