"""`POST /v1/hooks/connections/{id}/test`: does the destination answer?"""

from __future__ import annotations

from litestar import Controller, Router, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from crossdock.hooks.service.principals import WRITE
from crossdock.hooks.service.samples import SampleResult, SampleSender
from crossdock.http.guards import Authenticator, requires
from crossdock.http.management import guarded_router
from crossdock.http.principals import Principal


class SamplesApi(Controller):
    path = "/v1/hooks/connections/{connection_id:str}/test"
    tags = ("hooks",)

    @post(status_code=200, guards=[requires(WRITE)], summary="Send a sample to a connection")
    async def send(
        self,
        connection_id: FromPath[str],
        samples: NamedDependency[SampleSender],
        principal: NamedDependency[Principal],
    ) -> SampleResult:
        """One signed call, made now; the answer says what came of it. Nothing of it is kept or counted."""
        return await samples.send(principal, connection_id)


def router(samples: SampleSender, authenticator: Authenticator) -> Router:
    return guarded_router(authenticator, [SamplesApi], {"samples": samples})
