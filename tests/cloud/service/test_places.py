"""Who comes next: tenants take turns, urgent work goes first, and what is too late is not begun."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import status_pb2

from docferry.errors import TooLate
from docferry.status import error_of
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.rows import Caller
from docferry_cloud.schema import State

SECOND = 1_000_000


def _order(world, ids):
    """The ids in the order of their places; earlier ones first where places are equal."""
    work = world.work("one")
    return sorted(ids, key=lambda analysis_id: (work.place(analysis_id), ids.index(analysis_id)))


def test_a_tenant_that_floods_the_queue_lets_another_one_go_next(world):
    flood = [world.take() for _ in range(5)]
    world.work("one").claim(flood[0])
    world.caller = Caller("other", "tablet")
    mine = [world.take() for _ in range(2)]
    a, b, c, d, e = flood
    assert _order(world, flood + mine) == [a, mine[0], b, mine[1], c, d, e]


def test_a_tenant_that_comes_back_has_saved_up_nothing_and_owes_nothing(world):
    work = world.work("one")
    for _ in range(3):
        analysis_id = world.take()
        work.claim(analysis_id)
        work.fail(analysis_id, status_pb2.Status(code=13))
    flood = [world.take() for _ in range(3)]
    world.caller = Caller("other", "tablet")
    mine = world.take()
    assert _order(world, [*flood, mine]) == [flood[0], mine, flood[1], flood[2]]


def test_what_somebody_waits_for_goes_before_what_nobody_does(world):
    world.lane = 1
    background = [world.take() for _ in range(2)]
    world.lane = 0
    urgent = world.take()
    assert _order(world, [*background, urgent]) == [urgent, *background]


def test_what_could_not_be_begun_in_time_fails_with_that_reason_and_is_not_begun(world):
    world.within_s = 5.0
    late, in_time, swept = world.take(), world.take(), world.take()
    work = world.work("one")
    assert work.claim(in_time) is not None
    world.now += 6 * SECOND
    assert work.claim(late) is None
    assert world.retention.lapse() == 1
    assert world.retention.lapse() == 0
    # What was begun in time has as long as it takes.
    assert world.state(in_time) is State.RUNNING
    for analysis_id in (late, swept):
        row = world.store.get("tenant", analysis_id=analysis_id)
        assert row.state is State.FAILED
        assert isinstance(error_of(status_pb2.Status.FromString(row.error)), TooLate)
        assert world.events(analysis_id) == ["ACCEPTED", "FAILED"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_deadline_and_an_urgency_come_with_the_submission(caller, make_envelope, reason_of):
    request = pb.SubmitRequest(
        envelope=make_envelope(), finish_within=Duration(seconds=60), urgency=pb.URGENCY_BACKGROUND
    )
    taken = (await caller("Submit", request)).analysis
    assert (await caller.finished(taken.analysis_id)).state == analysis_pb2.Analysis.STATE_SUCCEEDED
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller("Submit", pb.SubmitRequest(envelope=make_envelope(), finish_within=Duration(nanos=5)))
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
