"""`POST /v1/devices/readings`: the hot lane. Raw ASGI, nothing stored that is not needed for the answer."""

from __future__ import annotations

import msgspec

from crossdock.devices.model import REQUEST_BYTES_MAX
from crossdock.devices.rules.requests import parse_readings
from crossdock.devices.service.ingestion import Ingestion
from crossdock.devices.service.keys import INGEST, check_speaks_for
from crossdock.http.asgi import App, Receive, Scope, Send, header, lane, read_body, send_json
from crossdock.http.guards import Authenticator
from crossdock.http.management import check_media_type
from crossdock.http.principals import require

PATH = "/v1/devices/readings"

_encode = msgspec.json.Encoder().encode


def readings_lane(ingestion: Ingestion, authenticator: Authenticator) -> App:
    async def post_readings(scope: Scope, receive: Receive, send: Send) -> None:
        principal = await authenticator.authenticate(scope)
        require(principal, INGEST)
        content_type = header(scope, b"content-type")
        check_media_type(None if content_type is None else content_type.decode("latin-1"))
        body = await read_body(scope, receive, REQUEST_BYTES_MAX)
        hardware_id, readings = parse_readings(body)
        check_speaks_for(principal, hardware_id)
        verdict = await ingestion.ingest(hardware_id, readings, principal)
        await send_json(send, 200, _encode(verdict))

    return lane(post_readings, "POST")
