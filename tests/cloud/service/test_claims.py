"""One document for whoever opens its link first: what a claim opens, and that it opens nothing else."""

import asyncio
import uuid

import grpc
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration

from docferry.channel import call_metadata
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import (
    analysis_service_pb2_grpc,
    claim_service_pb2_grpc,
    subscription_service_pb2,
    subscription_service_pb2_grpc,
)
from docferry.v1 import claim_service_pb2 as claim_pb
from docferry_cloud.access.claims import MAX_CLAIMS, MAX_OPEN_WITHIN_S, SESSION_S, Claims
from docferry_cloud.access.keys import Keys
from docferry_cloud.access.rules import RULES, Scope
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.watch import MAX_CLAIM_WATCHERS
from tests.cloud.service.browser import Browser
from tests.cloud.service.running import DEADLINE, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
CODE = grpc.StatusCode
PUBLIC_URL = "https://docferry.example"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory, database_url):
    settings = {"public_url": PUBLIC_URL, "push_contact": "mailto:ops@example.com"}
    async with running_server(tmp_path_factory.mktemp("claims"), database=database_url(), **settings) as server:
        yield server


class Phone:
    """Calls with whatever token it holds."""

    def __init__(self, channel, token):
        self.token = token
        self._stubs = {
            "Analysis": analysis_service_pb2_grpc.AnalysisServiceStub(channel),
            "Claim": claim_service_pb2_grpc.ClaimServiceStub(channel),
            "Subscription": subscription_service_pb2_grpc.SubscriptionServiceStub(channel),
        }

    async def __call__(self, name, request):
        service, _, method = name.partition(".")
        call = getattr(self._stubs[service], method)(request, timeout=DEADLINE, metadata=call_metadata(self.token))
        if hasattr(call, "read"):
            answer = await call.read()
            call.cancel()
            return answer
        return await call

    async def refused(self, name, request):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await self(name, request)
        return failure.value.code()


@pytest.fixture
def phone(service):
    return lambda token="": Phone(service.channel, token)


async def link_to(service, caller, analysis_id, **fields):
    request = claim_pb.ClaimServiceCreateRequest(analysis_id=analysis_id, **fields)
    return await Phone(service.channel, caller.token)("Claim.Create", request)


async def _opened(service, caller, analysis_id):
    link = await link_to(service, caller, analysis_id)
    answer = await Phone(service.channel, link.token)("Claim.Open", claim_pb.ClaimServiceOpenRequest())
    return Phone(service.channel, answer.session), answer


def _calls(analysis_id):
    """What the holder of a claim may call, about this analysis."""
    browser = Browser()
    subscription = subscription_service_pb2.Subscription(
        kind=subscription_service_pb2.Subscription.KIND_WEB_PUSH, url="https://push.example/x", analysis_id=analysis_id
    )
    return {
        "Analysis.Get": pb.AnalysisServiceGetRequest(analysis_id=analysis_id),
        "Analysis.Watch": pb.AnalysisServiceWatchRequest(analysis_id=analysis_id),
        "Analysis.GetPage": pb.GetPageRequest(analysis_id=analysis_id),
        "Analysis.Ask": pb.AskRequest(analysis_id=analysis_id, question="What is the total?"),
        "Analysis.Export": pb.ExportRequest(analysis_id=analysis_id, format=pb.ExportRequest.FORMAT_CSV),
        "Subscription.Create": subscription_service_pb2.SubscriptionServiceCreateRequest(
            subscription=subscription,
            push_keys=subscription_service_pb2.PushKeys(p256dh=browser.p256dh, auth=browser.auth),
        ),
    }


@pytest_asyncio.fixture(loop_scope="module")
async def finished(caller, make_envelope, make_part, small_png):
    taken = await caller.submit(make_envelope(parts=[make_part(small_png)]))
    return await caller.finished(taken.analysis_id)


async def test_a_link_opens_its_document_once_for_the_phone_that_comes_first(service, caller, finished, phone):
    link = await link_to(service, caller, finished.analysis_id)
    assert link.link == f"{PUBLIC_URL}/c/{link.token}"
    first = await phone(link.token)("Claim.Open", claim_pb.ClaimServiceOpenRequest())
    assert first.analysis_id == finished.analysis_id
    assert await phone(link.token).refused("Claim.Open", claim_pb.ClaimServiceOpenRequest()) is CODE.NOT_FOUND
    holder = phone(first.session)
    for name, request in _calls(finished.analysis_id).items():
        assert await holder(name, request) is not None, name
    assert await holder("Subscription.GetPushKey", subscription_service_pb2.SubscriptionServiceGetPushKeyRequest())
    assert (await holder("Analysis.GetPage", pb.GetPageRequest(analysis_id=finished.analysis_id))).data[
        :2
    ] == b"\xff\xd8"


