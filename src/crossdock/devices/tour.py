"""The devices part of `crossdock tour`: a sensor's life, from its key to its deletion."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.kit.ids import token_hex, uuid4_text
from crossdock.terminal.client import ApiClient, path
from crossdock.terminal.failures import CommandFailed
from crossdock.terminal.tour import Step, Tour, Visitor, expect, expect_refusal

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
REVOKED_WITHIN_SECONDS = 5.0
LISTED_WITHIN_SECONDS = 2.0


class SensorsLife:
    """What the steps share: one device with a random id, its key, and the times of its readings."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._operator = visitor.client
        self._sensor: ApiClient = visitor.client
        self._key_id: str | None = None
        tag = token_hex(5, visitor.random).upper()
        # The second lowest bit of the first byte says that the address is no manufacturer's.
        self._hardware_id = ":".join(("02", *(tag[at : at + 2] for at in range(0, 10, 2))))
        self._device_path = path("v1", "devices", self._hardware_id)
        self._readings_path = f"{self._device_path}/readings"
        self._boot_id = uuid4_text(visitor.random)
        self._batch_id = f"tour:{tag}:1"
        self._second_batch_id = f"tour:{tag}:2"
        # Two hours back, at the full hour: three readings a minute apart, and one an hour after the first.
        now_ms = visitor.clock.now_ms()
        self._start_ms = now_ms - now_ms % HOUR_MS - 2 * HOUR_MS
        self._times_ms = [self._start_ms + n * MINUTE_MS for n in range(3)]
        self._last_ms = self._start_ms + HOUR_MS
        self._range: Mapping[str, object] = {"from_ms": self._start_ms, "to_ms": self._last_ms}
        self._batch = [self._reading(self._batch_id, at, 20.0 + n) for n, at in enumerate(self._times_ms)]

    # --- sending ------------------------------------------------------------------------------------

    def make_key(self) -> str:
        key = self._operator.post("/v1/devices/keys", {"description": "crossdock tour"})
        self._key_id = key["key_id"]
        self._sensor = self._visitor.client_with(key["api_key"])
        expect(len(key["api_key"]), 64, "length of the key")
        expect(key["is_active"], True, "is_active")
        return f"key {self._key_id}"

    def register(self) -> str:
        sent = {
            "hardware_id": self._hardware_id,
            "boot_id": self._boot_id,
            "firmware_version": "1.0.0",
            "capabilities": {"sensors": ["temperature"]},
            "friendly_name": "Tour sensor",
        }
        device = self._sensor.post("/v1/devices/register", sent)
        again = self._sensor.post("/v1/devices/register", sent)
        expect(device["hardware_id"], self._hardware_id, "hardware_id")
        expect(
            again["confirmation_id"], device["confirmation_id"], "confirmation_id of a second registration"
        )
        return f"device {self._hardware_id}"

    def send(self) -> str:
        return self._expect_verdict(self._send(self._batch), acknowledged=[self._batch_id])

    def send_again(self) -> str:
        return self._expect_verdict(self._send(self._batch), duplicates=[self._batch_id])

    def send_changed(self) -> str:
        changed = [{**reading, "sensors": {"temperature": -40.0}} for reading in self._batch]
        return self._expect_verdict(self._send(changed), rejected=["batch_conflict"] * len(changed))

    def send_bad_beside_good(self) -> str:
        bad = self._reading(f"{self._second_batch_id}:bad", self._last_ms, "warm")
        good = self._reading(self._second_batch_id, self._last_ms, 23.0)
        return self._expect_verdict(
            self._send([bad, good]), acknowledged=[self._second_batch_id], rejected=["invalid_reading"]
        )

    # --- reading ------------------------------------------------------------------------------------

    def latest(self) -> str:
        reading = self._operator.get(f"{self._readings_path}/latest")
        expect(reading["timestamp_ms"], self._last_ms, "timestamp_ms")
        expect(reading["sensors"], {"temperature": 23.0}, "sensors")
        return "23.0, the newest"

    def read_range(self) -> str:
        found = list(self._operator.pages(self._readings_path, {**self._range, "limit": 2}))
        expect([each["timestamp_ms"] for each in found], [*self._times_ms, self._last_ms], "times")
        return f"{len(found)} readings in order, in pages of 2"

    def downsample(self) -> str:
        query = {**self._range, "bucket": "1h", "agg": "min,max,avg,count"}
        buckets = self._operator.get(self._readings_path, query)["data"]
        expect([each["start_ms"] for each in buckets], [self._start_ms, self._last_ms], "buckets")
        values = buckets[0]["sensors"]["temperature"]
        expect(values, {"min": 20.0, "max": 22.0, "avg": 21.0, "count": 3}, "the first hour")
        return "2 hours, the first with 3 values of 21.0 on average"

    def find_gaps(self) -> str:
        gaps = self._operator.get(f"{self._device_path}/gaps", {**self._range, "expected_seconds": 600})[
            "data"
        ]
        silent = [{"from_ms": self._times_ms[-1], "to_ms": self._last_ms, "seconds": 3480.0}]
        expect(gaps, silent, "gaps")
        return "1 gap of 3480 s"

    def export_csv(self) -> str:
        lines = self._export("text/csv").decode().splitlines()
        expect(len(lines), 5, "lines")
        expect("sensors.temperature" in lines[0].split(","), True, "a column sensors.temperature")
        return "a header and 4 lines"

    def export_ndjson(self) -> str:
        expect(self._export("application/x-ndjson").count(b"\n"), 4, "lines")
        return "4 lines"

    def export_parquet(self) -> str:
        content = self._export("application/vnd.apache.parquet")
        expect((content[:4], content[-4:]), (b"PAR1", b"PAR1"), "first and last bytes")
        return f"a Parquet file of {len(content)} bytes"

    # --- managing -----------------------------------------------------------------------------------

    def list_reporting(self) -> str:
        def is_listed() -> bool:
            page = self._operator.get("/v1/devices", {"status": "reporting", "limit": 200})
            return any(each["hardware_id"] == self._hardware_id for each in page["data"])

        self._visitor.wait(is_listed, LISTED_WITHIN_SECONDS, lambda: "the device is not listed")
        return "the device is listed"

    def rename(self) -> str:
        self._operator.patch(self._device_path, {"friendly_name": "Renamed by the tour"})
        expect(self._operator.get(self._device_path)["friendly_name"], "Renamed by the tour", "friendly_name")
        return "it has the new name"

    def revoke_key(self) -> str:
        if self._key_id is None:
            return "no key was made"
        self._operator.post(path("v1", "devices", "keys", self._key_id, "revoke"))
        seconds = self._visitor.wait(self._is_refused, REVOKED_WITHIN_SECONDS, lambda: "the key still works")
        return f"refused after {seconds:.1f} s"

    def delete(self) -> str:
        try:
            self._operator.delete(self._device_path)
        except CommandFailed as failure:
            if failure.status != 404:
                raise
            return "no device was registered"
        return expect_refusal("device_not_found", lambda: self._operator.get(self._device_path))

    # --- in detail ----------------------------------------------------------------------------------

    def _reading(self, batch_id: str, timestamp_ms: int, temperature: object) -> dict[str, object]:
        return {
            "batch_id": batch_id,
            "timestamp_ms": timestamp_ms,
            "boot_id": self._boot_id,
            "firmware_version": "1.0.0",
            "sensors": {"temperature": temperature},
            "sensor_status": {"temperature": "ok"},
        }

    def _send(self, readings: Sequence[Mapping[str, object]]) -> Any:
        return self._sensor.post(
            "/v1/devices/readings", {"hardware_id": self._hardware_id, "readings": readings}
        )

    def _expect_verdict(
        self,
        verdict: Mapping[str, Any],
        *,
        acknowledged: Sequence[str] = (),
        duplicates: Sequence[str] = (),
        rejected: Sequence[str] = (),
    ) -> str:
        came = [*verdict["acknowledged"]], [*verdict["duplicates"]], [r["code"] for r in verdict["rejected"]]
        expect(came, ([*acknowledged], [*duplicates], [*rejected]), "acknowledged, duplicates, rejected")
        counts = zip(("acknowledged", "duplicate", "rejected"), came, strict=True)
        said = [f"{len(each)} {what}" for what, each in counts if each]
        return ", ".join(said) + (f" ({', '.join(sorted(set(rejected)))})" if rejected else "")

    def _export(self, accept: str) -> bytes:
        file = io.BytesIO()
        self._operator.download(self._readings_path, file, accept=accept, query=self._range)
        return file.getvalue()

    def _is_refused(self) -> bool:
        try:
            self._send(self._batch)
        except CommandFailed as refusal:
            if refusal.status == 401:
                return True
            raise
        return False


