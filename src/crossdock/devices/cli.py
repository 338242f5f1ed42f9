"""`crossdock devices`: the fleet, its readings and its keys from a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click

from crossdock.devices.model import DeviceStatus
from crossdock.devices.rules.files import parse_file, requests_of, sample_readings
from crossdock.kit.clock import rfc3339
from crossdock.kit.ids import uuid4_text
from crossdock.terminal.client import path
from crossdock.terminal.failures import CommandFailed, ExitCode
from crossdock.terminal.moments import FORMS, moment
from crossdock.terminal.options import Session, server_command

PAGE_MAX = 200
LIST_COLUMNS = ("hardware_id", "friendly_name", "status", "last_seen_at", "firmware_version")
KEY_COLUMNS = ("key_id", "description", "hardware_id", "is_active", "created_at", "last_used_at")
MEDIA_TYPES = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


class HardwareIdType(click.ParamType[str]):
    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Addresses are written in capitals; whoever types one need not."""
        return str(value).upper()


hardware_id_argument = click.argument("hardware_id", metavar="ID", type=HardwareIdType())
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=200, show_default=True, help="Entries at most."
)
from_option = click.option(
    "--from", "from_text", metavar="TIME", default="-24h", help=f"Since when: {FORMS}."
)
to_option = click.option("--to", "to_text", metavar="TIME", help="Until when; by default, now and later.")


@click.group("devices")
def devices() -> None:
    """Sensors, their readings and their keys.

    A device's ID is its MAC address: AA:BB:CC:DD:EE:FF.
    """


@devices.command("list")
@click.option("--status", type=click.Choice([each.value for each in DeviceStatus]), help="Only such devices.")
@limit_option
@server_command
def list_devices(session: Session, status: str | None, limit: int) -> None:
    """List devices, newest activity first."""
    session.output.entries(entries(session, "/v1/devices", {"status": status}, limit), LIST_COLUMNS)


@devices.command()
@hardware_id_argument
@server_command
def show(session: Session, hardware_id: str) -> None:
    """Show a device."""
    session.output.value(session.client.get(device_path(hardware_id)))


@devices.command()
@hardware_id_argument
@click.argument("name")
@server_command
def rename(session: Session, hardware_id: str, name: str) -> None:
    """Give a device a name."""
    session.output.value(session.client.patch(device_path(hardware_id), {"friendly_name": name}))


@devices.command()
@hardware_id_argument
@click.confirmation_option(prompt="Delete the device and its readings, for good?", help="Don't ask.")
@server_command
def delete(session: Session, hardware_id: str) -> None:
    """Delete a device and its readings."""
    session.client.delete(device_path(hardware_id))
    session.output.note(f"{hardware_id} is deleted.")


@devices.command()
@hardware_id_argument
@from_option
@to_option
@click.option(
    "--limit", type=click.IntRange(min=1), help="Readings at most: 200 in a table or JSON; a file has all."
)
@click.option("--newest-first", is_flag=True, help="The other way round; in a table or JSON.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json", *MEDIA_TYPES]),
    default="table",
    help="How to print them.",
)
@click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write csv, ndjson or parquet into a file.",
)
@server_command
def readings(
    session: Session,
    *,
    hardware_id: str,
    from_text: str,
    to_text: str | None,
    limit: int | None,
    newest_first: bool,
    format_name: str,
    file: Path | None,
) -> None:
    """Print or export a device's readings of a period: the last day, unless told otherwise."""
    query = period(session, from_text, to_text)
    where = f"{device_path(hardware_id)}/readings"
    if format_name in MEDIA_TYPES:
        check_export(format_name, limit, newest_first, file)
        with destination(file) as into:
            size = session.client.download(where, into, accept=MEDIA_TYPES[format_name], query=query)
        if file is not None:
            session.output.note(f"{file}: {size:,} bytes.")
        return
    if file is not None:
        raise click.UsageError("--output goes with --format csv, ndjson or parquet.")
    query["order"] = "desc" if newest_first else "asc"
    found = entries(session, where, query, limit or 200)
    if session.output.as_json or format_name == "json":
        replace(session.output, as_json=True).entries(found, ())
    else:
        session.output.entries([readable(each) for each in found], ("time", "sensors", "trouble", "batch_id"))


@devices.command()
@hardware_id_argument
@server_command
def latest(session: Session, hardware_id: str) -> None:
    """Show the reading with the newest time."""
    reading = session.client.get(f"{device_path(hardware_id)}/readings/latest")
    session.output.value(reading if session.output.as_json else {**readable(reading), **details(reading)})


@devices.command()
@hardware_id_argument
@from_option
@to_option
@click.option(
    "--expected-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    show_default=True,
    help="Longer than this without a reading is a gap.",
)
@limit_option
@server_command
def gaps(
    session: Session,
    *,
    hardware_id: str,
    from_text: str,
    to_text: str | None,
    expected_seconds: float,
    limit: int,
) -> None:
    """List the periods in which a device was silent, in the last day unless told otherwise."""
    query = {**period(session, from_text, to_text), "expected_seconds": expected_seconds}
    found = entries(session, f"{device_path(hardware_id)}/gaps", query, limit)
    if not session.output.as_json:
        found = [{"from": time_text(g["from_ms"]), "to": time_text(g["to_ms"]), **g} for g in found]
    session.output.entries(found, ("from", "to", "seconds"))


