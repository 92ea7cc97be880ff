"""Metrics for Prometheus: a program states its own as a table, which makes them and documents them.

Names follow Prometheus's conventions: base units, `_total`, `_seconds`, `_bytes`. Every label takes one of a few stated
values and never a tenant, a device or an id, so that the number of series is known beforehand; all of them are there,
at zero, from the start. Nothing here is global: each `Metrics` has a registry of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from docferry.errors import ConfigurationError

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""Buckets of durations, from an acknowledgement to a webhook's retry."""
RISKS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Buckets of predicted risks."""
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        kind: `counter`, `gauge` or `histogram`.
        labels: Every label with all the values that it takes.
        buckets: Upper bounds of a histogram's.
        looked_up: Whether its value is looked up whenever somebody asks, instead of being counted.
    """

    name: str
    kind: str
    help: str
    labels: Mapping[str, Sequence[str]] | None = None
    buckets: tuple[float, ...] = SECONDS
    looked_up: bool = False

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which Prometheus stores it."""
        if self.kind == "histogram":
            return (f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum")
        return (self.name,)


Relay = Callable[[str, str, float, tuple[str, ...]], None]
"""Told `count` or `observe`, a metric's name, the value and the labels; from whatever thread."""
Sample = tuple[str, tuple[str, ...], float]
"""A metric's name, the values of its labels in the table's order, and its value."""


class Metrics:
    """The metrics of one part of a program.

    Args:
        table: What there is.
        look_up: Gives the values of what is looked up; called in the server's thread whenever somebody asks. What it
            does not give is not shown, which an alert can tell from zero.
    """

    def __init__(self, table: Sequence[Metric], look_up: Callable[[], Iterable[Sample]] = tuple) -> None:
        self.registry = CollectorRegistry()
        self._table = {metric.name: metric for metric in table}
        self._look_up = look_up
        self._relay: Relay | None = None
        self._made: dict[str, Any] = {m.name: _make(m, self.registry) for m in table if not m.looked_up}
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def relay(self, relay: Relay) -> None:
        """Tell what is counted and observed to another process too, which shows it among its own."""
        self._relay = relay

    def count(self, name: str, *labels: str, by: float = 1.0) -> None:
        """Add to a counter. An unknown label value raises ValueError."""
        self._of(name, labels).inc(by)
        if self._relay is not None:
            self._relay("count", name, by, labels)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to a histogram; a duration below 0, by a clock that was set back, counts as 0."""
        self._of(name, labels).observe(max(0.0, value))
        if self._relay is not None:
            self._relay("observe", name, value, labels)

    def heard(self, kind: str, name: str, value: float, labels: Sequence[str]) -> None:
        """Add what a `relay` of another process told."""
        if kind == "count":
            self.count(name, *labels, by=value)
        else:
            self.observe(name, value, *labels)

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._of(name, labels).set(value)

    def value(self, name: str, **labels: str) -> float | None:
        """What Prometheus would be told of one series; None if there is none such."""
        return self.registry.get_sample_value(name, labels)

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """What is looked up; the registry's protocol."""
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for name, labels, value in self._look_up():
            metric = self._table[name]
            _check(metric, labels)
            if name not in families:
                family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                families[name] = family(name, metric.help, labels=tuple(metric.labels or ()))
            families[name].add_metric(labels, value)
        return families.values()

    def describe(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Nothing, so that registering looks nothing up."""
        return ()

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:
        _check(self._table[name], labels)
        return self._made[name].labels(*labels) if labels else self._made[name]


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """Metrics that are served, as text for Prometheus, at `/metrics` on this machine only."""

    port: int
    server: WSGIServer
    thread: threading.Thread

    def close(self) -> None:
        """Serve no more."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def serve_metrics(metrics: Metrics, port: int, setting: str = "metrics.port") -> MetricsPage:
    """Serve metrics on a port of the loopback address, in a thread of its own.

    Raises:
        ConfigurationError: The port is taken.
    """
    try:
        server, thread = start_http_server(port, LOOPBACK, registry=metrics.registry)
    except OSError as error:
        raise ConfigurationError(
            f"port {port} cannot be bound for metrics: {error.strerror}",
            remedy=f"set {setting} to a free one, or to 0 for none",
            setting=setting,
        ) from error
    return MetricsPage(server.server_port, server, thread)


def render(table: Sequence[Metric]) -> str:
    """The table as Markdown, for `docs/metrics.md`."""
    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for metric in table:
        labels = "; ".join(f"`{name}`: {', '.join(values)}" for name, values in (metric.labels or {}).items())
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows) + "\n"


def _make(metric: Metric, registry: CollectorRegistry) -> Any:
    labels = tuple(metric.labels or ())
    if metric.kind == "histogram":
        made: Any = Histogram(metric.name, metric.help, labels, registry=registry, buckets=metric.buckets)
    else:
        made = (Counter if metric.kind == "counter" else Gauge)(metric.name, metric.help, labels, registry=registry)
    for values in product(*(metric.labels or {}).values()) if labels else ():
        made.labels(*values)
    return made


def _check(metric: Metric, labels: tuple[str, ...]) -> None:
    stated = tuple((metric.labels or {}).values())
    if len(labels) != len(stated) or any(value not in known for value, known in zip(labels, stated, strict=True)):
        raise ValueError(f"{metric.name} has no series {labels}")
