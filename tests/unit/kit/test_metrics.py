from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossdock.kit.metrics import Catalogue, prepare_directory, process_ended

CHILD = """
import sys
from crossdock.kit.metrics import counter, gauge, histogram, render

REQUESTS = counter("requests_total", "Requests.", ("lane",))
WAITING = gauge("waiting", "Waiting.")
LAG = gauge("lag_seconds", "Lag.", combine="max")
LATENCY = histogram("latency_seconds", "Latency.", ("lane",), buckets=(0.1, 1.0))
NEVER = counter("never_total", "Never counted.")

amount = float(sys.argv[1])
REQUESTS.inc("in", by=amount)
WAITING.set(amount)
LAG.set(amount)
LATENCY.observe(amount, "in")
sys.stdout.write("counted\\n")
sys.stdout.flush()
sys.stdin.readline()
sys.stdout.write(render().decode())
sys.stdout.flush()
sys.stdin.readline()
"""


def values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def rendered(catalogue: Catalogue) -> dict[str, float]:
    return values(catalogue.render().decode())


def test_what_is_counted_shows_under_our_prefix() -> None:
    catalogue = Catalogue()
    batches = catalogue.counter("batches_total", "Batches.", ("outcome",))
    batches.inc("acknowledged")
    batches.inc("acknowledged", by=2)
    batches.inc("duplicate")
    waiting = catalogue.gauge("waiting", "Waiting.")
    waiting.set(5)
    waiting.dec()
    waiting.inc(by=3)
    catalogue.histogram("latency_seconds", "Latency.", buckets=(1.0,)).observe(0.5)
    shown = rendered(catalogue)
    assert shown['crossdock_batches_total{outcome="acknowledged"}'] == 3
    assert shown['crossdock_batches_total{outcome="duplicate"}'] == 1
    assert shown["crossdock_waiting"] == 7
    assert shown['crossdock_latency_seconds_bucket{le="1.0"}'] == 1


def test_a_counter_that_was_never_used_shows_its_zero() -> None:
    catalogue = Catalogue()
    catalogue.counter("never_total", "Never.")
    assert rendered(catalogue)["crossdock_never_total"] == 0


def test_a_name_declared_twice_is_refused() -> None:
    catalogue = Catalogue()
    catalogue.counter("x_total", "X.")
    with pytest.raises(ValueError, match="declared twice"):
        catalogue.gauge("x_total", "X.")


def test_a_wrong_number_of_label_values_is_refused() -> None:
    counter = Catalogue().counter("x_total", "X.", ("a", "b"))
    for labels in ((), ("1",), ("1", "2", "3")):
        with pytest.raises(ValueError, match="2 label values are needed"):
            counter.inc(*labels)


def start(directory: Path, amount: float) -> subprocess.Popen[str]:
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(amount)],
        env=environ,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "counted\n"
    return child


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def finish(child: subprocess.Popen[str]) -> dict[str, float]:
    tell(child)
    tell(child)
    out, _ = child.communicate(timeout=20)
    assert child.returncode == 0
    return values(out)


def test_any_process_shows_the_numbers_of_all_and_keeps_the_counts_of_the_killed(tmp_path: Path) -> None:
    directory = tmp_path / "metrics"
    assert prepare_directory(directory) == {"PROMETHEUS_MULTIPROC_DIR": str(directory)}
    killed, living = start(directory, 4), start(directory, 0.5)
    third = finish(start(directory, 0.25))
    assert third['crossdock_requests_total{lane="in"}'] == 4.75
    assert third["crossdock_waiting"] == 4.75
    assert third["crossdock_lag_seconds"] == 4
    assert third['crossdock_latency_seconds_bucket{lane="in",le="0.1"}'] == 0
    assert third['crossdock_latency_seconds_bucket{lane="in",le="1.0"}'] == 2
    assert third['crossdock_latency_seconds_count{lane="in"}'] == 3
    assert third["crossdock_never_total"] == 0

    killed.kill()
    killed.communicate(timeout=20)
    process_ended(killed.pid, directory)
    left = finish(living)
    assert left['crossdock_requests_total{lane="in"}'] == 4.75
    assert left["crossdock_lag_seconds"] == 0.5


def test_a_new_generation_starts_from_an_empty_directory(tmp_path: Path) -> None:
    directory = tmp_path / "metrics"
    prepare_directory(directory)
    (directory / "counter_1.db").write_bytes(b"old")
    prepare_directory(directory)
    assert list(directory.iterdir()) == []
