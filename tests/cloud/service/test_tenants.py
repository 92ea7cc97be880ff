"""One tenant can neither see nor touch what is another's, and nobody comes in without a token."""

import grpc
import pytest

from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import subscription_service_pb2 as subscription_pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("name", "request_type"),
    [
        ("Get", pb.AnalysisServiceGetRequest),
        ("Cancel", pb.CancelRequest),
        ("Delete", pb.AnalysisServiceDeleteRequest),
    ],
)
async def test_anothers_analysis_is_not_found(service, caller, make_envelope, reason_of, name, request_type):
    taken = await caller.submit(make_envelope())
    stranger = service.caller()
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stranger(name, request_type(analysis_id=taken.analysis_id))
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert (await caller.get(taken.analysis_id)).analysis_id == taken.analysis_id


async def test_anothers_document_events_and_list_are_empty(service, caller, make_envelope, reason_of):
    envelope = make_envelope()
    taken = await caller.submit(envelope)
    await caller.finished(taken.analysis_id)
    stranger = service.caller()
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stranger("Get", pb.AnalysisServiceGetRequest(document_id=envelope.document_id))
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert not (await stranger("List", pb.AnalysisServiceListRequest())).analyses
    for fields in ({}, {"analysis_id": taken.analysis_id}):
        call = stranger.watch(**fields)
        assert (await call.read()).HasField("heartbeat")
        call.cancel()


async def test_anothers_part_cannot_be_supplied(service, caller, make_envelope, make_part, reason_of):
    part = make_part(b"later", inline=False)
    taken = await caller.submit(make_envelope(parts=[part]))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await service.caller().supply(taken.analysis_id, part, b"later")
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


async def test_anothers_webhook_cannot_be_seen_or_deleted(service, caller, receiver, reason_of):
    request = subscription_pb.SubscriptionServiceCreateRequest(
        subscription=subscription_pb.Subscription(url=receiver.url)
    )
    made = (await caller("Create", request)).subscription
    stranger = service.caller()
    assert not (await stranger("List", subscription_pb.SubscriptionServiceListRequest())).subscriptions
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stranger("Delete", subscription_pb.SubscriptionServiceDeleteRequest(subscription_id=made.subscription_id))
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


@pytest.mark.parametrize("token", ["", "nobody's", "token-1 token-2"])
async def test_a_call_without_an_issued_token_is_refused(service, make_envelope, reason_of, token):
    caller = service.caller()
    caller.token = token
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope())
    assert reason_of(failure.value) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.watch().read()
    assert reason_of(failure.value) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
