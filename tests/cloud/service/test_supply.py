"""Supply: parts come in chunks, resume where they broke off, and are checked at the end."""

import asyncio
import uuid

import grpc
import pytest

from docferry.status import error_from_rpc
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")
Analysis = analysis_pb2.Analysis
BODY = b"P6 64 64 255\n" + bytes(range(256)) * 80


@pytest.fixture
def announced(make_part):
    return make_part(BODY, kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False)


async def test_an_announced_part_is_wanted_and_its_last_byte_starts_the_work(caller, make_envelope, announced):
    taken = await caller.submit(make_envelope(parts=[announced]))
    assert taken.state == Analysis.STATE_AWAITING_PARTS
    assert [(want.part_id, want.kind, want.received) for want in taken.wants] == [
        ("p1", envelope_pb2.PART_KIND_ORIGINAL, 0)
    ]
    first = await caller.supply(taken.analysis_id, announced, BODY[:8000])
    assert (first.received, first.state) == (8000, Analysis.STATE_AWAITING_PARTS)
    assert (await caller.get(taken.analysis_id)).wants[0].received == 8000
    last = await caller.supply(taken.analysis_id, announced, BODY[8000:], offset=8000)
    assert (last.received, last.state) == (len(BODY), Analysis.STATE_PENDING)
    done = await caller.finished(taken.analysis_id)
    assert done.state == Analysis.STATE_SUCCEEDED
    assert not done.wants
    assert {part.kind: part.bytes for part in done.traffic.parts}["original"] == len(BODY)


async def test_an_overlapping_resend_is_skipped_and_a_gap_says_where_to_go_on(
    caller, make_envelope, announced, reason_of
):
    taken = await caller.submit(make_envelope(parts=[announced]))
    await caller.supply(taken.analysis_id, announced, BODY[:8000])
    assert (await caller.supply(taken.analysis_id, announced, BODY[:8000])).received == 8000
    assert (await caller.supply(taken.analysis_id, announced, BODY[4000:13000], offset=4000)).received == 13000
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(taken.analysis_id, announced, BODY[18000:], offset=18000)
    error = error_from_rpc(failure.value)
    assert (failure.value.code(), error.metadata["received"]) == (grpc.StatusCode.INVALID_ARGUMENT, "13000")
    assert (await caller.supply(taken.analysis_id, announced, BODY[13000:], offset=13000)).received == len(BODY)
    done = await caller.finished(taken.analysis_id)
    assert done.state == Analysis.STATE_SUCCEEDED
    assert (await caller.supply(taken.analysis_id, announced, BODY[:5000])).received == len(BODY)


async def test_a_part_with_a_wrong_hash_is_dropped_and_asked_for_again(caller, make_envelope, announced):
    taken = await caller.submit(make_envelope(parts=[announced]))
    spoilt = b"X" + BODY[1:]
    answer = await caller.supply(taken.analysis_id, announced, spoilt)
    assert (answer.received, answer.state) == (0, Analysis.STATE_AWAITING_PARTS)
    assert (await caller.get(taken.analysis_id)).wants[0].received == 0
    assert (await caller.supply(taken.analysis_id, announced, BODY)).received == len(BODY)
    assert (await caller.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED


async def test_two_senders_of_one_part_do_not_spoil_it(caller, make_envelope, announced):
    taken = await caller.submit(make_envelope(parts=[announced]))
    await asyncio.gather(*(caller.supply(taken.analysis_id, announced, BODY[:9000]) for _ in range(4)))
    await asyncio.gather(*(caller.supply(taken.analysis_id, announced, BODY[9000:], offset=9000) for _ in range(4)))
    assert (await caller.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED


@pytest.mark.parametrize(
    ("data", "offset", "changes", "reason"),
    [
        (BODY, 0, {"sha256": bytes(32)}, "INVALID_ENVELOPE"),
        (BODY, 0, {"total_size": 1}, "INVALID_ENVELOPE"),
        (BODY + b"more", 0, {}, "INVALID_ENVELOPE"),
        (b"", 0, {}, "INVALID_ENVELOPE"),
        (BODY[:4095], 0, {}, "INVALID_ENVELOPE"),
        (bytes((512 << 10) + 1), 0, {}, "ENVELOPE_TOO_LARGE"),
    ],
    ids=["hash", "size", "beyond", "empty", "tiny", "chunk"],
)
async def test_a_chunk_that_does_not_fit_is_refused(
    caller, make_envelope, announced, reason_of, data, offset, changes, reason
):
    taken = await caller.submit(make_envelope(parts=[announced]))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(taken.analysis_id, announced, data, offset, **changes)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, reason)


async def test_nothing_is_taken_for_unknown_analyses_unknown_parts_or_cancelled_work(
    caller, make_envelope, make_part, announced, reason_of
):
    taken = await caller.submit(make_envelope(parts=[announced]))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(str(uuid.uuid4()), announced, BODY)
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(taken.analysis_id, make_part(BODY, part_id="other"), BODY)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ENVELOPE")
    await caller("Cancel", pb.CancelRequest(analysis_id=taken.analysis_id))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.supply(taken.analysis_id, announced, BODY)
    assert reason_of(failure.value) == (grpc.StatusCode.ALREADY_EXISTS, "CONFLICT")


@pytest.mark.parametrize("kind", [envelope_pb2.PART_KIND_ORIGINAL, envelope_pb2.PART_KIND_PAGE])
async def test_a_supplied_picture_that_is_none_is_refused_and_dropped(
    caller, make_envelope, make_part, reason_of, huge_png, kind
):
    for data, reason in ((b"no picture at all", "UNREADABLE_IMAGE"), (huge_png, "IMAGE_TOO_LARGE")):
        part = make_part(data, kind=kind, inline=False)
        taken = await caller.submit(make_envelope(parts=[part]))
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.supply(taken.analysis_id, part, data)
        assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
        after = await caller.get(taken.analysis_id)
        assert (after.state, after.wants[0].received) == (Analysis.STATE_AWAITING_PARTS, 0)
