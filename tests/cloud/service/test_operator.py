"""What an operator sees and does: search, the review queue, sessions, keys, figures, devices."""

import math
import time

import grpc
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration

from docferry.channel import call_metadata
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry.status import error_from_rpc
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import operator_service_pb2 as operator_pb
from docferry.v1.operator_service_pb2_grpc import OperatorServiceStub
from docferry_cloud import digest
from docferry_cloud.access.rules import Scope
from docferry_cloud.access.sessions import SESSION_S, Sessions
from docferry_cloud.schema import State, analyses
from tests.cloud.service.running import DEADLINE

pytestmark = pytest.mark.asyncio(loop_scope="module")
DOUBT_FIRST = pb.AnalysisServiceListRequest.ORDER_DOUBT_FIRST


def _reading(total: str, confidence: float) -> Reading:
    texts = (f"Total: {total}", "Invoice No: 4711", "Date: 2024-03-12")
    lines = tuple(
        Line(f"r1.l{number}", text, _place(number), 0.9, confidence=confidence if number == 1 else 0.99)
        for number, text in enumerate(texts, 1)
    )
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.6, 0.5), 0, lines=lines)
    return Reading(Document((Page(100, 200, (region,)),)), "double@1")


def _place(number: int):
    top = (number if number > 1 else 5) / 10
    return ((0.1, top), (0.6, top), (0.6, top + 0.05), (0.1, top + 0.05))


@pytest_asyncio.fixture(loop_scope="module")
async def submit(caller, make_envelope):
    """Hands a document in and waits for it."""

    async def handed_in(name="a.jpg", total="9.00", confidence=0.99, **changes):
        structure = pack_reading(_reading(total, confidence))
        envelope = make_envelope(file_name=name, structure=structure, **changes)
        return await caller.finished((await caller.submit(envelope)).analysis_id)

    return handed_in


@pytest.fixture
def operator(service):
    stub = OperatorServiceStub(service.channel)

    async def call(name, token, **fields):
        request = getattr(operator_pb, f"{name}Request")(**fields)
        return await getattr(stub, name)(request, timeout=DEADLINE, metadata=call_metadata(token))

    return call


@pytest.fixture
def keys(service):
    return service.server._keys


async def _ids(caller, **fields):
    answer = await caller("List", pb.AnalysisServiceListRequest(**fields))
    return [analysis.analysis_id for analysis in answer.analyses], answer


async def test_a_search_finds_every_word_wherever_it_stands(caller, submit):
    one = await submit("Ärger Straße 7.jpg", "４７１１.00")
    other = await submit("invoice_50%.pdf", "12.00")
    for query, found in (
        ("straSSE", [one]),
        ("ärger 4711", [one]),
        ("ärger 12.00", []),
        ("50%", [other]),
        ("_50", [other]),
        ("invoice__", []),
        (one.document_id[:13].upper(), [one]),
        ("kiosk", [other, one]),
        ("", [other, one]),
        ("nothing like it", []),
    ):
        assert (await _ids(caller, query=query))[0] == [each.analysis_id for each in found], query


async def test_lists_tell_of_each_without_its_content(caller, submit):
    done = await submit("a.jpg", "90000.00", 0.5)
    (listed,) = (await _ids(caller))[1].analyses
    assert (listed.digest.device, listed.digest.pages, listed.digest.doubts) == ("kiosk", 1, 2)
    (total,) = (f for f in done.versions[-1].interpretation.document.fields if f.name == "total")
    expected = (5.0 * (1 - total.confidence) + 0.2 * 0.5) * (1 + math.log10(90001))
    assert listed.digest.weight == pytest.approx(expected, rel=0.02)
    assert not done.HasField("digest")
    assert [version.version for version in listed.versions] == [1, 2]
    assert not any(version.HasField("interpretation") for version in listed.versions)


async def test_a_route_and_a_device_choose_too(caller, service, submit, make_envelope):
    route = envelope_pb2.Route(decision=envelope_pb2.ROUTE_DECISION_CROPS, risk=0.25)
    crops = await submit(route=route)
    await submit()
    assert (await _ids(caller, routes=[envelope_pb2.ROUTE_DECISION_CROPS]))[0] == [crops.analysis_id]
    tablet = await service.colleague(caller).submit(make_envelope())
    assert (await _ids(caller, device="tablet"))[0] == [tablet.analysis_id]


