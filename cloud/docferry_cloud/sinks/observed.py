"""What is seen of attempts: logs with their ids, spans, metrics."""

from __future__ import annotations

import logging
from dataclasses import replace

from docferry.logs import about
from docferry.metrics import Metrics
from docferry.tracing import Span, Tell, now_ns, span_id, traceparent
from docferry_cloud.log_ids import ids_of
from docferry_cloud.metrics import seconds_since_text
from docferry_cloud.sinks.message import Message
from docferry_cloud.sinks.port import Delivery, Outcome, Sink, Verdict

log = logging.getLogger(__name__)

_OF_WORK = frozenset({"succeeded", "failed"})
"""Events of the work's end; all others come from what a caller did."""


class Observed:
    """Makes attempts and tells of them.

    Args:
        tell: Takes spans; without it attempts carry no `traceparent`.
    """

    def __init__(self, metrics: Metrics, tell: Tell | None) -> None:
        self._metrics = metrics
        self._tell = tell

    async def attempt(self, sink: Sink, delivery: Delivery, message: Message) -> Outcome:
        """One attempt, with the analysis's ids on every line that is logged meanwhile."""
        with about(**ids_of(message.analysis_id, message.document_id, delivery.tenant)):
            outcome = await self._traced(sink, delivery, message)
            if outcome.verdict is Verdict.DELIVERED:
                log.info("subscription %s: received event %s", delivery.subscription_id, delivery.event_id)
            else:
                log.warning(
                    "subscription %s: attempt %d for event %s failed: %s",
                    delivery.subscription_id,
                    delivery.attempts + 1,
                    delivery.event_id,
                    outcome.failure,
                )
            return outcome

    def received(self, message: Message) -> None:
        """Count an event that was received, once its row says so."""
        self.count("received")
        self._metrics.observe("docferry_delivery_seconds", seconds_since_text(message.timestamp))

    def count(self, outcome: str) -> None:
        """Count an attempt by how it ended."""
        self._metrics.count("docferry_delivery_attempts_total", outcome)

    async def _traced(self, sink: Sink, delivery: Delivery, message: Message) -> Outcome:
        if self._tell is None:
            return await sink.send(delivery, message)
        key = f"{delivery.subscription_id}:{delivery.event_id}:{delivery.attempts}"
        start_ns = now_ns()
        traced = replace(message, traceparent=traceparent(message.document_id, "deliver", key))
        outcome = await sink.send(delivery, traced)
        parent = span_id("publish" if message.happened in _OF_WORK else "submit", message.analysis_id)
        failure = "" if outcome.verdict is Verdict.DELIVERED else "NOT_RECEIVED"
        about_it = {"attempt": delivery.attempts + 1}
        self._tell(Span("deliver", message.document_id, key, start_ns, now_ns(), parent, failure, about_it))
        return outcome
