"""Traces (OpenTelemetry) that survive the queue: every id in them follows from ids that are stored anyway.

A document is one trace: the trace's id is the document's, a UUID. A span's id is a hash of what it is about, so whoever
takes up work later, in whatever process, knows its parent without being told; a span told twice is the same span.

    capture (edge) - send (edge) - submit (cloud) - interpret (worker) - publish - deliver
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from docferry.errors import ConfigurationError

_HEADER = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
log = logging.getLogger(__name__)

_CLOSING_MS = 5000


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a document.

    Attributes:
        step: Its name.
        key: What sets it apart from the document's other steps of that name.
        start_ns, end_ns: Nanoseconds since 1970.
        parent: The span id of what it came from; empty for the first.
        failure: Why it failed, as an error code; empty if it did not.
    """

    step: str
    document_id: str
    key: str
    start_ns: int
    end_ns: int
    parent: str = ""
    failure: str = ""
    attributes: Mapping[str, str | int] = field(default_factory=dict)


Tell = Callable[[Span], None]


def untold(_span: Span) -> None:
    """What to tell spans to while nobody listens."""


def trace_id(document_id: str) -> str:
    """The trace of a document, 32 hex digits; empty if the id is no UUID."""
    try:
        return uuid.UUID(document_id).hex
    except ValueError:
        return ""


def span_id(step: str, key: str) -> str:
    """The id of a step's span, 16 hex digits."""
    return hashlib.sha256(f"{step}:{key}".encode()).hexdigest()[:16]


def traceparent(document_id: str, step: str, key: str) -> str:
    """The W3C header that makes this step the parent of what follows; empty if the document's id is no UUID."""
    trace = trace_id(document_id)
    return f"00-{trace}-{span_id(step, key)}-01" if trace else ""


def parent_of(header: str, document_id: str) -> str:
    """The parent's span id in a `traceparent` header; empty if it is malformed or of another trace."""
    found = _HEADER.fullmatch(header)
    return found[2] if found and found[1] == trace_id(document_id) else ""


class Traces:
    """Sends spans to a collector, in the background; if it is away spans are lost and nothing else.

    Args:
        provider: Makes an `opentelemetry.sdk.trace.TracerProvider` that takes its ids from what it is given; called
            by `open` or for the first span, as it starts a thread.
    """

    def __init__(self, provider: Callable[[GivenIds], Any]) -> None:
        self._make = provider
        self._ids = GivenIds()
        self._guard = threading.Lock()
        self._provider: Any = None

    def open(self) -> None:
        """Have all that a span needs at hand: imports and a thread, which would hold an event loop up."""
        try:
            self._open()
        except Exception:
            log.warning("spans may be lost", exc_info=True)

    def _open(self) -> None:
        with self._guard:
            self._provider = self._provider or self._make(self._ids)

    def tell(self, span: Span) -> None:
        """Send a span. One that cannot be sent is lost and logged: a trace must never cost a document."""
        try:
            self._told(span)
        except Exception:
            log.warning("the span %s is lost", span.step, exc_info=True)

    def _told(self, span: Span) -> None:
        from opentelemetry import trace

        name = trace_id(span.document_id)
        if not name:
            return
        number = int(name, 16)
        parent = None
        if span.parent:
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            came_from = trace.SpanContext(number, int(span.parent, 16), is_remote=True, trace_flags=flags)
            parent = trace.set_span_in_context(trace.NonRecordingSpan(came_from))
        self._open()
        self._ids.give(number, int(span_id(span.step, span.key), 16))
        made = self._provider.get_tracer("docferry").start_span(
            span.step, context=parent, attributes=dict(span.attributes), start_time=span.start_ns
        )
        if span.failure:
            made.set_status(trace.StatusCode.ERROR, span.failure)
        made.end(end_time=max(span.start_ns, span.end_ns))

    def close(self) -> None:
        """Send what is left, for at most some seconds, and stop."""
        if self._provider is None:
            return
        # `shutdown` sends what is left, and takes as long as a collector that is away makes it.
        ending = threading.Thread(target=self._provider.shutdown, name="docferry-traces-end", daemon=True)
        ending.start()
        ending.join(_CLOSING_MS / 1000)


class GivenIds:
    """An OpenTelemetry id generator that gives what it was given last in the same thread."""

    def __init__(self) -> None:
        self._given = threading.local()

    def give(self, trace: int, span: int) -> None:
        """The ids of the span that is started next."""
        self._given.trace, self._given.span = trace, span

    def generate_trace_id(self) -> int:
        """The trace's."""
        return int(self._given.trace)

    def generate_span_id(self) -> int:
        """The span's."""
        return int(self._given.span)

    def is_trace_id_random(self) -> bool:
        """A UUID of version 4 has its random bits where W3C wants them, but the device need not have made one."""
        return False


def open_traces(endpoint: str, service: str) -> Traces | None:
    """Traces to an OTLP/HTTP collector; None without an endpoint.

    Args:
        endpoint: E.g. http://127.0.0.1:4318/v1/traces.
        service: The program's name in the traces.

    Raises:
        ConfigurationError: The endpoint is no URL, or OpenTelemetry is not installed.
    """
    if not endpoint:
        return None
    if urlsplit(endpoint).scheme not in {"http", "https"}:
        raise ConfigurationError(
            f"tracing.endpoint is {endpoint!r}",
            remedy="give the collector's URL, e.g. http://127.0.0.1:4318/v1/traces, or leave it empty",
            setting="tracing.endpoint",
        )
    if find_spec("opentelemetry") is None:
        raise ConfigurationError(
            "tracing.endpoint is set, but OpenTelemetry is not installed",
            remedy="pip install 'docferry[tracing]'",
            setting="tracing.endpoint",
        )
    return Traces(lambda ids: _provider(endpoint, service, ids))


def _provider(endpoint: str, service: str, ids: Any) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    resource = Resource.create({"service.name": service})
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
    return provider


def now_ns() -> int:
    """Nanoseconds since 1970, by this machine's clock."""
    return time.time_ns()