def steps(visitor: Visitor) -> Sequence[Step]:
    life = SensorsLife(visitor)
    return (
        Step("make a device key", "a key of 64 characters", life.make_key, essential=True),
        Step("register, twice", "the same device", life.register, essential=True),
        Step("send a batch", "acknowledged", life.send, essential=True),
        Step("send it again", "a duplicate", life.send_again),
        Step("send it with other content", "batch_conflict", life.send_changed),
        Step("send a bad reading beside a good", "only the bad one rejected", life.send_bad_beside_good),
        Step("read the latest", "the newest by its time", life.latest),
        Step("read a range", "4 readings in order", life.read_range),
        Step("downsample by the hour", "2 buckets", life.downsample),
        Step("find gaps of over 10 minutes", "1 gap", life.find_gaps),
        Step("export CSV", "4 readings and a header", life.export_csv),
        Step("export NDJSON", "4 readings", life.export_ndjson),
        Step("export Parquet", "a Parquet file", life.export_parquet),
        Step("list devices that report", "the device among them", life.list_reporting),
        Step("rename the device", "its new name", life.rename),
        Step("revoke the key", "refused within 5 s", life.revoke_key, cleans_up=True),
        Step("delete the device", "gone", life.delete, cleans_up=True),
    )


TOUR = Tour("devices", steps)
