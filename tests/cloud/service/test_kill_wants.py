"""kill -9 between every two steps of a want's way, then a restart: it is asked, supplied and read once."""

import asyncio
import contextlib
import hashlib
import signal

import grpc
import pytest

from docferry.v1 import analysis_pb2, device_service_pb2, device_service_pb2_grpc, envelope_pb2, event_pb2
from docferry.v1 import analysis_service_pb2 as pb
from tests.cloud.service.test_kill import DEADLINE, _server

SUPPLIED = (
    "read, not asked",
    "asked, workflow still open",
    "begun, not acknowledged",
    "supplied, not acknowledged",
    "supplied, not enqueued again",
)
PICTURE = b"P6 90 90 255\n" + bytes(range(250)) * 98
Want = analysis_pb2.Want


async def device(channel, stub, *, refuse: bool) -> None:
    """What a device does: hears what is wanted, and supplies it in two chunks from what was received on."""
    devices = device_service_pb2_grpc.DeviceServiceStub(channel)
    async for answer in devices.Watch(device_service_pb2.DeviceServiceWatchRequest(), timeout=DEADLINE):
        if not answer.HasField("part"):
            continue
        analysis_id, want = answer.part.analysis_id, answer.part.want
        if refuse:
            reason = analysis_pb2.Notice(code="POLICY", detail="no pictures")
            request = device_service_pb2.RefuseRequest(analysis_id=analysis_id, part_id=want.part_id, reason=reason)
            await devices.Refuse(request, timeout=DEADLINE)
            continue
        received = want.received
        while received < len(PICTURE):
            request = pb.SupplyRequest(
                analysis_id=analysis_id,
                part_id=want.part_id,
                offset=received,
                total_size=len(PICTURE),
                sha256=hashlib.sha256(PICTURE).digest(),
                data=PICTURE[received : received + 13_000],
            )
            received = (await stub.Supply(request, timeout=DEADLINE)).received


async def lives_and_dies(folder, fault, request, patience, *, refuse=False, deaf=False):
    """One life of the service with a fault, up to its death."""
    async with _server(folder, fault, patience=patience) as (process, stub, channel):
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stub.Submit(request, timeout=DEADLINE)
            if not deaf:
                await device(channel, stub, refuse=refuse)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == -signal.SIGKILL


async def goes_on(folder, request, patience, *, refuse=False, deaf=False):
    """The next life, up to the end of the document: its analysis and events."""
    async with _server(folder, "none", patience=patience) as (_, stub, channel):
        await stub.Submit(request, timeout=DEADLINE)
        supplying = None if deaf else asyncio.create_task(device(channel, stub, refuse=refuse))
        events = []
        async for answer in stub.Watch(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE):
            if answer.HasField("event"):
                events.append(answer.event)
                if answer.event.type == event_pb2.Event.TYPE_SUCCEEDED:
                    break
        if supplying is not None:
            supplying.cancel()
        analysis = (await stub.Submit(request, timeout=DEADLINE)).analysis
        return analysis, [event_pb2.Event.Type.Name(event.type).removeprefix("TYPE_") for event in events]


@pytest.fixture
def request_(make_envelope) -> pb.SubmitRequest:
    route = envelope_pb2.Route(target_risk=0.02)
    return pb.SubmitRequest(envelope=make_envelope(original_percent=100, route=route))


@pytest.mark.parametrize("fault", SUPPLIED)
async def test_a_killed_service_asks_and_reads_once(tmp_path, request_, fault):
    await lives_and_dies(tmp_path, fault, request_, 30)
    analysis, events = await goes_on(tmp_path, request_, 30)
    assert events == ["ACCEPTED", "VERSION_ADDED", "SUCCEEDED"]
    assert [version.engine for version in analysis.versions] == ["edge", "echo", "echo"]
    assert not analysis.versions[-1].interpretation.notices
    assert [(want.state, want.received) for want in analysis.past_wants] == [(Want.STATE_SUPPLIED, len(PICTURE))]


async def test_a_refusal_whose_answer_was_lost_holds(tmp_path, request_):
    await lives_and_dies(tmp_path, "refused, not acknowledged", request_, 30, refuse=True)
    analysis, events = await goes_on(tmp_path, request_, 30, refuse=True)
    assert events == ["ACCEPTED", "VERSION_ADDED", "SUCCEEDED"]
    assert [notice.code for notice in analysis.versions[-1].interpretation.notices] == ["PARTS_REFUSED"]


async def test_a_deadline_that_passed_as_the_service_died_is_kept(tmp_path, request_):
    await lives_and_dies(tmp_path, "given up, not enqueued again", request_, 0.5, deaf=True)
    analysis, events = await goes_on(tmp_path, request_, 0.5, deaf=True)
    assert events == ["ACCEPTED", "VERSION_ADDED", "SUCCEEDED"]
    assert [version.engine for version in analysis.versions] == ["edge", "echo", "echo"]
    assert [notice.code for notice in analysis.versions[-1].interpretation.notices] == ["PARTS_MISSING"]
