"""The contract, on the embedded default and on two front ends with two workers on one PostgreSQL: the same answers.

Every call of a test goes to the next front end, so that nothing may hang on which of them was asked before.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc
import pytest
import pytest_asyncio

from benchmarks.service_fleet import Fleet, fleet
from docferry.channel import call_metadata, open_channel
from docferry.v1 import analysis_pb2, device_service_pb2, document_pb2, envelope_pb2, event_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import subscription_service_pb2 as subscription_pb
from tests.cloud.service.running import DEADLINE, Caller

pytestmark = pytest.mark.asyncio(loop_scope="module")
Analysis, Event, Code = analysis_pb2.Analysis, event_pb2.Event, grpc.StatusCode
BODY = b"P6 64 64 255\n" + bytes(range(256)) * 80
STANDS = {"embedded": ["all"], "two and two": ["front", "front", "worker", "worker"]}
TENANTS = [f"tenant-{number}" for number in range(40)]


@dataclass
class Stand:
    """A service of some processes, and tenants that nobody has used."""

    running: Fleet
    channels: list[grpc.aio.Channel]
    fresh: list[str] = field(default_factory=lambda: list(TENANTS))

    def caller(self) -> Callable[[], Caller]:
        """One device of a fresh tenant; each call gives it with the next front end."""
        tenant = self.fresh.pop()
        return itertools.cycle([Caller(channel, tenant, tenant) for channel in self.channels]).__next__


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=STANDS)
async def stand(request, tmp_path_factory):
    database = "" if request.param == "embedded" else request.getfixturevalue("postgres")()
    folder = tmp_path_factory.mktemp("contract")
    async with fleet(folder, STANDS[request.param], database=database, tokens=TENANTS) as running:
        channels = [open_channel(address) for address in running.addresses]
        yield Stand(running, channels)
        for channel in channels:
            await channel.close()


@pytest.fixture
def anyone(stand):
    return stand.caller()


@pytest.fixture
def announced(make_part):
    return make_part(BODY, kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False)


async def read(anyone, make_envelope, **changes):
    """A document, handed in at one front end and waited for at the next."""
    taken = await anyone().submit(make_envelope(**changes))
    return await anyone().finished(taken.analysis_id)


async def refused(code, call):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await call
    assert failure.value.code() is code, failure.value.details()


async def test_a_document_is_read_once_and_every_front_end_gives_the_same(anyone, make_envelope):
    done = await read(anyone, make_envelope)
    assert done.state == Analysis.STATE_SUCCEEDED
    assert [version.engine for version in done.versions] == ["edge", "stamp"]
    assert await anyone().get(done.analysis_id) == await anyone().get(done.analysis_id) == done


async def test_the_same_request_anywhere_is_one_analysis_and_another_body_is_refused(anyone, make_envelope):
    envelope = make_envelope()
    first, second = await anyone().submit(envelope), await anyone().submit(envelope)
    assert second.analysis_id == first.analysis_id
    other = make_envelope(request_id=envelope.request_id, file_name="other.jpg")
    for _ in range(2):
        await refused(Code.ALREADY_EXISTS, anyone().submit(other))


async def test_events_go_on_at_the_next_front_end_by_the_token(anyone, make_envelope):
    ids = [(await read(anyone, make_envelope)).analysis_id for _ in range(3)]
    seen, token = [], ""
    while len(seen) < 6:
        (event,) = await anyone().events(lambda _: True, resume_token=token)
        seen.append(event)
        token = event.resume_token
    assert [event.sequence for event in seen] == sorted({event.sequence for event in seen})
    told = [(event.analysis_id, event.type) for event in seen]
    assert sorted(told) == sorted((name, kind) for name in ids for kind in (Event.TYPE_ACCEPTED, Event.TYPE_SUCCEEDED))


async def test_a_part_goes_on_at_the_next_front_end_where_it_stopped(anyone, make_envelope, announced):
    taken = await anyone().submit(make_envelope(parts=[announced]))
    assert taken.state == Analysis.STATE_AWAITING_PARTS
    for start in range(0, len(BODY), 8000):
        answer = await anyone().supply(taken.analysis_id, announced, BODY[start : start + 8000], offset=start)
        assert answer.received == min(len(BODY), start + 8000)
    assert (await anyone().finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED


async def test_a_list_is_turned_from_page_to_page_anywhere(anyone, make_envelope):
    ids = [(await anyone().submit(make_envelope())).analysis_id for _ in range(5)]
    found, token = [], ""
    while True:
        page = await anyone()("List", pb.AnalysisServiceListRequest(page_size=2, page_token=token))
        found += [analysis.analysis_id for analysis in page.analyses]
        token = page.next_page_token
        if not token:
            break
    assert sorted(found) == sorted(ids)


async def test_what_one_front_end_cancels_is_cancelled_at_all(anyone, make_envelope, announced):
    taken = await anyone().submit(make_envelope(parts=[announced]))
    await anyone()("Cancel", pb.CancelRequest(analysis_id=taken.analysis_id))
    for _ in range(2):
        assert (await anyone().get(taken.analysis_id)).state == Analysis.STATE_CANCELLED
    await refused(Code.ALREADY_EXISTS, anyone().supply(taken.analysis_id, announced, BODY[:8000]))


async def test_what_one_front_end_deletes_is_gone_at_all_and_its_request_stays_used(anyone, make_envelope):
    envelope = make_envelope()
    done = await anyone().submit(envelope)
    await anyone().finished(done.analysis_id)
    await anyone()("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=done.analysis_id))
    for _ in range(2):
        await refused(Code.NOT_FOUND, anyone().get(done.analysis_id))
        await refused(Code.NOT_FOUND, anyone().submit(envelope))


async def test_a_correction_stands_everywhere_and_an_outdated_one_nowhere(anyone, make_envelope):
    done = await read(anyone, make_envelope)
    total = document_pb2.Field(name="total", value="9.50", normalized="9.50")
    request = pb.CorrectRequest(analysis_id=done.analysis_id, version=2, fields=[total])
    await anyone()("Correct", request)
    for _ in range(2):
        newest = (await anyone().get(done.analysis_id)).versions[-1]
        assert (newest.version, newest.engine) == (3, "person")
        await refused(Code.ABORTED, anyone()("Correct", request))


async def test_a_document_is_asked_and_exported_anywhere(anyone, make_envelope):
    done = await read(anyone, make_envelope)
    for _ in range(2):
        caller = anyone()
        metadata = call_metadata(caller.token)
        question = pb.AskRequest(analysis_id=done.analysis_id, question="What is the total?")
        asked = caller._analysis.Ask(question, timeout=DEADLINE, metadata=metadata)
        assert [answer async for answer in asked]
        request = pb.ExportRequest(analysis_id=done.analysis_id, format=pb.ExportRequest.FORMAT_JSON)
        exported = caller._analysis.Export(request, timeout=DEADLINE, metadata=metadata)
        assert b"".join([piece.data async for piece in exported]).startswith(b"{")


async def test_a_page_asked_for_at_one_front_end_is_heard_of_at_the_other_and_refused_for_all(anyone, make_envelope):
    done = await read(anyone, make_envelope, original_percent=100)
    asked = await anyone()("RequestPart", pb.RequestPartRequest(analysis_id=done.analysis_id))
    told = await anyone().want()
    assert told.part.want.part_id == asked.part_id
    await anyone().refuse(done.analysis_id, asked.part_id, "NOT_KEPT", "it is gone")
    for _ in range(2):
        (over,) = (await anyone().get(done.analysis_id)).past_wants
        assert over.refusal.code == "NOT_KEPT"


async def test_a_webhook_made_at_one_front_end_is_told_once_of_what_another_took_in(anyone, make_envelope, receiver):
    wish = subscription_pb.Subscription(url=receiver.url)
    await anyone()("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=wish))
    for _ in range(2):
        listed = await anyone()("List", subscription_pb.SubscriptionServiceListRequest())
        assert [each.url for each in listed.subscriptions] == [receiver.url]
    done = await read(anyone, make_envelope)
    ids = {(await receiver.next()).headers["webhook-id"] for _ in (Event.TYPE_ACCEPTED, Event.TYPE_SUCCEEDED)}
    assert len(ids) == 2
    assert done.state == Analysis.STATE_SUCCEEDED


async def test_what_is_anothers_is_not_there_at_any_front_end(stand, anyone, make_envelope):
    done = await read(anyone, make_envelope)
    stranger = stand.caller()
    reason = analysis_pb2.Notice(code="POLICY", detail="no pictures")
    calls = (
        ("Get", pb.AnalysisServiceGetRequest(analysis_id=done.analysis_id)),
        ("Cancel", pb.CancelRequest(analysis_id=done.analysis_id)),
        ("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=done.analysis_id)),
        ("Refuse", device_service_pb2.RefuseRequest(analysis_id=done.analysis_id, part_id="p1", reason=reason)),
    )
    for name, request in calls:
        for _ in range(2):
            await refused(Code.NOT_FOUND, stranger()(name, request))
    assert (await anyone().get(done.analysis_id)).state == Analysis.STATE_SUCCEEDED
