"""Choosing what to answer with by the request's `Accept` header (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossdock.kit.errors import CrossdockError


class NotAcceptable(CrossdockError):
    """The client takes none of the kinds that this resource has."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    kind: str
    quality: float

    def specificity(self, offer: str) -> int:
        """How exactly this entry speaks of the offer; 0: not at all."""
        if self.kind == offer:
            return 3
        if self.kind == offer.split("/", maxsplit=1)[0] + "/*":
            return 2
        return 1 if self.kind == "*/*" else 0


def accepted(accept: str | None, offers: Sequence[str]) -> str:
    """The offer the client likes best; the first of equals. Raises NotAcceptable."""
    if accept is None or not accept.strip():
        return offers[0]
    wanted = [_parse(entry) for entry in accept.split(",")]
    best = max(offers, key=lambda offer: _quality(wanted, offer))
    if _quality(wanted, best) <= 0:
        raise NotAcceptable("not_acceptable", f"Ask for one of {', '.join(offers)}.")
    return best


def _quality(wanted: Sequence[_Wanted], offer: str) -> float:
    most_specific = max(wanted, key=lambda entry: entry.specificity(offer))
    return most_specific.quality if most_specific.specificity(offer) else 0.0


def _parse(entry: str) -> _Wanted:
    kind, *parameters = (part.strip().lower() for part in entry.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "q":
            try:
                quality = min(max(float(value), 0.0), 1.0)
            except ValueError:
                quality = 0.0
    return _Wanted(kind, quality)
