"""Who may call what, rpc by rpc, with real keys over a real socket."""

import time
import uuid
from dataclasses import dataclass
from statistics import median

import grpc
import pytest
import pytest_asyncio
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc

from docferry.channel import call_metadata
from docferry.schema_filling import value_of
from docferry.status import error_from_rpc
from docferry.v1 import (
    analysis_pb2,
    analysis_service_pb2,
    claim_service_pb2,
    device_service_pb2,
    document_pb2,
    operator_service_pb2,
    subscription_service_pb2,
)
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.access.gate import REMEMBERED_S
from docferry_cloud.access.keys import Keys
from docferry_cloud.access.rules import RULES, Scope
from docferry_cloud.health import MOST_WATCHERS

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEADLINE = 20.0
CONTRACTS = (
    analysis_service_pb2,
    claim_service_pb2,
    device_service_pb2,
    operator_service_pb2,
    subscription_service_pb2,
)
METHODS = {
    method.full_name: method
    for contract in CONTRACTS
    for service in contract.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
CODE = grpc.StatusCode


@dataclass
class Service:
    channel: grpc.aio.Channel
    server: object
    keys: Keys

    async def call(self, name: str, key: str, request=None):
        """The first answer to a call, whichever kind it is."""
        method = METHODS[name]
        path = f"/{method.containing_service.full_name}/{method.name}"
        kind = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        ask = kind(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        message = GetMessageClass(method.input_type)() if request is None else request
        call = ask(message, timeout=DEADLINE, metadata=call_metadata(key))
        if not method.server_streaming:
            return await call
        answer = await call.read()
        call.cancel()
        return answer

    async def refusal(self, name: str, key: str, request=None):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await self.call(name, key, request)
        return failure.value

    def key(self, *scopes: Scope, tenant: str = "shop", device: str = "", days: float | None = None) -> str:
        return self.keys.create(tenant, scopes, device=device, days=days)[1]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory, running, database_url):
    async with running(tmp_path_factory.mktemp("cloud"), database=database_url()) as server:
        yield Service(server.channel, server, Keys(server.server._core.database))


async def test_every_rpc_of_the_contract_has_a_rule_and_nothing_else_has():
    assert set(RULES) == set(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_a_key_that_is_no_longer_or_never_was_valid_is_refused_in_the_same_words(service, name):
    everything = dict.fromkeys(Scope)
    revoked = service.key(*everything, device="kiosk")
    service.keys.revoke(revoked.split("_")[1])
    expired = service.key(*everything, device="kiosk", days=1e-9)
    valid = service.key(*everything, device="kiosk")
    given = [revoked, expired, valid[:-1] + ("A" if valid[-1] != "A" else "B"), "dfk_0123456789ab_" + "x" * 43, "word"]
    refusals = [await service.refusal(name, key) for key in given]
    assert {(refusal.code(), refusal.details()) for refusal in refusals} == {
        (CODE.UNAUTHENTICATED, refusals[0].details())
    }
    assert (await service.refusal(name, "")).code() is CODE.UNAUTHENTICATED


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_a_valid_key_without_the_scope_is_told_which_it_lacks(service, name):
    for scope in set(Scope) - RULES[name].scopes:
        error = error_from_rpc(await service.refusal(name, service.key(scope, device="kiosk")))
        assert error.code == "FORBIDDEN"
        assert all(wanted in error.remedy for wanted in RULES[name].scopes)


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_a_key_with_one_of_the_scopes_gets_past_the_gate(service, name):
    for scope in RULES[name].scopes:
        try:
            await service.call(name, service.key(scope, device="kiosk"))
        except grpc.aio.AioRpcError as failure:
            assert failure.code() not in {CODE.UNAUTHENTICATED, CODE.PERMISSION_DENIED}, failure


def _of(analysis_id: str):
    box = document_pb2.Box(x0=0.1, y0=0.1, x1=0.2, y1=0.2)
    line = pb.LineCorrection(line_id="r1.l1", text="x")
    return {
        "Get": pb.AnalysisServiceGetRequest(analysis_id=analysis_id),
        "Supply": pb.SupplyRequest(analysis_id=analysis_id, part_id="p1", total_size=1, sha256=b"0" * 32, data=b"x"),
        "Cancel": pb.CancelRequest(analysis_id=analysis_id),
        "Delete": pb.AnalysisServiceDeleteRequest(analysis_id=analysis_id),
        "RequestPart": pb.RequestPartRequest(analysis_id=analysis_id, box=box, scale=1.0),
        "GetPart": pb.GetPartRequest(analysis_id=analysis_id, part_id="p1"),
        "GetPage": pb.GetPageRequest(analysis_id=analysis_id),
        "Create": claim_service_pb2.ClaimServiceCreateRequest(analysis_id=analysis_id),
        "Revoke": claim_service_pb2.ClaimServiceRevokeRequest(analysis_id=analysis_id),
        "Ask": pb.AskRequest(analysis_id=analysis_id, question="total?"),
        "Fill": pb.FillRequest(analysis_id=analysis_id, schema=value_of(["total?"])),
        "Correct": pb.CorrectRequest(analysis_id=analysis_id, version=1, lines=[line]),
        "Export": pb.ExportRequest(analysis_id=analysis_id, format=pb.ExportRequest.FORMAT_JSON),
        "Refuse": device_service_pb2.RefuseRequest(
            analysis_id=analysis_id, part_id="p1", reason=analysis_pb2.Notice(code="POLICY", detail="no")
        ),
    }


@pytest.mark.parametrize("name", sorted(_of("")))
async def test_what_is_anothers_and_what_never_was_are_refused_in_the_same_words(service, make_envelope, name):
    owner = service.key(Scope.SUBMIT, tenant="owner")
    service_of = {"Refuse": "DeviceService", "Create": "ClaimService", "Revoke": "ClaimService"}
    full = f"docferry.v1.{service_of.get(name, 'AnalysisService')}.{name}"
    taken = await service.call("docferry.v1.AnalysisService.Submit", owner, pb.SubmitRequest(envelope=make_envelope()))
    stranger, never = service.key(*Scope, tenant="stranger", device="kiosk"), str(uuid.uuid4())
    refusals = [await service.refusal(full, stranger, _of(one)[name]) for one in (taken.analysis.analysis_id, never)]
    assert {refusal.code() for refusal in refusals} == {CODE.NOT_FOUND}
    words = [refusals[0].details().replace(taken.analysis.analysis_id, ""), refusals[1].details().replace(never, "")]
    assert words[0] == words[1]


async def test_how_long_a_refusal_takes_says_nothing_about_what_is_anothers(service, make_envelope):
    owner, stranger = service.key(Scope.SUBMIT, tenant="owner"), service.key(Scope.READ, tenant="stranger")
    submit = pb.SubmitRequest(envelope=make_envelope())
    there = (await service.call("docferry.v1.AnalysisService.Submit", owner, submit)).analysis.analysis_id
    took: dict[str, list[float]] = {there: [], str(uuid.uuid4()): []}
    for _ in range(60):
        for analysis_id, times in took.items():
            before = time.perf_counter()
            await service.refusal("docferry.v1.AnalysisService.Get", stranger, _of(analysis_id)["Get"])
            times.append(time.perf_counter() - before)
    first, second = (median(times) for times in took.values())
    # A look at the row's content would cost a multiple; noise does not.
    assert 0.5 < first / second < 2


async def test_the_same_request_with_another_body_and_one_that_is_too_large_are_refused(service, make_envelope):
    name, key = "docferry.v1.AnalysisService.Submit", service.key(Scope.SUBMIT)
    envelope = make_envelope()
    await service.call(name, key, pb.SubmitRequest(envelope=envelope))
    envelope.file_name = "another.jpg"
    refusal = await service.refusal(name, key, pb.SubmitRequest(envelope=envelope))
    assert refusal.code() is CODE.ALREADY_EXISTS
    large = make_envelope()
    large.structure.data = bytes(2 << 20)
    assert (await service.refusal(name, key, pb.SubmitRequest(envelope=large))).code() in {
        CODE.INVALID_ARGUMENT,
        CODE.RESOURCE_EXHAUSTED,
    }


async def test_a_stream_ends_soon_after_its_key_is_revoked(service, until):
    key = service.key(Scope.READ)
    call = service.server.channel.unary_stream(
        "/docferry.v1.AnalysisService/Watch",
        request_serializer=pb.AnalysisServiceWatchRequest.SerializeToString,
        response_deserializer=pb.AnalysisServiceWatchResponse.FromString,
    )(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE, metadata=call_metadata(key))
    await call.read()
    service.keys.revoke(key.split("_")[1])
    before = time.monotonic()
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await _drained(call)
    assert failure.value.code() is CODE.UNAUTHENTICATED
    assert time.monotonic() - before < REMEMBERED_S * 2 + 2


async def _drained(call) -> None:
    while await call.read():
        pass


async def test_every_call_with_a_key_and_every_refusal_stands_in_the_audit_log_without_content(
    service, make_envelope, until
):
    key = service.key(Scope.SUBMIT, tenant="audited")
    taken = await service.call("docferry.v1.AnalysisService.Submit", key, pb.SubmitRequest(envelope=make_envelope()))
    await service.refusal("docferry.v1.AnalysisService.List", key)
    await service.refusal("docferry.v1.AnalysisService.Get", "dfk_feedfeedfeed_" + "x" * 43)
    trail = service.server.server._trail

    def entries():
        found = [entry for entry in trail.read() if entry.who in {key.split("_")[1], "feedfeedfeed"}]
        return found if len(found) == 3 else None

    await until(entries)
    shown = [(entry.tenant, entry.rpc, entry.analysis_id, entry.outcome) for entry in entries()]
    assert shown == [
        ("audited", "AnalysisService.Submit", taken.analysis.analysis_id, "OK"),
        ("audited", "AnalysisService.List", "", "FORBIDDEN"),
        ("", "AnalysisService.Get", "", "UNAUTHENTICATED"),
    ]
    assert all("127.0.0.1" in entry.peer and entry.time > 0 for entry in entries())
    assert not any(key.split("_", 2)[2] in str(entry) for entry in trail.read())


async def test_the_use_of_a_key_is_noted(service, until):
    key = service.key(Scope.READ)
    await service.call("docferry.v1.AnalysisService.List", key)
    assert service.keys.find(key.split("_")[1]).key.last_use


async def test_a_caller_who_leaves_in_the_middle_is_recorded_and_harms_nobody(service, until):
    key = service.key(Scope.READ, tenant="leaver")
    watch = service.server.channel.unary_stream(
        "/docferry.v1.AnalysisService/Watch",
        request_serializer=pb.AnalysisServiceWatchRequest.SerializeToString,
        response_deserializer=pb.AnalysisServiceWatchResponse.FromString,
    )
    for _ in range(5):
        call = watch(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE, metadata=call_metadata(key))
        await call.read()
        call.cancel()
    trail = service.server.server._trail
    await until(lambda: [entry.outcome for entry in trail.read("leaver")] == ["LEFT"] * 5)
    assert all("127.0.0.1" in entry.peer for entry in trail.read("leaver"))


async def test_a_key_that_only_submits_learns_the_state_and_never_the_content(service, make_envelope, until):
    name, envelope = "docferry.v1.AnalysisService.", make_envelope()
    submits, reads = service.key(Scope.SUBMIT, tenant="pair"), service.key(Scope.READ, tenant="pair")
    taken = (await service.call(name + "Submit", submits, pb.SubmitRequest(envelope=envelope))).analysis
    analysis_id = taken.analysis_id
    whole = (await service.call(name + "Get", reads, _of(analysis_id)["Get"])).analysis
    assert whole.versions[0].interpretation.document.pages
    for answer in (
        taken,
        (await service.call(name + "Submit", submits, pb.SubmitRequest(envelope=envelope))).analysis,
        (await service.call(name + "Cancel", submits, _of(analysis_id)["Cancel"])).analysis,
    ):
        assert answer.analysis_id == analysis_id
        assert not any(version.interpretation.document.pages for version in answer.versions)


async def test_an_id_that_no_database_stores_is_recorded_all_the_same(service, until):
    key = service.key(Scope.READ, tenant="nul")
    await service.refusal("docferry.v1.AnalysisService.Get", key, pb.AnalysisServiceGetRequest(analysis_id="a\0b"))
    trail = service.server.server._trail
    await until(lambda: [entry.analysis_id for entry in trail.read("nul")] == ["a\ufffdb"])


async def test_a_devices_key_sees_the_analyses_of_its_own_device_alone(service, make_envelope):
    name = "docferry.v1.AnalysisService."
    mine = service.key(Scope.DEVICE, tenant="devices", device="kiosk-1")
    other = service.key(Scope.DEVICE, tenant="devices", device="kiosk-2")
    reader = service.key(Scope.READ, tenant="devices")
    submit = pb.SubmitRequest(envelope=make_envelope())
    analysis_id = (await service.call(name + "Submit", mine, submit)).analysis.analysis_id
    for key in (mine, reader):
        assert (await service.call(name + "Get", key, _of(analysis_id)["Get"])).analysis.analysis_id == analysis_id
    assert (await service.refusal(name + "Get", other, _of(analysis_id)["Get"])).code() is CODE.NOT_FOUND


async def test_health_is_answered_to_everyone_and_its_streams_are_bounded(service):
    stub = health_pb2_grpc.HealthStub(service.channel)
    calls = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE) for _ in range(MOST_WATCHERS)]
    for call in calls:
        await call.read()
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stub.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE).read()
    assert failure.value.code() is CODE.RESOURCE_EXHAUSTED
    assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE)).status
    for call in calls:
        call.cancel()
