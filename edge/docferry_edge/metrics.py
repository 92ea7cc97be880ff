"""What the edge agent measures of itself, from what it reports of its documents and what its outbox holds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from docferry.metrics import RISKS, Metric, Metrics, Sample
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2
from docferry_edge.entry import FINAL, Entry, State
from docferry_edge.outbox import Outbox

DECISIONS = tuple(name.removeprefix("ROUTE_DECISION_").lower() for name in envelope_pb2.RouteDecision.keys())  # noqa: SIM118
_STEPS = ("hint", "read", "ack", "event")
_REMEMBERED = 1000

TABLE: tuple[Metric, ...] = (
    Metric(
        "docferry_edge_step_seconds",
        "histogram",
        "From capture to the first boxes (hint), the reading, the cloud's acknowledgement, its answer (event)",
        {"step": _STEPS},
    ),
    Metric(
        "docferry_edge_documents_total",
        "counter",
        "Documents that have ended",
        {"state": tuple(state.value for state in State if state in FINAL)},
    ),
    Metric("docferry_edge_routes_total", "counter", "Documents read, by what is to leave", {"decision": DECISIONS}),
    Metric("docferry_edge_original_bytes_total", "counter", "Size of what was captured, of documents read"),
    Metric(
        "docferry_edge_sent_bytes_total",
        "counter",
        "Serialized requests of these documents, parts included; saved is original less sent",
    ),
    Metric("docferry_edge_predicted_risk", "histogram", "Risk stated with a route, 0..1", buckets=RISKS),
    Metric(
        "docferry_edge_reader_exchanges_total",
        "counter",
        "Readers exchanged for a new one because they had grown",
        looked_up=True,
    ),
    Metric(
        "docferry_edge_outbox_documents",
        "gauge",
        "Documents in the outbox that have not ended, or that a person must look at",
        {"state": tuple(state.value for state in State if state is not State.SETTLED)},
        looked_up=True,
    ),
    Metric("docferry_edge_outbox_bytes", "gauge", "Bytes that the outbox takes on the disk", looked_up=True),
)


class EdgeMetrics:
    """The metrics of one agent.

    Args:
        outbox: Counted whenever somebody asks; must stay open until the page is closed.
        exchanges: How many readers were exchanged so far.
    """

    def __init__(self, outbox: Outbox, exchanges: Callable[[], int]) -> None:
        self._outbox = outbox
        self._exchanges = exchanges
        # What was counted of the documents told last: each is told twice, and again after a fault.
        self._counted: OrderedDict[str, set[str]] = OrderedDict()
        self.metrics = Metrics(TABLE, self._look_up)

    def told(self, entry: Entry) -> None:
        """Count what is new about a document that the agent reports; see `docferry_edge.agent.Report`."""
        counted = self._counted.setdefault(entry.document_id, set())
        self._counted.move_to_end(entry.document_id)
        if len(self._counted) > _REMEMBERED:
            self._counted.popitem(last=False)
        for step in _STEPS:
            if step in entry.timings and step not in counted:
                counted.add(step)
                self.metrics.observe("docferry_edge_step_seconds", entry.timings[step] / 1000, step)
        if "route" not in counted and self._count_route(entry):
            counted.add("route")
        if entry.state in FINAL and entry.state.value not in counted:
            counted.add(entry.state.value)
            self.metrics.count("docferry_edge_documents_total", entry.state.value)

    def _count_route(self, entry: Entry) -> bool:
        """Count what leaves; False while that is not known. From the request, or from the answer if it was quicker."""
        request = self._outbox.request(entry.document_id)
        answer = self._outbox.analysis(entry.document_id)
        if request is not None:
            envelope = analysis_service_pb2.SubmitRequest.FromString(request).envelope
            route = envelope.route
            # What was announced follows by Supply.
            sent = len(request) + sum(part.size for part in envelope.parts if not part.data)
        elif answer is not None:
            analysis = analysis_pb2.Analysis.FromString(answer)
            route, sent = analysis.route, analysis.traffic.sent_bytes
        else:
            return False
        if route.decision == envelope_pb2.ROUTE_DECISION_NOTHING:
            sent = 0
        self.metrics.count("docferry_edge_routes_total", DECISIONS[route.decision])
        self.metrics.count("docferry_edge_original_bytes_total", by=entry.original_bytes)
        self.metrics.count("docferry_edge_sent_bytes_total", by=sent)
        if route.target_risk:
            self.metrics.observe("docferry_edge_predicted_risk", route.risk)
        return True

    def _look_up(self) -> Iterable[Sample]:
        states = self._outbox.count()
        yield ("docferry_edge_reader_exchanges_total", (), self._exchanges())
        for state in State:
            if state is not State.SETTLED:
                yield ("docferry_edge_outbox_documents", (state.value,), states.get(state.value, 0))
        yield ("docferry_edge_outbox_bytes", (), self._outbox.size())
