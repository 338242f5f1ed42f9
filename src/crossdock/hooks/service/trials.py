"""Filters and transforms tried out on a sample, or on an event that came.

Both are bounded, but may take a good part of a second: they run in a thread, so that others are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from crossdock.hooks.rules.filters import RuleVerdict, Subject, parse_filters
from crossdock.hooks.rules.paths import MISSING, decode_document
from crossdock.hooks.rules.transforms import Message, TransformFailed, parse_transform
from crossdock.http.principals import Principal
from crossdock.kit.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class Sample:
    """A request as filters and transforms see it."""

    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    query: str = ""
    path: str = ""
    method: str = "POST"


FindEvent: TypeAlias = Callable[[Principal, str], Awaitable[Sample | None]]
"""The request of an event that the principal may see; None: there is no such event."""


class FilterVerdict(msgspec.Struct, frozen=True):
    matches: bool
    rules: list[RuleVerdict]


class Transformed(msgspec.Struct, frozen=True):
    body: Any
    """JSON, or the text that it is."""
    headers: dict[str, str]
    """One that is there twice is joined with a comma."""


class Trials:
    def __init__(self, find_event: FindEvent) -> None:
        self._find_event = find_event

    async def filters(self, principal: Principal, raw: Any, of: Sample | str) -> FilterVerdict:
        """`of`: a sample, or an event's id."""
        sample = await self._sample(principal, of)
        return await asyncio.to_thread(_filtered, raw, sample)

    async def transform(self, principal: Principal, raw: Any, of: Sample | str) -> Transformed:
        sample = await self._sample(principal, of)
        return await asyncio.to_thread(_transformed, raw, sample)

    async def _sample(self, principal: Principal, of: Sample | str) -> Sample:
        if isinstance(of, Sample):
            return of
        found = await self._find_event(principal, of)
        if found is None:
            raise NotFound("event_not_found", f"There is no event {of}.")
        return found


def _filtered(raw: Any, sample: Sample) -> FilterVerdict:
    subject = Subject.of(sample.body, sample.headers, sample.query, sample.path, sample.method)
    rules = parse_filters(raw).explain(subject)
    return FilterVerdict(all(rule.matches for rule in rules), rules)


def _transformed(raw: Any, sample: Sample) -> Transformed:
    transform = parse_transform(raw)
    try:
        message = transform.apply(Message(sample.body, sample.headers))
    except TransformFailed as failed:
        raise InvalidInput(failed.message, code=failed.code) from failed
    headers: dict[str, str] = {}
    for name, value in message.headers:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Transformed(_shown(message.body), headers)


def _shown(body: bytes) -> Any:
    """A JSON text is shown as the text it is, quotes and all: so a shown body may be a sample again."""
    document = decode_document(body)
    return body.decode(errors="replace") if document is MISSING or isinstance(document, str) else document