@pytest.mark.parametrize("fields", [{"query": "x" * 201}, {"routes": [99]}])
async def test_what_cannot_be_searched_for_is_refused(caller, fields, reason_of):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await _ids(caller, **fields)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_the_review_queue_begins_with_what_weighs_most_and_loses_what_is_settled(caller, submit):
    small, sure, large = await submit(total="9.00", confidence=0.6), await submit(), await submit("b", "9999.00", 0.6)
    queue, answer = await _ids(caller, order=DOUBT_FIRST, page_size=1)
    assert queue == [large.analysis_id]
    rest, _ = await _ids(caller, order=DOUBT_FIRST, page_size=1, page_token=answer.next_page_token)
    assert rest == [small.analysis_id]
    assert sure.analysis_id not in (await _ids(caller, order=DOUBT_FIRST))[0]
    right = pb.LineCorrection(line_id="r1.l1", text="Total: 9999.00")
    fields = large.versions[-1].interpretation.document.fields
    await caller("Correct", pb.CorrectRequest(analysis_id=large.analysis_id, version=2, lines=[right], fields=fields))
    assert (await _ids(caller, order=DOUBT_FIRST))[0] == [small.analysis_id]


async def test_a_digest_goes_with_its_analysis(caller, service, submit):
    done = await submit("gone.jpg")
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=done.analysis_id))
    assert (await _ids(caller, query="gone"))[0] == []


async def test_a_session_stands_for_the_key_until_it_is_closed(service, operator, keys):
    _, key = keys.create("shop", [Scope.READ])
    opened = await operator("OpenSession", key)
    assert opened.expire_time.seconds == pytest.approx(time.time() + SESSION_S, abs=60)
    told = await operator("GetSession", opened.token)
    assert (told.tenant, told.who, list(told.scopes), told.open) == ("shop", key.split("_")[1], ["read"], False)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await operator("CreateKey", opened.token)
    assert failure.value.code() is grpc.StatusCode.PERMISSION_DENIED
    await operator("CloseSession", opened.token)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await operator("GetSession", opened.token)
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert (await operator("GetSession", key)).who


async def test_a_session_cannot_prolong_itself(operator, caller, reason_of):
    opened = await operator("OpenSession", caller.token)
    assert (await operator("GetSession", opened.token)).tenant == caller.tenant
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await operator("OpenSession", opened.token)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_a_session_ends_with_its_key_and_with_its_time(service, operator, keys, monkeypatch):
    monkeypatch.setattr("docferry_cloud.access.gate.REMEMBERED_S", -1.0)
    database = service.server._core.database
    key, text = keys.create("shop", [Scope.ADMIN])
    over, _ = Sessions(database, lambda: database.now() - (SESSION_S + 1) * 1_000_000).open(key.key_id)
    opened = (await operator("OpenSession", text)).token
    assert (await operator("GetSession", opened)).tenant == "shop"
    keys.revoke(key.key_id)
    wrong = f"{opened[:-1]}{'A' if opened[-1] != 'A' else 'B'}"
    messages = set()
    for token in (over, opened, wrong, f"dfo_{'0' * 16}_{'x' * 43}"):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await operator("GetSession", token)
        messages.add(error_from_rpc(failure.value).reason)
    assert len(messages) == 1
    service.server._core.retention.expire()
    assert Sessions(database).find(over.split("_")[1]) is None


async def test_an_operator_issues_and_revokes_keys_of_its_own_tenant_only(service, operator, keys):
    _, admin = keys.create("shop", [Scope.ADMIN])
    foreign, _ = keys.create("elsewhere", [Scope.ADMIN])
    wish = operator_pb.Key(name="till", device="till-1", scopes=["device"])
    made = await operator("CreateKey", admin, key=wish, valid_for=Duration(seconds=86400))
    assert (await operator("GetSession", made.secret)).tenant == "shop"
    assert made.key.expire_time.seconds - made.key.create_time.seconds == 86400
    listed = (await operator("ListKeys", admin)).keys
    assert listed[0].key_id == made.key.key_id
    assert listed[0].valid
    assert foreign.key_id not in {key.key_id for key in listed}
    taken = await operator("RevokeKey", admin, key_id=made.key.key_id)
    assert taken.key.revoke_time.seconds
    assert not taken.key.valid
    for key_id in (foreign.key_id, "f" * 12):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await operator("RevokeKey", admin, key_id=key_id)
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND
    assert keys.find(foreign.key_id).key.revoke_time is None
    await service.server._trail.flush()
    entries = service.server._trail.read("shop", 0, 100)
    recorded = {(entry.rpc, entry.analysis_id) for entry in entries}
    assert {("OperatorService.CreateKey", made.key.key_id), ("OperatorService.RevokeKey", made.key.key_id)} <= recorded


