"""Questions about a finished analysis, over gRPC."""

import uuid

import grpc
import pytest

from docferry.channel import call_metadata
from docferry.v1 import analysis_service_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ask(caller, analysis_id, question):
    request = pb.AskRequest(analysis_id=analysis_id, question=question)
    pieces = [piece async for piece in caller._analysis.Ask(request, metadata=call_metadata(caller.token))]
    return pieces[-1].answer


async def test_an_answer_says_where_it_stands_and_an_unknown_one_is_empty(caller, make_envelope):
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    await caller.finished(analysis_id)
    unknown = await ask(caller, analysis_id, "Who signed the lease?")
    assert (unknown.question, unknown.answer, unknown.confidence) == ("Who signed the lease?", "", 0.0)


@pytest.mark.parametrize("question", ["", "x" * 2001])
async def test_an_empty_or_endless_question_is_refused(caller, make_envelope, reason_of, question):
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    await caller.finished(analysis_id)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask(caller, analysis_id, question)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_an_analysis_that_is_not_there_is_not_found(caller, reason_of):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask(caller, str(uuid.uuid4()), "What is the total?")
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