# --- sending ---------------------------------------------------------------------------------------


@devices.command()
@hardware_id_argument
@click.argument("file", type=click.File("rb"), required=False)
@click.option(
    "--sample", type=click.IntRange(1, 10_000), metavar="N", help="Send N made-up readings, no file."
)
@click.option("--register", is_flag=True, help="Register the device first.")
@server_command
def send(
    session: Session, hardware_id: str, file: BinaryIO | None, sample: int | None, register: bool
) -> None:
    """Send readings as a device does.

    FILE has readings as JSON (a list, or a request with `readings` in it) or as NDJSON, one a line; `-` is
    standard input. The exit code is 2 if any reading was rejected.
    """
    found = readings_to_send(session, hardware_id, file, sample)
    if register:
        session.client.post("/v1/devices/register", registration(hardware_id))
    verdicts = [
        session.client.post("/v1/devices/readings", {"hardware_id": hardware_id, "readings": request})
        for request in requests_of(found)
    ]
    together = {
        name: [each for verdict in verdicts for each in verdict[name]]
        for name in ("acknowledged", "duplicates", "rejected")
    }
    if session.output.as_json:
        session.output.value(together)
    else:
        session.output.value({name: len(batches) for name, batches in together.items()})
        if together["rejected"]:
            session.output.entries(together["rejected"], ("batch_id", "code", "detail"))
    if together["rejected"]:
        raise CommandFailed(f"{len(together['rejected'])} readings were rejected.", ExitCode.REFUSED_INPUT)


def readings_to_send(
    session: Session, hardware_id: str, file: BinaryIO | None, sample: int | None
) -> list[Any]:
    if (file is None) == (sample is None):
        raise click.UsageError("Give either a FILE (or - for standard input) or --sample.")
    if sample is not None:
        return list(sample_readings(sample, session.clock.now_ms(), os.urandom))
    assert file is not None
    try:
        found = parse_file(file.read(), hardware_id)
    except ValueError as error:
        raise CommandFailed(f"{file.name} has {error}.", ExitCode.REFUSED_INPUT) from error
    if not found:
        raise CommandFailed(f"{file.name} has no readings in it.", ExitCode.REFUSED_INPUT)
    return found


def registration(hardware_id: str) -> dict[str, object]:
    boot_id = uuid4_text(os.urandom)
    return {"hardware_id": hardware_id, "boot_id": boot_id, "firmware_version": "cli", "capabilities": {}}


# --- keys ------------------------------------------------------------------------------------------


@devices.group()
def keys() -> None:
    """Keys that devices send with."""


@keys.command()
@click.option("--description", metavar="TEXT", help="What the key is for.")
@click.option(
    "--device", "hardware_id", metavar="ID", type=HardwareIdType(), help="The one device it speaks for."
)
@server_command
def create(session: Session, description: str | None, hardware_id: str | None) -> None:
    """Make a key. It is printed this once."""
    wanted = {"description": description, "hardware_id": hardware_id}
    session.output.value(session.client.post("/v1/devices/keys", wanted))


@keys.command("list")
@limit_option
@server_command
def list_keys(session: Session, limit: int) -> None:
    """List keys, newest first."""
    session.output.entries(entries(session, "/v1/devices/keys", {}, limit), KEY_COLUMNS)


@keys.command()
@click.argument("key_id")
@server_command
def revoke(session: Session, key_id: str) -> None:
    """Revoke a key, for good. It stops working within 5 seconds."""
    session.output.value(session.client.post(path("v1", "devices", "keys", key_id, "revoke")))


# --- in detail -------------------------------------------------------------------------------------


def device_path(hardware_id: str) -> str:
    return path("v1", "devices", hardware_id)


def entries(session: Session, where: str, query: Mapping[str, object], limit: int) -> list[dict[str, Any]]:
    return list(islice(session.client.pages(where, {**query, "limit": min(limit, PAGE_MAX)}), limit))


def period(session: Session, from_text: str, to_text: str | None) -> dict[str, object]:
    return {
        "from_ms": moment("--from", from_text, session.clock),
        "to_ms": moment("--to", to_text, session.clock),
    }


def check_export(format_name: str, limit: int | None, newest_first: bool, file: Path | None) -> None:
    if limit is not None or newest_first:
        raise click.UsageError(f"--format {format_name} has the whole period, oldest first.")
    if format_name == "parquet" and file is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal: name a file with --output.")


@contextmanager
def destination(file: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that takes its name when it is whole."""
    if file is None:
        yield sys.stdout.buffer
        return
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        with unfinished.open("wb") as into:
            yield into
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def readable(reading: Mapping[str, Any]) -> dict[str, object]:
    """What a person looks for in a reading."""
    trouble = (name for name, status in reading["sensor_status"].items() if status != "ok")
    return {
        "time": time_text(reading["timestamp_ms"]),
        "sensors": _pairs(reading["sensors"].items()),
        "trouble": ", ".join(trouble),
        "batch_id": reading["batch_id"],
    }


def details(reading: Mapping[str, Any]) -> dict[str, object]:
    return {name: reading[name] for name in ("boot_id", "firmware_version")}


def _pairs(values: Iterable[tuple[str, object]]) -> str:
    return " ".join(f"{name}={value}" for name, value in values)


def time_text(ms: int) -> str:
    return f"{rfc3339(ms)[:-1]}.{ms % 1000:03}Z"
