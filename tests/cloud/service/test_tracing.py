"""One document is one trace, from the edge's capture to the webhook, whichever process took the work up."""

import asyncio
import http.server
import threading
import uuid

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from docferry.async_client import AsyncClient
from docferry.errors import ConfigurationError
from docferry.tracing import Span, Traces, open_traces, parent_of, span_id, trace_id, traceparent
from docferry.v1 import analysis_service_pb2
from docferry.v1 import subscription_service_pb2 as subscription_pb
from docferry_edge.outbox import Outbox
from docferry_edge.uplink import Pace, Uplink


class Collector(http.server.ThreadingHTTPServer):
    """An OTLP/HTTP collector on loopback that keeps what it gets."""

    daemon_threads = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"

    def named(self, step: str):
        return [span for span in self.spans if span.name == step]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.server.spans.extend(scope.spans)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_args):
        pass


@pytest.fixture
def collector():
    made = Collector()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.asyncio(loop_scope="module")
async def test_one_trace_from_the_capture_to_the_delivery_over_three_processes(
    tmp_path, running, make_envelope, receiver, until, collector
):
    outbox = Outbox(tmp_path / "edge")
    entry = outbox.capture(source="a", file_name="a.jpg", data=b"x", captured_at=1_800_000_000.0)
    envelope = make_envelope(request_id=entry.request_id, document_id=entry.document_id)
    request = analysis_service_pb2.SubmitRequest(envelope=envelope).SerializeToString()
    outbox.packed(entry.document_id, request=request, parts=[], edge_answer=b"", timings={"read": 420.0})
    edge, received = open_traces(collector.url, "docferry-edge"), "docferry_delivery_attempts_total"
    settings = {"tracing_endpoint": collector.url}
    # The front end that takes it in is gone when the work begins: the queue alone carries the trace on.
    async with running(tmp_path / "cloud", workers=0, **settings) as front:
        caller = front.caller()
        subscription = subscription_pb.Subscription(url=receiver.url)
        await caller("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=subscription))
        async with AsyncClient.connect(front.address, token=caller.token) as client:
            uplink = Uplink(outbox, client, lambda _: None, Pace(first=0.01, idle=0.05), spans=edge.tell)
            sending = asyncio.create_task(uplink.run())
            await until(lambda: outbox.get(entry.document_id).analysis_id)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        await until(lambda: front.server.metrics.value(received, outcome="received") == 1)
    edge.close()
    analysis_id = outbox.get(entry.document_id).analysis_id
    outbox.close()
    async with running(tmp_path / "cloud", **settings) as worker:
        await until(lambda: worker.server.metrics.value(received, outcome="received") == 1)
    spans = collector.spans
    assert {span.trace_id.hex() for span in spans} == {trace_id(entry.document_id)}
    (capture,), (send,), (submit,) = (collector.named(name) for name in ("capture", "send", "submit"))
    (interpret,), (publish,) = collector.named("interpret"), collector.named("publish")
    accepted, succeeded = collector.named("deliver")
    assert capture.parent_span_id == b""
    assert send.parent_span_id == capture.span_id
    assert submit.parent_span_id == send.span_id
    assert interpret.parent_span_id == submit.span_id
    assert publish.parent_span_id == interpret.span_id
    assert (accepted.parent_span_id, succeeded.parent_span_id) == (submit.span_id, publish.span_id)
    assert len({span.span_id for span in spans}) == len(spans) == 7
    assert capture.start_time_unix_nano == 1_800_000_000 * 10**9
    assert capture.end_time_unix_nano - capture.start_time_unix_nano == 420 * 10**6
    assert {a.key: a.value.string_value for a in interpret.attributes}["outcome"] == "succeeded"
    first, second = receiver.requests.get_nowait(), receiver.requests.get_nowait()
    assert first.headers["traceparent"].split("-")[1:3] == [trace_id(entry.document_id), accepted.span_id.hex()]
    assert second.headers["traceparent"].split("-")[2] == succeeded.span_id.hex()
    assert submit.span_id.hex() == span_id("submit", analysis_id)


@pytest.mark.asyncio(loop_scope="module")
async def test_without_an_endpoint_nothing_is_sent_along(tmp_path, running, make_envelope, receiver, until):
    async with running(tmp_path) as service:
        caller = service.caller()
        subscription = subscription_pb.Subscription(url=receiver.url)
        await caller("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=subscription))
        await caller.finished((await caller.submit(make_envelope())).analysis_id)
        assert "traceparent" not in (await receiver.requests.get()).headers


@pytest.mark.asyncio(loop_scope="module")
async def test_a_collector_that_is_away_costs_spans_and_nothing_else(tmp_path, running, make_envelope, collector):
    async with running(tmp_path, tracing_endpoint="http://127.0.0.1:1/v1/traces") as service:
        caller = service.caller()
        found = await caller.finished((await caller.submit(make_envelope())).analysis_id)
    assert found.versions


def test_a_header_of_another_trace_or_malformed_is_not_followed():
    mine, other = str(uuid.uuid4()), str(uuid.uuid4())
    assert parent_of(traceparent(mine, "send", "k"), mine) == span_id("send", "k")
    for header in ("", "00-zz-1-01", traceparent(other, "send", "k"), "x" * 100_000):
        assert parent_of(header, mine) == ""


def test_a_document_id_that_is_no_uuid_is_not_traced(collector):
    traces = open_traces(collector.url, "docferry")
    traces.tell(Span("capture", "not-a-uuid", "k", 1, 2))
    traces.close()
    assert collector.spans == []
    assert traceparent("not-a-uuid", "send", "k") == ""


def test_an_endpoint_that_is_no_url_is_said():
    assert open_traces("", "docferry") is None
    with pytest.raises(ConfigurationError, match=r"tracing\.endpoint"):
        open_traces("127.0.0.1:4317", "docferry")


def test_a_span_that_cannot_be_sent_is_lost_and_costs_nothing(caplog):
    def no_provider(_ids):
        raise ValueError("the exporter cannot be made")

    Traces(no_provider).tell(Span("submit", str(uuid.uuid4()), "key", 1, 2))
    assert "the span submit is lost" in caplog.text
