"""List: which analyses, in which order, page by page; Correct: a person's version beside the engine's."""

import grpc
import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp

from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")
Analysis = analysis_pb2.Analysis
OLDEST_FIRST = pb.AnalysisServiceListRequest.ORDER_OLDEST_FIRST


@pytest_asyncio.fixture(loop_scope="module")
async def five(caller, make_envelope, make_part):
    """Five analyses in the order in which they came: the last waits for a part, the others have succeeded."""
    part = make_part(b"later", inline=False)
    done = [await caller.submit(make_envelope()) for _ in range(4)]
    for analysis in done:
        await caller.finished(analysis.analysis_id)
    return [*done, await caller.submit(make_envelope(parts=[part]))]


async def _ids(caller, **fields):
    answer = await caller("List", pb.AnalysisServiceListRequest(**fields))
    return [analysis.analysis_id for analysis in answer.analyses], answer.next_page_token


async def test_conditions_and_order_choose_what_is_listed(caller, five):
    ids = [analysis.analysis_id for analysis in five]
    assert (await _ids(caller))[0] == ids[::-1]
    assert (await _ids(caller, order=OLDEST_FIRST))[0] == ids
    assert (await _ids(caller, states=[Analysis.STATE_AWAITING_PARTS]))[0] == ids[4:]
    assert (await _ids(caller, document_id=five[1].document_id))[0] == ids[1:2]
    from_second, before_fourth = five[1].create_time, five[3].create_time
    between = {"created_from": from_second, "created_before": before_fourth}
    assert (await _ids(caller, order=OLDEST_FIRST, **between))[0] == ids[1:3]
    assert (await _ids(caller, created_from=Timestamp(seconds=1 << 55)))[0] == []


async def test_states_that_few_and_that_most_are_in_are_listed_alike_and_of_one_tenant(service, caller, five):
    ids = [analysis.analysis_id for analysis in five]
    done, waiting, cancelled = Analysis.STATE_SUCCEEDED, Analysis.STATE_AWAITING_PARTS, Analysis.STATE_CANCELLED
    stranger = service.caller()
    for states, expected in (
        ([done], ids[:4]),
        ([waiting], ids[4:]),
        ([done, waiting], ids),
        ([waiting, cancelled], ids[4:]),
        ([cancelled], []),
    ):
        assert (await _ids(caller, states=states))[0] == expected[::-1], states
        assert (await _ids(caller, states=states, document_id=five[0].document_id))[0] == expected[:1] * (
            done in states
        )
        assert (await _ids(stranger, states=states))[0] == []


@pytest.mark.parametrize("order", [0, OLDEST_FIRST])
async def test_pages_hold_everything_once(caller, five, order):
    seen, token = [], ""
    while True:
        ids, token = await _ids(caller, page_size=2, page_token=token, order=order)
        seen += ids
        if not token:
            break
    whole, _ = await _ids(caller, order=order)
    assert seen == whole
    assert len(seen) == 5


async def test_a_page_token_is_of_its_own_list_only(caller, five, reason_of):
    _, token = await _ids(caller, page_size=2)
    for fields in ({"order": OLDEST_FIRST}, {"states": [Analysis.STATE_SUCCEEDED]}):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await _ids(caller, page_token=token, **fields)
        assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_what_no_database_can_hold_is_left_out_of_the_conditions(caller, five):
    for fields in ({"device": "\0"}, {"document_id": "\0"}, {"query": "\0"}):
        assert len((await _ids(caller, **fields))[0]) == 5, fields
    assert (await _ids(caller, document_id=f"{five[1].document_id}\0"))[0] == [five[1].analysis_id]


@pytest.mark.parametrize("fields", [{"states": [0]}, {"states": [99]}, {"order": 7}])
async def test_a_state_or_an_order_that_does_not_exist_is_refused(caller, fields, reason_of):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await _ids(caller, **fields)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