@pytest.mark.parametrize("wish", [{"scopes": ["root"]}, {"scopes": []}, {"scopes": ["device"]}, {"name": "a b"}])
async def test_a_key_that_cannot_be_is_refused(operator, keys, wish, reason_of):
    _, admin = keys.create("shop", [Scope.ADMIN])
    key = operator_pb.Key(**({"scopes": ["read"]} | wish))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await operator("CreateKey", admin, key=key)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_a_token_of_the_settings_makes_no_key_that_would_outlive_it(operator, caller):
    session = (await operator("OpenSession", caller.token)).token
    for text in (caller.token, session):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await operator("CreateKey", text, key=operator_pb.Key(scopes=["read"]))
        assert failure.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_figures_add_up_by_route_and_by_day(caller, operator, submit):
    decisions = (envelope_pb2.ROUTE_DECISION_STRUCTURE, envelope_pb2.ROUTE_DECISION_PAGE)
    for decision in (*decisions, decisions[0]):
        route = envelope_pb2.Route(decision=decision, risk=0.1 if decision == decisions[0] else 0.4)
        await submit(route=route, original_bytes=1000, confidence=0.5)
    figures = await operator("GetFigures", caller.token)
    assert [(route.decision, route.documents, route.pages) for route in figures.routes] == [
        (decisions[0], 2, 2),
        (decisions[1], 1, 1),
    ]
    assert figures.routes[0].original_bytes == 2000
    assert 0 < figures.routes[0].sent_bytes < 2000
    assert figures.routes[0].risk == pytest.approx(0.1)
    # Midnight may have passed meanwhile.
    assert sum(day.documents for day in figures.days) == 3
    assert sum(day.escalated * day.documents for day in figures.days) == pytest.approx(1)
    assert {day.doubts for day in figures.days} == {2.0}
    assert sum(day.risk * day.documents for day in figures.days) == pytest.approx(0.6)
    for days in (-1, 91):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await operator("GetFigures", caller.token, days=days)
        assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_what_people_settle_becomes_a_curve_of_their_tenant_alone(service, caller, operator, submit):
    for text, confidence in (("Total: 9.00", 0.5), ("Total: 9.50", 0.25)):
        done = await submit(confidence=confidence)
        line = pb.LineCorrection(page=0, line_id="r1.l1", text=text)
        await caller(
            "Correct", pb.CorrectRequest(analysis_id=done.analysis_id, version=done.versions[-1].version, lines=[line])
        )
    figures = await operator("GetFigures", caller.token)
    assert (figures.reviewed_lines, figures.reviewed_documents) == (2, 2)
    points = [(point.coverage, point.risk) for point in figures.risk_curve]
    assert points == [(0.5, 0.0), (1.0, 0.5)]
    assert figures.risk_curve[1].predicted == pytest.approx(0.625, abs=0.01)
    other = await operator("GetFigures", service.caller().token)
    assert (other.reviewed_lines, list(other.risk_curve)) == (0, [])


async def test_devices_are_those_with_documents_and_those_with_keys(service, caller, operator, keys, submit):
    done = await submit()
    keys.create(caller.tenant, [Scope.DEVICE], device="new-kiosk")
    keys.create(caller.tenant, [Scope.READ], name="no-device")
    first, second = (await operator("ListDevices", caller.token)).devices
    assert (first.device, first.documents, first.failed) == ("kiosk", 1, 0)
    assert first.last_seen_time == done.create_time
    assert (second.device, second.HasField("last_seen_time")) == ("new-kiosk", False)
    failed = await submit()
    database = service.server._core.database
    with database.write() as connection:
        of_failed = analyses.update().where(analyses.c.analysis_id == failed.analysis_id)
        connection.execute(of_failed.values(state=State.FAILED))
    first, second = (await operator("ListDevices", caller.token)).devices
    assert (first.documents, first.failed, second.failed) == (2, 1, 0)


async def test_a_digest_survives_what_engines_say():
    content = analysis_pb2.Interpretation(summary="a\0b" * 200)
    content.document.fields.add(name="total", value="x", normalized="inf", confidence=0.0)
    content.document.fields.add(name="other", value="Ｘ", normalized="Ｘ", confidence=0.95)
    content.document.pages.add().regions.add().lines.add(text="uncalibrated")
    made = digest.digest(content.SerializeToString())
    assert len(made.headline) == 200
    assert "\0" not in made.headline + made.words
    assert (made.doubts, made.weight, made.pages) == (1, 5.0, 1)
    assert digest.digest(b"") == digest.Digest()
