"""Ranges as files: NDJSON, CSV, Parquet."""

from __future__ import annotations

import asyncio
import csv
import io
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow
import pyarrow.parquet
import pytest
from tests.support.devices import BOOT_ID, DEVICES, OPERATOR_KEY, Served, new_hardware_id, reading

from crossdock.http.asgi import Message, Scope

NDJSON, CSV, PARQUET = "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"


@dataclass(frozen=True)
class Download:
    status: int
    headers: dict[str, str]
    chunks: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


async def download(served: Served, hardware_id: str, accept: str, query: str = "") -> Download:
    """By a client that stays connected: the chunks as they were sent."""
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": f"{DEVICES}/{hardware_id}/readings",
        "raw_path": b"",
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {OPERATOR_KEY}".encode()), (b"accept", accept.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
        "state": {},
    }
    asked, answered, sent = False, asyncio.Event(), list[Message]()

    async def receive() -> Message:
        nonlocal asked
        if asked:
            # As a server does: a request that was answered is over.
            await answered.wait()
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            answered.set()

    await served.node.app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Download(sent[0]["status"], headers, [each["body"] for each in sent[1:] if each.get("body")])


def table_of(body: bytes) -> pyarrow.Table:
    return pyarrow.parquet.read_table(io.BytesIO(body))


async def some(served: Served) -> tuple[str, list[dict[str, Any]]]:
    hardware_id, now_ms = await served.device(friendly_name="green, house"), served.now_ms
    sent = [
        reading(now_ms - 5000, sensors={"temp": 21.5, "n": 3}, sensor_status={"bme": "ok"}),
        reading(now_ms - 4999, sensors={}, sensor_status={}),
        reading(now_ms - 10, sensors={"n": 7, "late": -0.25}, sensor_status={"bme": "error", "late": "ok"}),
    ]
    await served.verdict(hardware_id, *sent[::-1])
    return hardware_id, sent


async def test_ndjson_is_the_readings_as_stored_a_line_each(shared: Served) -> None:
    hardware_id, sent = await some(shared)
    got = await download(shared, hardware_id, NDJSON)
    assert (got.status, got.headers["content-type"]) == (200, NDJSON)
    assert (
        got.headers["content-disposition"] == f'attachment; filename="{hardware_id.replace(":", "")}.ndjson"'
    )
    assert got.body.endswith(b"\n")
    lines = [msgspec.json.decode(line) for line in got.body.splitlines()]
    assert lines == await shared.rows(hardware_id)
    assert [line["timestamp_ms"] for line in lines] == [each["timestamp_ms"] for each in sent]


