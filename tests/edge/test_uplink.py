"""What was captured arrives once and once only, whatever happens on the way."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from docferry.async_client import AsyncClient
from docferry.channel import MAX_CHUNK_BYTES, PROTOCOL_VERSION
from docferry.errors import (
    Conflict,
    DocferryError,
    EnvelopeError,
    HistoryGone,
    Overloaded,
    Unauthenticated,
    Unavailable,
    UnsupportedVersion,
)
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2, event_pb2
from docferry_edge.entry import Entry, OutboxPart, State
from docferry_edge.outbox import Outbox
from docferry_edge.uplink import Pace, Uplink

QUICK = Pace(first=0.01, longest=0.05, refusals=3, idle=0.05)


@pytest.fixture
def outbox(tmp_path: Path):
    box = Outbox(tmp_path)
    yield box
    box.close()


def packed(outbox: Outbox, name: str = "a.jpg", parts: tuple[OutboxPart, ...] = ()) -> Entry:
    entry = outbox.capture(source=name, file_name=name, data=b"pixel", captured_at=1.0)
    assert entry is not None
    envelope = envelope_pb2.Envelope(
        request_id=entry.request_id,
        document_id=entry.document_id,
        protocol_version=PROTOCOL_VERSION,
        file_name=name,
        parts=[
            envelope_pb2.Part(part_id=part.part_id, kind=envelope_pb2.PART_KIND_PAGE, size=len(part.data))
            for part in parts
        ],
    )
    request = analysis_service_pb2.SubmitRequest(envelope=envelope).SerializeToString()
    outbox.packed(entry.document_id, request=request, parts=parts, edge_answer=b"", timings={})
    return entry


@asynccontextmanager
async def uplink(outbox: Outbox, port: int) -> AsyncIterator[Uplink]:
    async with AsyncClient.connect(f"127.0.0.1:{port}") as client:
        running = Uplink(outbox, client, lambda _: None, QUICK)
        task = asyncio.create_task(running.run())
        try:
            yield running
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task.exception()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def state(outbox: Outbox, entry: Entry) -> State:
    return outbox.get(entry.document_id).state


async def test_a_document_is_sent_and_its_answer_fetched(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
        link.cloud.finish(entry.document_id)
        await until(lambda: state(outbox, entry) is State.SETTLED)
    assert outbox.get(entry.document_id).timings["event"] >= 0


async def test_a_lost_acknowledgement_makes_no_second_analysis(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    lost = iter([True, True])

    async def drop(method: str, _: object) -> None:
        if method == "Submit" and next(lost, False):
            raise Unavailable("the answer is lost", remedy="none")

    link.cloud.after = drop
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
    assert len(link.cloud.submits) == 3
    assert len(set(link.cloud.submits)) == 1
    assert len(link.cloud.analyses) == 1


async def test_the_cloud_down_then_back_delivers_what_waited(outbox: Outbox, link) -> None:
    await link.down()
    entries = [packed(outbox, f"{number}.jpg") for number in range(3)]
    async with uplink(outbox, link.port) as running:
        await asyncio.sleep(0.2)
        assert {state(outbox, entry) for entry in entries} == {State.PACKED}
        await link.up()
        running.wake()
        await until(lambda: {state(outbox, entry) for entry in entries} == {State.DELIVERED})
        for entry in entries:
            link.cloud.finish(entry.document_id)
        await until(lambda: {state(outbox, entry) for entry in entries} == {State.SETTLED})


async def test_a_large_part_goes_on_where_the_link_broke(outbox: Outbox, link) -> None:
    data = bytes(range(256)) * (MAX_CHUNK_BYTES // 100)
    entry = packed(outbox, parts=(OutboxPart("page", data),))
    offsets: list[int] = []

    async def break_once(method: str, request) -> None:
        if method == "Supply":
            offsets.append(request.offset)
            if len(offsets) == 2:
                raise Unavailable("the link broke", remedy="none")

    link.cloud.before = break_once
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
    assert offsets[:3] == [0, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES]
    assert list(link.cloud.parts.values()) == [data]


async def test_what_was_asked_for_later_is_not_the_uplinks_to_send(outbox: Outbox, link) -> None:
    entry = packed(outbox)

    async def ask(method: str, request) -> None:
        if method == "Submit":
            analysis = link.cloud.analyses[request.envelope.request_id]
            if not analysis.wants:
                analysis.wants.add(part_id="w1", state=analysis_pb2.Want.STATE_OPEN)

    link.cloud.after = ask
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)


async def test_a_poisoned_document_is_set_aside_and_the_rest_goes_on(outbox: Outbox, link) -> None:
    poisoned, good = packed(outbox, "poison.jpg"), packed(outbox, "good.jpg")

    async def refuse(method: str, request) -> None:
        if method == "Submit" and request.envelope.file_name == "poison.jpg":
            raise EnvelopeError("the envelope is malformed", remedy="send a good one", field="envelope")

    link.cloud.before = refuse
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, good) is State.DELIVERED)
        await until(lambda: state(outbox, poisoned) is State.QUARANTINED)
    assert outbox.get(poisoned.document_id).error["code"] == "INVALID_ENVELOPE"


async def test_a_document_the_cloud_fails_on_while_it_takes_others_is_set_aside(outbox: Outbox, link) -> None:
    bad = packed(outbox, "bad.jpg")

    async def crash(method: str, request) -> None:
        if method == "Submit" and request.envelope.file_name == "bad.jpg":
            raise DocferryError("something broke", remedy="report it")

    link.cloud.before = crash
    async with uplink(outbox, link.port) as running:
        for number in range(QUICK.refusals):
            good = packed(outbox, f"{number}.jpg")
            running.wake()
            await until(lambda good=good: state(outbox, good) is State.DELIVERED)
            await until(lambda number=number: outbox.get(bad.document_id).refusals >= number)
        await until(lambda: state(outbox, bad) is State.QUARANTINED)
    assert outbox.retry(bad.document_id)


async def test_a_sick_cloud_that_fails_on_everything_condemns_nothing(outbox: Outbox, link) -> None:
    entries = [packed(outbox, f"{number}.jpg") for number in range(3)]
    failures = iter(range(60))

    async def crash(method: str, _: object) -> None:
        if method == "Submit" and next(failures, None) is not None:
            raise DocferryError("the database is away", remedy="wait")

    link.cloud.before = crash
    async with uplink(outbox, link.port):
        await until(lambda: {state(outbox, entry) for entry in entries} == {State.DELIVERED})
    assert next(failures, None) is None


@pytest.mark.parametrize(
    "code", ["RESOURCE_EXHAUSTED", "NOT_FOUND", "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNKNOWN", "ABORTED"]
)
async def test_a_status_that_is_not_docferrys_own_condemns_nothing(outbox: Outbox, link, code: str) -> None:
    entry = packed(outbox)
    failures = iter(range(5))

    async def proxy(request, context) -> None:
        if next(failures, None) is not None:
            await context.abort(grpc.StatusCode[code], "a proxy says no")

    link.cloud.proxy = proxy
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
    assert next(failures, None) is None


async def test_another_protocol_version_waits_for_the_update(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    failures = iter(range(3))

    async def older(method: str, _: object) -> None:
        if method == "Submit" and next(failures, None) is not None:
            raise UnsupportedVersion("version 1 is not spoken here", remedy="update")

    link.cloud.before = older
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)


async def test_a_deleted_analysis_ends_the_document(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
        link.cloud.finish(entry.document_id, kind=event_pb2.Event.TYPE_DELETED)
        await until(lambda: state(outbox, entry) is State.FAILED)
    assert "deleted" in outbox.get(entry.document_id).error["reason"]


async def test_an_idle_uplink_does_not_spin(outbox: Outbox, link, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = packed(outbox)

    async def refuse(method: str, _: object) -> None:
        if method == "Submit":
            raise Unavailable("not now", remedy="wait")

    link.cloud.before = refuse
    looks = []
    unsent = outbox.unsent
    monkeypatch.setattr(outbox, "unsent", lambda: looks.append(1) or unsent())
    async with uplink(outbox, link.port):
        await asyncio.sleep(0.3)
        outbox.failed(entry.document_id, Conflict("settled elsewhere", remedy="none"))
        await asyncio.sleep(0.2)
        looks.clear()
        await asyncio.sleep(0.5)
    assert len(looks) <= 0.5 / QUICK.idle + 3


@pytest.mark.parametrize(
    "error",
    [
        Overloaded("the queue is full", retry_after=0.02),
        Unauthenticated("the token has run out", remedy="renew it"),
        Unavailable("the link is down", remedy="wait"),
    ],
)
async def test_what_is_not_the_documents_fault_is_never_held_against_it(
    outbox: Outbox, link, error: DocferryError
) -> None:
    entry = packed(outbox)
    failures = iter(range(6))

    async def fail(method: str, _: object) -> None:
        if method == "Submit" and next(failures, None) is not None:
            raise error

    link.cloud.before = fail
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
    assert outbox.get(entry.document_id).refusals == 0


async def test_an_answer_that_came_while_the_agent_was_off_is_fetched_at_the_next_start(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
    link.cloud.finish(entry.document_id)
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.SETTLED)
        await until(lambda: outbox.mark("watch.resume_token") == "1")


async def test_when_history_is_gone_the_answers_are_fetched_one_by_one(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
    link.cloud.finish(entry.document_id)
    link.cloud.log.clear()
    outbox.set_mark("watch.resume_token", "77")

    async def gone(method: str, request) -> None:
        if method == "Watch" and request.resume_token:
            raise HistoryGone("the events are gone", remedy="list again")

    link.cloud.before = gone
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.SETTLED)


async def test_events_of_other_devices_are_passed_over(outbox: Outbox, link) -> None:
    entry = packed(outbox)
    other = envelope_pb2.Envelope(request_id=str(uuid.uuid4()), document_id=str(uuid.uuid4()), protocol_version=1)
    async with AsyncClient.connect(f"127.0.0.1:{link.port}") as client:
        await client.submit(analysis_service_pb2.SubmitRequest(envelope=other))
    link.cloud.finish(other.document_id)
    async with uplink(outbox, link.port):
        await until(lambda: state(outbox, entry) is State.DELIVERED)
        link.cloud.finish(entry.document_id)
        await until(lambda: state(outbox, entry) is State.SETTLED)
