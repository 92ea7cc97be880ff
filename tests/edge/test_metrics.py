"""What Prometheus scrapes from an agent, from documents that really went through its outbox."""

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from docferry.errors import UnreadableImage
from docferry.metrics import serve_metrics
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2
from docferry_edge.entry import State
from docferry_edge.metrics import EdgeMetrics
from docferry_edge.outbox import Outbox


@pytest.fixture
def outbox(tmp_path):
    made = Outbox(tmp_path / "state")
    yield made
    made.close()


def request(**fields) -> bytes:
    route = envelope_pb2.Route(decision=envelope_pb2.ROUTE_DECISION_CROPS, risk=0.01, target_risk=0.02)
    envelope = envelope_pb2.Envelope(**({"route": route} | fields))
    return analysis_service_pb2.SubmitRequest(envelope=envelope).SerializeToString()


def scraped(seen: EdgeMetrics) -> dict[tuple[str, str], float]:
    page = serve_metrics(seen.metrics, 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    finally:
        page.close()
    return {
        (sample.name, ",".join(value for name, value in sample.labels.items() if name != "le")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_document_is_counted_once_though_it_is_told_twice(outbox):
    seen = EdgeMetrics(outbox, lambda: 3)
    entry = outbox.capture(source="a", file_name="a.jpg", data=b"x" * 5000, captured_at=0.0)
    part = envelope_pb2.Part(part_id="p1", size=700)
    body = request(parts=[part])
    timings = {"hint": 110.0, "read": 420.0}
    outbox.packed(entry.document_id, request=body, parts=[], edge_answer=b"", timings=timings)
    seen.told(outbox.get(entry.document_id))
    seen.told(outbox.get(entry.document_id))
    outbox.submitted(entry.document_id, "an-analysis", {"ack": 450.0})
    numbers = scraped(seen)
    assert numbers["docferry_edge_outbox_documents", "submitted"] == 1
    assert numbers["docferry_edge_outbox_documents", "packed"] == 0
    outbox.settled(entry.document_id, analysis_pb2.Analysis().SerializeToString(), {"event": 900.0})
    seen.told(outbox.get(entry.document_id))
    numbers = scraped(seen)
    for step, seconds in {"hint": 0.11, "read": 0.42, "ack": 0.45, "event": 0.9}.items():
        assert numbers["docferry_edge_step_seconds_count", step] == 1
        assert numbers["docferry_edge_step_seconds_sum", step] == pytest.approx(seconds)
    assert numbers["docferry_edge_documents_total", "settled"] == 1
    assert numbers["docferry_edge_routes_total", "crops"] == 1
    assert numbers["docferry_edge_original_bytes_total", ""] == 5000
    assert numbers["docferry_edge_sent_bytes_total", ""] == len(body) + 700
    assert numbers["docferry_edge_predicted_risk_count", ""] == 1
    assert numbers["docferry_edge_reader_exchanges_total", ""] == 3
    assert numbers["docferry_edge_outbox_bytes", ""] == outbox.size()
    assert numbers["docferry_edge_outbox_documents", "submitted"] == 0


def test_an_answer_that_was_quicker_than_the_report_is_counted_from_the_answer(outbox):
    seen = EdgeMetrics(outbox, lambda: 0)
    entry = outbox.capture(source="a", file_name="a.jpg", data=b"x", captured_at=0.0)
    outbox.packed(entry.document_id, request=request(), parts=[], edge_answer=b"", timings={})
    analysis = analysis_pb2.Analysis(
        route=envelope_pb2.Route(decision=envelope_pb2.ROUTE_DECISION_PAGE),
        traffic=analysis_pb2.Traffic(sent_bytes=900),
    )
    outbox.settled(entry.document_id, analysis.SerializeToString(), {})
    seen.told(outbox.get(entry.document_id))
    assert seen.metrics.value("docferry_edge_routes_total", decision="page") == 1
    assert seen.metrics.value("docferry_edge_sent_bytes_total") == 900


def test_what_a_person_must_look_at_is_seen(outbox):
    seen = EdgeMetrics(outbox, lambda: 0)
    error = UnreadableImage("a.jpg: damaged", remedy="again")
    outbox.refuse(source="a", file_name="a.jpg", original_bytes=1, captured_at=0.0, error=error)
    (entry,) = outbox.in_state(State.FAILED)
    seen.told(entry)
    assert seen.metrics.value("docferry_edge_documents_total", state="failed") == 1
    assert seen.metrics.value("docferry_edge_outbox_documents", state="failed") == 1