async def test_csv_has_a_column_for_every_sensor_and_status_of_the_range(shared: Served) -> None:
    hardware_id, sent = await some(shared)
    got = await download(shared, hardware_id, CSV)
    assert (got.status, got.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert got.headers["content-disposition"].endswith('.csv"')
    rows = list(csv.DictReader(io.StringIO(got.body.decode(), newline="")))
    empty = {"sensors.temp": "", "sensors.n": "", "sensors.late": ""}
    status = {"sensor_status.bme": "", "sensor_status.late": ""}
    common = {"boot_id": BOOT_ID, "firmware_version": "1.0.16", "friendly_name": "green, house"}

    def expected(position: int, **values: str) -> dict[str, str]:
        time_ms = sent[position]["timestamp_ms"]
        time = datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        own = {
            "timestamp_ms": str(time_ms),
            "time": f"{time}.{time_ms % 1000:03}Z",
            "batch_id": sent[position]["batch_id"],
        }
        return own | common | empty | status | values

    assert rows == [
        expected(0, **{"sensors.temp": "21.5", "sensors.n": "3", "sensor_status.bme": "ok"}),
        expected(1),
        expected(
            2,
            **{
                "sensors.n": "7",
                "sensors.late": "-0.25",
                "sensor_status.bme": "error",
                "sensor_status.late": "ok",
            },
        ),
    ]


async def test_parquet_has_typed_columns_with_nulls_for_what_was_not_measured(shared: Served) -> None:
    hardware_id, sent = await some(shared)
    got = await download(shared, hardware_id, PARQUET)
    assert (got.status, got.headers["content-type"]) == (200, PARQUET)
    table = table_of(got.body)
    assert table.schema.field("timestamp_ms").type == pyarrow.int64()
    assert table.schema.field("time").type == pyarrow.timestamp("ms", tz="UTC")
    assert table.schema.field("sensors.n").type == pyarrow.float64()
    assert table.schema.field("sensor_status.bme").type == pyarrow.string()
    rows = table.to_pylist()
    assert [row["timestamp_ms"] for row in rows] == [each["timestamp_ms"] for each in sent]
    assert [row["time"].timestamp() for row in rows] == [each["timestamp_ms"] / 1000 for each in sent]
    assert [row["sensors.n"] for row in rows] == [3.0, None, 7.0]
    assert [row["sensors.late"] for row in rows] == [None, None, -0.25]
    assert [row["sensor_status.bme"] for row in rows] == ["ok", None, "error"]
    assert {row["friendly_name"] for row in rows} == {"green, house"}


async def test_five_thousand_readings_come_in_pieces_all_of_them_in_every_format(shared: Served) -> None:
    hardware_id, start_ms = await shared.device(), shared.now_ms - 10_000_000
    for start in range(0, 5000, 99):
        numbers = range(start, min(start + 99, 5000))
        # A sensor that appears late, in the last pages only.
        await shared.verdict(
            hardware_id,
            *(
                reading(
                    start_ms + n,
                    f"{hardware_id}_{start}",
                    sensors={"n": n} | ({"late": n / 2} if n >= 4990 else {}),
                )
                for n in numbers
            ),
        )
    expected = list(range(5000))
    lines = await download(shared, hardware_id, NDJSON)
    assert [msgspec.json.decode(line)["sensors"]["n"] for line in lines.body.splitlines()] == expected
    text = await download(shared, hardware_id, CSV)
    rows = list(csv.DictReader(io.StringIO(text.body.decode(), newline="")))
    assert [int(row["sensors.n"]) for row in rows] == expected
    # DynamoDB knows no difference between 2495 and 2495.0.
    late = [float(row["sensors.late"] or "nan") for row in rows]
    assert late[4990:] == [n / 2 for n in range(4990, 5000)]
    assert all(map(math.isnan, late[:4990]))
    file = await download(shared, hardware_id, PARQUET)
    table = table_of(file.body)
    assert table.column("sensors.n").to_pylist() == expected
    assert table.column("sensors.late").null_count == 4990
    for got in (lines, text, file):
        assert len(got.chunks) >= 5
        assert max(map(len, got.chunks)) < 1_000_000


async def test_a_file_is_of_the_range_and_in_the_order_asked_for(shared: Served) -> None:
    hardware_id, sent = await some(shared)
    query = f"from_ms={sent[1]['timestamp_ms']}&to_ms={sent[2]['timestamp_ms']}&order=desc"
    for accept in (NDJSON, CSV, PARQUET):
        got = await download(shared, hardware_id, accept, query)
        if accept == NDJSON:
            times = [msgspec.json.decode(line)["timestamp_ms"] for line in got.body.splitlines()]
        elif accept == CSV:
            times = [int(row["timestamp_ms"]) for row in csv.DictReader(io.StringIO(got.body.decode()))]
        else:
            times = table_of(got.body).column("timestamp_ms").to_pylist()
        assert times == [sent[2]["timestamp_ms"], sent[1]["timestamp_ms"]], accept


async def test_an_empty_range_is_an_empty_file_of_its_format(shared: Served) -> None:
    hardware_id = await shared.device()
    assert (await download(shared, hardware_id, NDJSON)).body == b""
    header = (await download(shared, hardware_id, CSV)).body
    assert header == b"timestamp_ms,time,batch_id,boot_id,firmware_version,friendly_name\r\n"
    assert table_of((await download(shared, hardware_id, PARQUET)).body).num_rows == 0


async def test_a_text_that_a_spreadsheet_would_run_is_kept_a_text(shared: Served) -> None:
    hardware_id = await shared.device(friendly_name='=HYPERLINK("http://x")')
    await shared.verdict(hardware_id, reading(shared.now_ms, firmware_version="@SUM(A1)", sensors={"n": -1}))
    [row] = csv.DictReader(io.StringIO((await download(shared, hardware_id, CSV)).body.decode()))
    assert row["friendly_name"] == '\'=HYPERLINK("http://x")'
    assert row["firmware_version"] == "'@SUM(A1)"
    assert row["sensors.n"] == "-1"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("text/*", "text/csv; charset=utf-8"),
        ("text/csv;q=0.5, application/x-ndjson", NDJSON),
        ("application/json;q=0.2, application/vnd.apache.parquet", PARQUET),
    ],
)
async def test_the_client_gets_the_kind_it_likes_best(shared: Served, accept: str, kind: str) -> None:
    got = await download(shared, await shared.device(), accept)
    assert (got.status, got.headers["content-type"]) == (200, kind)


@pytest.mark.parametrize(
    ("accept", "query"), [("text/html", ""), ("application/json;q=0", ""), ("text/csv", "bucket=1h")]
)
async def test_a_kind_that_there_is_not_is_406(shared: Served, accept: str, query: str) -> None:
    target = f"{DEVICES}/{await shared.device()}/readings?{query}"
    answer = await shared.operator.get(target, headers={"accept": accept})
    assert (answer.status, answer.code) == (406, "not_acceptable")


@pytest.mark.parametrize("accept", [NDJSON, CSV, PARQUET])
async def test_a_file_of_an_unknown_device_is_404_and_of_a_wrong_range_422(
    shared: Served, accept: str
) -> None:
    for hardware_id, query, status in (
        (new_hardware_id(), "", 404),
        (await shared.device(), "from_ms=2&to_ms=1", 422),
    ):
        got = await download(shared, hardware_id, accept, query)
        assert (got.status, got.headers["content-type"]) == (status, "application/problem+json")