async def test_of_many_phones_that_open_a_link_at_once_one_succeeds(service, caller, finished, phone):
    link = await link_to(service, caller, finished.analysis_id)
    opening = phone(link.token)
    tries = [opening("Claim.Open", claim_pb.ClaimServiceOpenRequest()) for _ in range(8)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    opened = [answer for answer in answers if isinstance(answer, claim_pb.ClaimServiceOpenResponse)]
    assert len(opened) == 1
    assert {answer.code() for answer in answers if answer is not opened[0]} == {CODE.NOT_FOUND}


async def test_a_session_sees_no_other_document_of_its_tenant_and_lists_none(service, caller, finished, make_envelope):
    other = await caller.submit(make_envelope())
    holder, _ = await _opened(service, caller, finished.analysis_id)
    for another in (other.analysis_id, str(uuid.uuid4()), ""):
        for name, request in _calls(another).items():
            assert await holder.refused(name, request) is CODE.NOT_FOUND, (name, another)
    by_document = pb.AnalysisServiceGetRequest(document_id=other.document_id)
    assert await holder.refused("Analysis.Get", by_document) is CODE.NOT_FOUND


async def test_nothing_but_what_the_rules_share_can_be_called_with_a_session_or_a_link(service, caller, finished):
    holder, _ = await _opened(service, caller, finished.analysis_id)
    unopened = Phone(service.channel, (await link_to(service, caller, finished.analysis_id)).token)
    requests = {
        "Analysis.List": pb.AnalysisServiceListRequest(),
        "Analysis.Delete": pb.AnalysisServiceDeleteRequest(analysis_id=finished.analysis_id),
        "Analysis.Cancel": pb.CancelRequest(analysis_id=finished.analysis_id),
        "Analysis.Correct": pb.CorrectRequest(analysis_id=finished.analysis_id),
        "Analysis.Submit": pb.SubmitRequest(),
        "Claim.Create": claim_pb.ClaimServiceCreateRequest(analysis_id=finished.analysis_id),
        "Claim.Revoke": claim_pb.ClaimServiceRevokeRequest(analysis_id=finished.analysis_id),
        "Subscription.List": subscription_service_pb2.SubscriptionServiceListRequest(),
    }
    for name, request in requests.items():
        service_name, _, method = name.partition(".")
        rule = RULES[f"docferry.v1.{service_name}Service.{method}"]
        assert not rule.claimed
        assert not rule.opens
        assert await holder.refused(name, request) is CODE.PERMISSION_DENIED, name
    for name, request in (requests | _calls(finished.analysis_id)).items():
        assert await unopened.refused(name, request) is CODE.PERMISSION_DENIED, name


async def test_a_session_lets_a_browser_be_told_and_no_webhook(service, caller, finished):
    holder, _ = await _opened(service, caller, finished.analysis_id)
    webhook = subscription_service_pb2.SubscriptionServiceCreateRequest(
        subscription=subscription_service_pb2.Subscription(url="https://x.example/", analysis_id=finished.analysis_id)
    )
    assert await holder.refused("Subscription.Create", webhook) is CODE.PERMISSION_DENIED


async def test_what_is_taken_back_ends_at_once_with_what_its_browsers_subscribed_to(service, caller, finished, phone):
    holder, _ = await _opened(service, caller, finished.analysis_id)
    unopened = phone((await link_to(service, caller, finished.analysis_id)).token)
    await holder("Subscription.Create", _calls(finished.analysis_id)["Subscription.Create"])
    owner = phone(caller.token)
    answer = await owner("Claim.Revoke", claim_pb.ClaimServiceRevokeRequest(analysis_id=finished.analysis_id))
    assert answer.revoked == 2
    for name, request in _calls(finished.analysis_id).items():
        assert await holder.refused(name, request) is CODE.UNAUTHENTICATED, name
    assert await unopened.refused("Claim.Open", claim_pb.ClaimServiceOpenRequest()) is CODE.NOT_FOUND
    listed = await owner("Subscription.List", subscription_service_pb2.SubscriptionServiceListRequest())
    assert not listed.subscriptions


@pytest.mark.parametrize("ending", ["expired", "revoked", "opened", "deleted"])
async def test_a_link_that_is_over_is_refused(service, caller, finished, phone, ending):
    created = await link_to(service, caller, finished.analysis_id, open_within=Duration(seconds=3600))
    owner, opening = phone(caller.token), phone(created.token)
    claim_id = created.token.split("_")[1]
    database = service.server._core.database
    if ending == "expired":
        late = Claims(database, lambda: database.now() + 3601 * MICROSECONDS)
        with pytest.raises(Exception, match="leads nowhere"):
            late.open(claim_id)
        return
    if ending == "revoked":
        await owner("Claim.Revoke", claim_pb.ClaimServiceRevokeRequest(analysis_id=finished.analysis_id))
    elif ending == "opened":
        await opening("Claim.Open", claim_pb.ClaimServiceOpenRequest())
    else:
        await owner("Analysis.Delete", pb.AnalysisServiceDeleteRequest(analysis_id=finished.analysis_id))
    code = CODE.UNAUTHENTICATED if ending == "deleted" else CODE.NOT_FOUND
    assert await opening.refused("Claim.Open", claim_pb.ClaimServiceOpenRequest()) is code


async def test_a_session_ends_when_its_time_is_over(service, caller, finished):
    _, opened = await _opened(service, caller, finished.analysis_id)
    stored = Claims(service.server._core.database).find(opened.session.split("_")[1])
    now = service.server._core.database.now()
    assert stored.claim.session_valid(now)
    assert not stored.claim.session_valid(now + int(SESSION_S * MICROSECONDS))
    assert opened.expire_time.seconds == pytest.approx(now / MICROSECONDS + SESSION_S, abs=60)


@pytest.mark.parametrize("begin", ["dfl_", "dfs_"])
async def test_a_claims_token_that_nobody_made_is_refused(service, caller, finished, phone, begin):
    made = await link_to(service, caller, finished.analysis_id)
    for token in (f"{begin}0123456789ab_{'x' * 43}", begin + made.token[4:17] + "x" * 43, f"{begin}{'x' * 56}"):
        assert await phone(token).refused("Claim.Open", claim_pb.ClaimServiceOpenRequest()) is CODE.UNAUTHENTICATED
    # The link's secret is not the session's.
    swapped = "dfs_" + made.token[4:]
    get = pb.AnalysisServiceGetRequest(analysis_id=finished.analysis_id)
    assert await phone(swapped).refused("Analysis.Get", get) is CODE.UNAUTHENTICATED


async def test_a_device_makes_links_for_its_own_documents_only(service, caller, finished, phone):
    colleague = Keys(service.server._core.database).create(caller.tenant, [Scope.DEVICE], device="tablet")[1]
    own = Keys(service.server._core.database).create(caller.tenant, [Scope.DEVICE], device="kiosk")[1]
    for request, name in (
        (claim_pb.ClaimServiceCreateRequest(analysis_id=finished.analysis_id), "Claim.Create"),
        (claim_pb.ClaimServiceRevokeRequest(analysis_id=finished.analysis_id), "Claim.Revoke"),
    ):
        assert await phone(colleague).refused(name, request) is CODE.NOT_FOUND
        await phone(own)(name, request)


@pytest.mark.parametrize("seconds", [0, -1, int(MAX_OPEN_WITHIN_S) + 1])
async def test_a_link_is_open_for_some_time_and_not_for_ever(service, caller, finished, seconds):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await link_to(service, caller, finished.analysis_id, open_within=Duration(seconds=seconds))
    assert failure.value.code() is CODE.INVALID_ARGUMENT


async def test_the_links_of_one_analysis_are_bounded(service, caller, finished):
    for _ in range(MAX_CLAIMS):
        await link_to(service, caller, finished.analysis_id)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await link_to(service, caller, finished.analysis_id)
    assert failure.value.code() is CODE.RESOURCE_EXHAUSTED


async def test_no_secret_is_in_the_database(service, caller, finished):
    link = await link_to(service, caller, finished.analysis_id)
    session = (await Phone(service.channel, link.token)("Claim.Open", claim_pb.ClaimServiceOpenRequest())).session
    stored = Claims(service.server._core.database).find(link.token.split("_")[1])
    for text in (link.token, session):
        assert text.split("_", 2)[2].encode() not in stored.link_sha256 + stored.session_sha256
        assert text.split("_", 2)[2] not in str(stored)


async def test_holders_of_links_leave_the_keys_and_each_other_room_to_watch(
    service, caller, finished, make_envelope, monkeypatch
):
    monkeypatch.setattr(service.server._feed, "_max_watchers", 2 * (MAX_CLAIM_WATCHERS + 1))
    other = await caller.submit(make_envelope())
    holder, _ = await _opened(service, caller, finished.analysis_id)
    second, _ = await _opened(service, caller, other.analysis_id)
    open_calls = []

    async def watch(token, analysis_id):
        stub = analysis_service_pb2_grpc.AnalysisServiceStub(service.channel)
        wanted = pb.AnalysisServiceWatchRequest(analysis_id=analysis_id)
        call = stub.Watch(wanted, timeout=DEADLINE, metadata=call_metadata(token))
        open_calls.append(call)
        return await call.read()

    async def refused(token, analysis_id):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await watch(token, analysis_id)
        return failure.value.code()

    for _ in range(MAX_CLAIM_WATCHERS):
        assert await watch(holder.token, finished.analysis_id)
    assert await refused(holder.token, finished.analysis_id) is CODE.RESOURCE_EXHAUSTED
    assert await watch(second.token, other.analysis_id)
    # Half of the tenant's places are for keys.
    assert await refused(second.token, other.analysis_id) is CODE.RESOURCE_EXHAUSTED
    for _ in range(MAX_CLAIM_WATCHERS + 1):
        assert await watch(caller.token, finished.analysis_id)
    for call in open_calls:
        call.cancel()
