"""`/v1/hooks/filters/test` and `/v1/hooks/transforms/test`: tried out before they are used."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from crossdock.hooks.model import BODY_BYTES_MAX
from crossdock.hooks.service.principals import READ
from crossdock.hooks.service.trials import FilterVerdict, Sample, Transformed, Trials
from crossdock.http.bodies import RequestBody
from crossdock.http.guards import requires
from crossdock.http.principals import Principal
from crossdock.kit.errors import FieldProblem, InvalidInput


class SampleRequest(RequestBody):
    """`body`: a text is the body itself, anything else is sent as JSON."""

    body: Any
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    query: str | dict[str, str | list[str]] = ""
    path: str = ""
    method: str = "POST"


class FilterTrial(RequestBody):
    filters: list[Any]
    sample: SampleRequest | None = None
    event_id: str | None = None


class TransformTrial(RequestBody):
    transform: list[Any]
    sample: SampleRequest | None = None
    event_id: str | None = None


class TrialsApi(Controller):
    path = "/v1/hooks"
    tags = ("hooks",)
    guards = (requires(READ),)

    @post("/filters/test", status_code=200, summary="Try out filters")
    async def filters(
        self,
        data: JSONBody[FilterTrial],
        trials: NamedDependency[Trials],
        principal: NamedDependency[Principal],
    ) -> FilterVerdict:
        """On a `sample`, or on the event `event_id`. `path` says where a rule first failed."""
        return await trials.filters(principal, data.filters, tried_on(data.sample, data.event_id))

    @post("/transforms/test", status_code=200, summary="Try out a transform")
    async def transform(
        self,
        data: JSONBody[TransformTrial],
        trials: NamedDependency[Trials],
        principal: NamedDependency[Principal],
    ) -> Transformed:
        """On a `sample`, or on the event `event_id`. One that fails is 422 `transform_failed`."""
        return await trials.transform(principal, data.transform, tried_on(data.sample, data.event_id))


def tried_on(sample: SampleRequest | None, event_id: str | None) -> Sample | str:
    if event_id is not None and sample is None:
        return event_id
    if sample is None:
        raise _wrong("sample", "required", "Give a sample, or the event_id of an event that came.")
    if event_id is not None:
        raise _wrong("event_id", "not_together", "Give a sample or an event_id, not both.")
    body = sample.body.encode() if isinstance(sample.body, str) else msgspec.json.encode(sample.body)
    if len(body) > BODY_BYTES_MAX:
        raise _wrong("sample.body", "too_large", f"At most {BODY_BYTES_MAX // 1024} KB, like any event's.")
    query = sample.query if isinstance(sample.query, str) else urlencode(sample.query, doseq=True)
    return Sample(body, tuple(sample.headers.items()), query, sample.path, sample.method)


def _wrong(field: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput("The request body is not valid.", FieldProblem(field, code, detail))
