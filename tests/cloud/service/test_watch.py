"""Watch: everything once, in order, across reconnects; and what was lost is said."""

import base64

import grpc
import pytest

from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import event_pb2

pytestmark = pytest.mark.asyncio(loop_scope="module")
Event = event_pb2.Event


async def test_a_reconnect_with_the_token_gets_nothing_twice_and_loses_nothing(caller, make_envelope):
    ids = [(await caller.submit(make_envelope())).analysis_id for _ in range(6)]
    for analysis_id in ids:
        await caller.finished(analysis_id)
    whole = []
    async for answer in caller.watch():
        if answer.HasField("heartbeat"):
            break
        whole.append(answer.event)
    pieces, token = [], ""
    while len(pieces) < len(whole):
        (event,) = await caller.events(lambda _: True, resume_token=token)
        pieces.append(event)
        token = event.resume_token
    assert [event.event_id for event in pieces] == [event.event_id for event in whole]
    assert [event.sequence for event in whole] == sorted({event.sequence for event in whole})
    succeeded = [event.analysis_id for event in whole if event.type == Event.TYPE_SUCCEEDED]
    assert sorted(succeeded) == sorted(ids)


async def test_a_heartbeats_token_goes_on_after_what_was_seen(caller, make_envelope):
    first = await caller.submit(make_envelope())
    await caller.finished(first.analysis_id)
    async for answer in caller.watch():
        if answer.HasField("heartbeat"):
            token = answer.heartbeat.resume_token
            break
    second = await caller.submit(make_envelope())
    (event,) = await caller.events(lambda _: True, resume_token=token)
    assert event.analysis_id == second.analysis_id


async def test_live_only_leaves_the_past_out(caller, make_envelope):
    old = await caller.submit(make_envelope())
    await caller.finished(old.analysis_id)
    call = caller.watch(live_only=True)
    assert (await call.read()).HasField("heartbeat")
    new = await caller.submit(make_envelope())
    while not (answer := await call.read()).HasField("event"):
        pass
    assert answer.event.analysis_id == new.analysis_id
    call.cancel()


async def test_silence_is_broken_by_heartbeats(caller):
    call = caller.watch()
    beats = [await call.read() for _ in range(3)]
    assert all(beat.HasField("heartbeat") for beat in beats)
    call.cancel()


async def test_one_analysis_can_be_watched_alone(caller, make_envelope):
    one, other = [(await caller.submit(make_envelope())).analysis_id for _ in range(2)]
    events = await caller.events(lambda event: event.type == Event.TYPE_SUCCEEDED, analysis_id=other)
    assert {event.analysis_id for event in events} == {other}
    assert one != other


@pytest.mark.parametrize("token", ["nonsense", "AAAA", base64.urlsafe_b64encode(b"1:abc:-5").decode()])
async def test_a_malformed_token_is_refused(caller, reason_of, token):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.watch(resume_token=token).read()
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_a_token_of_another_log_or_of_the_future_is_answered_with_history_gone(caller, make_envelope, reason_of):
    await caller.submit(make_envelope())
    (event,) = await caller.events(lambda _: True)
    version, log_id, sequence = base64.urlsafe_b64decode(event.resume_token).decode().split(":")
    for other in (f"{version}:{'0' * len(log_id)}:{sequence}", f"{version}:{log_id}:999999"):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.watch(resume_token=base64.urlsafe_b64encode(other.encode()).decode()).read()
        assert reason_of(failure.value) == (grpc.StatusCode.OUT_OF_RANGE, "HISTORY_GONE")


async def test_cancelled_watchers_leave_nothing_behind(service, caller, make_envelope, until):
    for _ in range(100):
        call = caller.watch()
        await call.read()
        call.cancel()
    await until(lambda: caller.tenant not in service.server._feed._watchers)


async def test_cancel_and_delete_are_told(caller, make_envelope, make_part, reason_of):
    part = make_part(b"later", inline=False)
    taken = await caller.submit(make_envelope(parts=[part]))
    cancelled = (await caller("Cancel", pb.CancelRequest(analysis_id=taken.analysis_id))).analysis
    assert cancelled.state == cancelled.STATE_CANCELLED
    await caller("Cancel", pb.CancelRequest(analysis_id=taken.analysis_id))
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=taken.analysis_id))
    events = await caller.events(lambda event: event.type == Event.TYPE_DELETED)
    assert [event.type for event in events] == [Event.TYPE_ACCEPTED, Event.TYPE_CANCELLED, Event.TYPE_DELETED]
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.get(taken.analysis_id)
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
