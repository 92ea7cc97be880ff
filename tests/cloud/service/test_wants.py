"""What the cloud wants of a device: pushed to that device alone, supplied, refused; and what people ask for."""

import asyncio
import base64

import grpc
import pytest
import pytest_asyncio

from docferry.v1 import analysis_pb2, envelope_pb2, event_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import device_service_pb2 as device_pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

Analysis, Want, Event = analysis_pb2.Analysis, analysis_pb2.Want, event_pb2.Event
KEPT = {"original_percent": 100}
# The engine's double asks where a risk is stated.
ASKED = KEPT | {"route": envelope_pb2.Route(target_risk=0.02)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(running, asking_engine, tmp_path_factory):
    """A server with an engine that asks, and that waits for long."""
    async with running(tmp_path_factory.mktemp("cloud"), asking_engine, patience_s=60.0) as server:
        yield server


async def past(caller) -> list[event_pb2.Event]:
    """Every event of the caller's tenant so far."""
    events, silences = [], 0
    async for answer in caller.watch():
        if not answer.HasField("heartbeat"):
            events.append(answer.event)
        elif silences:
            return events
        else:
            # What was stored a moment ago may still be on its way to those who watch.
            silences += 1
    raise AssertionError("the stream ended")


def codes(version) -> list[str]:
    return [notice.code for notice in version.interpretation.notices]


async def test_a_refusal_ends_the_waiting_and_is_recorded(service, make_envelope):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**ASKED))
    part_id = (await caller.want()).part.want.part_id
    for _ in range(2):
        await caller.refuse(taken.analysis_id, part_id)
    done = await caller.finished(taken.analysis_id)
    assert codes(done.versions[-1]) == ["PARTS_REFUSED"]
    (past,) = done.past_wants
    assert (past.state, past.refusal.code, past.refusal.detail) == (Want.STATE_REFUSED, "POLICY", "no pictures")


async def test_a_device_hears_of_its_own_wants_only_and_no_other_may_answer(
    service, make_envelope, make_picture, small_png, reason_of
):
    kiosk, stranger = service.caller(), service.caller()
    tablet = service.colleague(kiosk)
    taken = await kiosk.submit(make_envelope(**ASKED))
    theirs = await tablet.submit(make_envelope(**ASKED))
    want = (await kiosk.want()).part.want
    assert (await tablet.want()).part.analysis_id == theirs.analysis_id
    call = stranger.wanted()
    assert (await call.read()).HasField("heartbeat")
    call.cancel()
    picture = make_picture(want.part_id, small_png)
    for other, code in ((tablet, grpc.StatusCode.INVALID_ARGUMENT), (stranger, grpc.StatusCode.NOT_FOUND)):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await other.supply(taken.analysis_id, picture, small_png)
        assert reason_of(failure.value)[0] == code
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await other.refuse(taken.analysis_id, want.part_id)
        assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    kiosk.token = "nobody's"
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await kiosk.wanted().read()
    assert reason_of(failure.value) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")


async def test_the_past_comes_first_then_what_is_live_and_a_token_leaves_out_what_was_told(
    service, make_envelope, make_picture, small_png, reason_of
):
    caller = service.caller()
    before = [await caller.submit(make_envelope(**ASKED)) for _ in range(3)]
    call = caller.wanted()
    told = []
    while len(told) < 3:
        if (answer := await call.read()).HasField("part"):
            told.append(answer)
    assert {answer.part.analysis_id for answer in told} == {taken.analysis_id for taken in before}
    live = await caller.submit(make_envelope(**ASKED))
    while not (answer := await call.read()).HasField("part"):
        assert answer.HasField("heartbeat")
    assert answer.part.analysis_id == live.analysis_id
    call.cancel()
    assert (await caller.want(resume_token=told[1].resume_token)).part == told[2].part
    # What was answered meanwhile is not told again, with or without a token.
    first = told[0].part
    await caller.supply(first.analysis_id, make_picture(first.want.part_id, small_png), small_png)
    assert (await caller.want()).part == told[1].part
    foreign = base64.urlsafe_b64encode(b"w1:00000000:999").decode()
    assert (await caller.want(resume_token=foreign)).part == told[1].part
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.wanted(resume_token="nonsense").read()
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


@pytest.mark.parametrize("data", [b"no picture at all" * 300, b""])
async def test_what_is_no_picture_is_refused(service, make_envelope, make_picture, reason_of, data):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**ASKED))
    part_id = (await caller.want()).part.want.part_id
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(taken.analysis_id, make_picture(part_id, data), data)
    assert reason_of(failure.value)[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert (await caller.want()).part.want.received == 0


async def test_a_cancelled_analysis_wants_nothing_and_a_deleted_one_leaves_nothing(
    service, make_envelope, make_picture, small_png, reason_of
):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**ASKED))
    picture = make_picture((await caller.want()).part.want.part_id, small_png)
    await caller("Cancel", pb.CancelRequest(analysis_id=taken.analysis_id))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(taken.analysis_id, picture, small_png)
    assert reason_of(failure.value) == (grpc.StatusCode.ALREADY_EXISTS, "CONFLICT")
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=taken.analysis_id))
    call = caller.wanted()
    assert (await call.read()).HasField("heartbeat")
    call.cancel()


