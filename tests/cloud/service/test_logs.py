"""The log as a machine reads it: every line about an analysis carries its ids, none carries content or a secret."""

import io
import json
import logging

import pytest

from docferry import logs
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.errors import ConfigurationError, EngineError
from docferry.packing import pack_reading
from docferry.v1 import subscription_service_pb2 as subscription_pb

SECRET_TEXT = "KOWALSKI 4111111111111111"


@pytest.fixture
def captured():
    """Everything that is logged, as JSON, and the old handlers again afterwards."""
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    logs.configure("json", "debug", stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def structure():
    line = Line("r1.l1", SECRET_TEXT, ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2)), 0.9)
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(line,))
    return pack_reading(Reading(Document((Page(100, 200, (region,)),)), "double@1"))


@pytest.mark.asyncio(loop_scope="module")
async def test_one_analysis_is_followed_through_submit_work_and_delivery(
    tmp_path, running, make_envelope, structure, receiver, until, captured
):
    async with running(tmp_path) as service:
        caller = service.caller()
        subscription = subscription_pb.Subscription(url=f"{receiver.url}?key=url-secret")
        await caller("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=subscription))
        envelope = make_envelope(structure=structure)
        analysis_id = (await caller.submit(envelope)).analysis_id
        await caller.finished(analysis_id)
        received = "docferry_delivery_attempts_total"
        await until(lambda: service.server.metrics.value(received, outcome="received") == 2)
    lines = captured()
    ours = [line for line in lines if line.get("analysis_id") == analysis_id]
    told = {line["event"].split()[0]: line for line in ours}
    assert {"accepted", "interpretation", "subscription"} <= set(told)
    for line in ours:
        assert line["document_id"] == envelope.document_id
        assert line["trace_id"] == envelope.document_id.replace("-", "")
        assert {"timestamp", "level", "logger"} <= set(line)
    assert told["accepted"]["tenant"] == told["interpretation"]["tenant"] == caller.tenant
    everything = json.dumps(lines)
    for secret in (SECRET_TEXT, "KOWALSKI", caller.token, "url-secret", "whsec_"):
        assert secret not in everything, secret


@pytest.mark.asyncio(loop_scope="module")
async def test_an_engine_that_quotes_the_document_in_its_error_does_not_bring_it_into_the_log(
    tmp_path, running, echo_engine, make_envelope, structure, captured
):
    def quote(page, _cancelled):
        text = page.reading.regions[0].lines[0].text
        try:
            {}[text]
        except KeyError as error:
            raise ValueError(f"cannot parse {text!r}") from error

    async with running(tmp_path, lambda: echo_engine(quote)) as service:
        caller = service.caller()
        found = await caller.finished((await caller.submit(make_envelope(structure=structure))).analysis_id)
    (line,) = [line for line in captured() if "exception" in line]
    assert line["level"] == "error"
    assert line["analysis_id"] == found.analysis_id
    assert "builtins.KeyError\nthen" in line["exception"]
    assert line["exception"].endswith("builtins.ValueError")
    assert "in quote" in line["exception"] or " quote" in line["exception"]
    assert SECRET_TEXT not in json.dumps(captured())


def test_what_our_own_errors_say_is_told(captured):
    error = EngineError("the table model is missing", remedy="pull it")
    logging.getLogger("somewhere").error("no table", exc_info=error)
    (line,) = captured()
    assert line["exception"].endswith("docferry.errors.EngineError: the table model is missing (pull it)")
    assert (line["event"], line["logger"]) == ("no table", "somewhere")


def test_ids_end_with_their_block_and_empty_ones_are_left_out(captured):
    log = logging.getLogger("somewhere")
    with logs.about(analysis_id="a-1", tenant=""):
        log.info("inside %d", 1)
    log.info("outside")
    inside, outside = captured()
    assert inside["analysis_id"] == "a-1"
    assert "tenant" not in inside
    assert "analysis_id" not in outside


def test_a_line_for_people_holds_the_same(captured):
    stream = io.StringIO()
    logs.configure("console", "info", stream)
    with logs.about(analysis_id="a-1"):
        logging.getLogger("somewhere").warning("slow")
        logging.getLogger("somewhere").debug("not told")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("WARNING slow analysis_id=a-1")


@pytest.mark.parametrize(("form", "level"), [("xml", "info"), ("json", "loud")])
def test_a_format_or_level_that_is_none_is_said(form, level):
    with pytest.raises(ConfigurationError, match="log"):
        logs.configure(form, level)


def test_a_ring_of_causes_ends_and_a_group_tells_of_what_is_in_it(captured):
    first, second = KeyError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    logging.getLogger("somewhere").error("ring", exc_info=first)
    logging.getLogger("somewhere").error("group", exc_info=ExceptionGroup("several", [EngineError("one of them")]))
    ring, group = captured()
    assert ring["exception"].count("builtins.KeyError") == 1
    assert "docferry.errors.EngineError: one of them" in group["exception"]
