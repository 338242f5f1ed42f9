"""Metrics, declared where they are counted and added up over all processes when they are read.

    BATCHES = counter("devices_batches_total", "Batches by outcome.", ("outcome",))
    BATCHES.inc("acknowledged")

A declaration is a value: nothing is opened or counted before the first use. In one process the numbers live
in memory. With several, the supervisor calls `prepare_directory` and starts its children with the variable
it returns; each keeps its numbers in files there (prometheus_client chooses that when it is first imported),
and `render` in any of them adds all up. Counters of a dead process stay, so totals never fall; its gauges go
with `process_ended`. A killed process loses nothing that it had counted.

Label values must come from a small fixed set: each combination is kept for ever.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

import prometheus_client
from prometheus_client import CollectorRegistry, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

PREFIX = "crossdock_"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

LATENCY_BUCKETS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)

if DIRECTORY_VARIABLE in os.environ:
    # It would ask the system for its process id at every count, in case of a fork: a tenth of the time that
    # a lane has for a request. Our processes are started anew, never forked.
    _PROCESS_ID = os.getpid()
    values.ValueClass = values.MultiProcessValue(lambda: _PROCESS_ID)  # type: ignore[no-untyped-call]

_Kind = TypeVar("_Kind", prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram)


class _Metric(Generic[_Kind]):
    def __init__(self, labels: Sequence[str], make: Callable[[], _Kind]) -> None:
        self._label_count = len(labels)
        self._make: Callable[[], _Kind] = make
        self._parent: _Kind | None = None
        # prometheus_client's own labels() takes a lock and makes a text of each value: 3 times as dear.
        self._children: dict[tuple[str, ...], _Kind] = {}

    def _child(self, labels: tuple[str, ...]) -> _Kind:
        child = self._children.get(labels)
        if child is None:
            if len(labels) != self._label_count:
                raise ValueError(f"{self._label_count} label values are needed, not {len(labels)}")
            parent = self.declared()
            child = self._children[labels] = parent.labels(*labels) if labels else parent
        return child

    def declared(self) -> _Kind:
        """Make sure it shows in `render`, a counter without labels with its zero."""
        if self._parent is None:
            self._parent = self._make()
        return self._parent


class Counter(_Metric[prometheus_client.Counter]):
    def inc(self, *labels: str, by: float = 1) -> None:
        self._child(labels).inc(by)


class Gauge(_Metric[prometheus_client.Gauge]):
    def set(self, value: float, *labels: str) -> None:
        self._child(labels).set(value)

    def inc(self, *labels: str, by: float = 1) -> None:
        self._child(labels).inc(by)

    def dec(self, *labels: str, by: float = 1) -> None:
        self._child(labels).dec(by)


class Histogram(_Metric[prometheus_client.Histogram]):
    def observe(self, value: float, *labels: str) -> None:
        self._child(labels).observe(value)


class Catalogue:
    """A set of metrics under one registry. The product has one (`counter`, `gauge`, ... below)."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._metrics: dict[str, Counter | Gauge | Histogram] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        full, registry = self._claim(name), self._registry
        metric = Counter(labels, lambda: prometheus_client.Counter(full, help, labels, registry=registry))
        self._metrics[full] = metric
        return metric

    def gauge(
        self, name: str, help: str, labels: Sequence[str] = (), *, combine: Literal["sum", "max"] = "sum"
    ) -> Gauge:
        """`combine`: what all living processes' values become together."""
        full, registry = self._claim(name), self._registry
        mode: Literal["livesum", "livemax"] = "livesum" if combine == "sum" else "livemax"
        metric = Gauge(
            labels,
            lambda: prometheus_client.Gauge(full, help, labels, registry=registry, multiprocess_mode=mode),
        )
        self._metrics[full] = metric
        return metric

    def histogram(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float] = LATENCY_BUCKETS_SECONDS,
    ) -> Histogram:
        full, registry = self._claim(name), self._registry
        metric = Histogram(
            labels,
            lambda: prometheus_client.Histogram(full, help, labels, registry=registry, buckets=buckets),
        )
        self._metrics[full] = metric
        return metric

    def render(self) -> bytes:
        """The Prometheus text of all processes' metrics."""
        for metric in self._metrics.values():
            metric.declared()
        directory = os.environ.get(DIRECTORY_VARIABLE)
        if directory is None:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together, directory)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def names(self) -> list[str]:
        return sorted(self._metrics)

    def _claim(self, name: str) -> str:
        full = PREFIX + name
        if full in self._metrics:
            raise ValueError(f"{full} is declared twice")
        return full


_catalogue = Catalogue()

counter = _catalogue.counter
gauge = _catalogue.gauge
histogram = _catalogue.histogram
render = _catalogue.render
names = _catalogue.names


def prepare_directory(directory: Path) -> dict[str, str]:
    """An empty directory for a new generation of processes, and the environment to start them with."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return {DIRECTORY_VARIABLE: str(directory)}


def process_ended(pid: int, directory: Path) -> None:
    """A child is gone: its gauges no longer count."""
    mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]