async def test_a_person_fetches_the_page_of_a_finished_answer(service, make_envelope, make_picture, large_picture):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**KEPT))
    done = await caller.finished(taken.analysis_id)
    asked = await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    assert asked.analysis.state == Analysis.STATE_SUCCEEDED
    assert [want.part_id for want in asked.analysis.wants] == [asked.part_id]
    twice = await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    assert twice.part_id == asked.part_id
    told = await caller.want()
    assert (told.part.want.kind, told.part.want.scale) == (envelope_pb2.PART_KIND_PAGE, 1.0)
    picture = make_picture(asked.part_id, large_picture)
    await caller.supply(taken.analysis_id, picture, large_picture[:8000])
    await caller.supply(taken.analysis_id, picture, large_picture[8000:], offset=8000)
    changed = [event for event in await past(caller) if event.type == Event.TYPE_WANTS_CHANGED]
    assert [event.state for event in changed] == [Analysis.STATE_SUCCEEDED] * 2
    pieces = [
        piece
        async for piece in caller._analysis.GetPart(
            pb.GetPartRequest(analysis_id=taken.analysis_id, part_id=asked.part_id),
            metadata=(("authorization", f"Bearer {caller.token}"),),
            timeout=20,
        )
    ]
    assert b"".join(piece.data for piece in pieces) == large_picture
    assert pieces[0].part.media_type == "image/x-portable-anymap"
    assert len(pieces) == 2
    after = await caller.get(taken.analysis_id)
    # The answer stays as it was: pixels for people's eyes are no new reading.
    assert after.versions == done.versions
    assert after.state == Analysis.STATE_SUCCEEDED


async def test_a_refused_page_is_told_to_whoever_asked(service, make_envelope):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**KEPT))
    await caller.finished(taken.analysis_id)
    asked = await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    await caller.refuse(taken.analysis_id, asked.part_id, "NOT_KEPT", "it is gone")
    (over,) = (await caller.get(taken.analysis_id)).past_wants
    assert over.refusal.code == "NOT_KEPT"
    assert [event.type for event in await past(caller)].count(Event.TYPE_WANTS_CHANGED) == 2
    again = await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    assert again.part_id != asked.part_id


async def test_a_page_asked_for_while_the_engine_works_holds_nothing_up(
    service, make_envelope, make_picture, small_png
):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**ASKED))
    engine_want = (await caller.want()).part.want
    asked = await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    await caller.supply(taken.analysis_id, make_picture(engine_want.part_id, small_png), small_png)
    done = await caller.finished(taken.analysis_id)
    assert [want.part_id for want in done.wants] == [asked.part_id]
    assert codes(done.versions[-1]) == []


@pytest.mark.parametrize(
    ("fields", "changes", "expected"),
    [
        ({}, {}, (grpc.StatusCode.FAILED_PRECONDITION, "PIXELS_UNAVAILABLE")),
        ({"scale": -1.0}, KEPT, (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")),
        ({"scale": float("nan")}, KEPT, (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")),
        ({"page": 100_000}, KEPT, (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")),
        ({"box": {"x0": 0.5, "x1": 0.5, "y1": 1}}, KEPT, (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")),
    ],
    ids=["no original", "negative", "nan", "page", "box"],
)
async def test_a_picture_that_cannot_be_asked_for_is_refused(
    service, make_envelope, reason_of, fields, changes, expected
):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**changes))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id, **fields))
    assert reason_of(failure.value) == expected


async def test_what_is_here_already_is_not_asked_for_and_what_is_another_tenants_is_not_found(
    service, make_envelope, make_part, small_png, reason_of
):
    caller = service.caller()
    taken = await caller.submit(make_envelope(parts=[make_part(small_png)], **KEPT))
    asked = await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    assert (asked.part_id, len(asked.analysis.wants)) == ("p1", 0)
    request = pb.GetPartRequest(analysis_id=taken.analysis_id, part_id="p1")

    async def part(who, request=request):
        metadata = (("authorization", f"Bearer {who.token}"),)
        return [piece async for piece in who._analysis.GetPart(request, metadata=metadata, timeout=20)]

    assert b"".join(piece.data for piece in await part(caller)) == small_png
    stranger = service.caller()
    unknown = pb.GetPartRequest(analysis_id=taken.analysis_id, part_id="p2")
    for who, wrong in ((stranger, request), (caller, unknown)):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await part(who, wrong)
        assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stranger("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id))
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


async def test_wants_are_bounded_in_number(service, make_envelope, reason_of):
    caller = service.caller()
    taken = await caller.submit(make_envelope(**KEPT))

    async def ask(number):
        box = {"x0": 0, "x1": 1, "y0": 0, "y1": 1 / (number + 1)}
        return await caller("RequestPart", pb.RequestPartRequest(analysis_id=taken.analysis_id, box=box))

    await asyncio.gather(*(ask(number) for number in range(64)))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask(64)
    assert reason_of(failure.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")


async def test_a_reason_without_a_code_is_no_refusal(service, make_envelope, reason_of):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await service.caller()("Refuse", device_pb.RefuseRequest(analysis_id="a", part_id="b"))
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ENVELOPE")
