"""Submit: once and only once, and bad input gets a clear error and leaves nothing behind."""

import asyncio
import base64
import uuid

import grpc
import pytest
import zstandard

from docferry.v1 import analysis_pb2, envelope_pb2, event_pb2
from docferry.v1 import analysis_service_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")
Event = event_pb2.Event


async def test_a_submitted_envelope_comes_back_as_two_versions_and_a_succeeded_event(caller, make_envelope):
    envelope = make_envelope()
    taken = await caller.submit(envelope)
    events = await caller.events(lambda event: event.type == Event.TYPE_SUCCEEDED)
    assert [event.type for event in events] == [Event.TYPE_ACCEPTED, Event.TYPE_SUCCEEDED]
    assert [event.version for event in events] == [1, 2]
    analysis = await caller.get(taken.analysis_id)
    assert analysis.state == analysis_pb2.Analysis.STATE_SUCCEEDED
    assert [version.engine for version in analysis.versions] == ["edge", "echo"]
    line = analysis.versions[1].interpretation.document.pages[0].regions[0].lines[0]
    assert line.text == "TOTAL 9.00"
    assert analysis.document_id == envelope.document_id
    assert analysis.file_name == "receipt.jpg"


async def test_what_was_sent_is_accounted_for_byte_by_byte(caller, make_envelope, make_part, small_png):
    envelope = make_envelope(parts=[make_part(small_png)])
    analysis = await caller.submit(envelope)
    by_kind = {part.kind: part.bytes for part in analysis.traffic.parts}
    assert analysis.traffic.sent_bytes == pb.SubmitRequest(envelope=envelope).ByteSize()
    assert sum(by_kind.values()) == analysis.traffic.sent_bytes
    assert by_kind["page"] == len(small_png)
    assert by_kind["structure"] == len(envelope.structure.data) + len(envelope.structure.texts)
    assert analysis.traffic.original_bytes == 1000


async def test_the_same_request_twice_gives_the_same_analysis_and_one_event(caller, make_envelope):
    envelope = make_envelope()
    first = await caller.submit(envelope)
    await caller.finished(first.analysis_id)
    again = await caller.submit(envelope)
    assert again.analysis_id == first.analysis_id
    last = await caller.submit(make_envelope())
    events = await caller.events(lambda event: event.analysis_id == last.analysis_id)
    assert [event.analysis_id for event in events].count(first.analysis_id) == 2


async def test_many_submits_of_one_request_at_once_give_one_analysis(caller, make_envelope):
    envelope = make_envelope()
    taken = await asyncio.gather(*(caller.submit(envelope) for _ in range(8)))
    assert len({analysis.analysis_id for analysis in taken}) == 1


async def test_a_request_id_with_another_body_is_already_taken(caller, make_envelope, reason_of):
    envelope = make_envelope()
    await caller.submit(envelope)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(request_id=envelope.request_id))
    assert reason_of(failure.value) == (grpc.StatusCode.ALREADY_EXISTS, "CONFLICT")


async def test_request_ids_belong_to_a_tenant(service, make_envelope):
    envelope = make_envelope()
    one, other = service.caller(), service.caller()
    assert (await one.submit(envelope)).analysis_id != (await other.submit(envelope)).analysis_id


def _bomb() -> envelope_pb2.Payload:
    data = zstandard.ZstdCompressor(level=19).compress(b"\0" * (64 << 20))
    return envelope_pb2.Payload(encoding=envelope_pb2.ENCODING_ZSTD, data=data, decoded_size=64 << 20)


def _lying_bomb() -> envelope_pb2.Payload:
    data = zstandard.ZstdCompressor(level=19).compress(b"\0" * (64 << 20))
    return envelope_pb2.Payload(encoding=envelope_pb2.ENCODING_ZSTD, data=data, decoded_size=100)


def _no_reading() -> envelope_pb2.Payload:
    return envelope_pb2.Payload(encoding=envelope_pb2.ENCODING_IDENTITY, data=b"\xff" * 8, decoded_size=8)


INVALID = grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"structure": _bomb()}, (INVALID, "ENVELOPE_TOO_LARGE")),
        ({"structure": _lying_bomb()}, (INVALID, "INVALID_ENVELOPE")),
        ({"structure": _no_reading()}, (INVALID, "INVALID_ENVELOPE")),
        ({"structure": envelope_pb2.Payload(encoding=9, data=b"x", decoded_size=1)}, (INVALID, "INVALID_ENVELOPE")),
        ({"structure": None}, (INVALID, "INVALID_ENVELOPE")),
        ({"effort": 77}, (INVALID, "INVALID_ENVELOPE")),
        ({"route": envelope_pb2.Route(decision=77)}, (INVALID, "INVALID_ENVELOPE")),
        ({"request_id": "not-a-uuid"}, (INVALID, "INVALID_ENVELOPE")),
        ({"protocol_version": 2}, (grpc.StatusCode.FAILED_PRECONDITION, "UNSUPPORTED_VERSION")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_broken_envelope_is_refused_and_nothing_is_stored(caller, make_envelope, reason_of, changes, expected):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(**changes))
    assert reason_of(failure.value) == expected
    assert not (await caller("List", pb.AnalysisServiceListRequest())).analyses


@pytest.mark.parametrize("data", [b"this is text, not an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, b"\xff\xd8\xff"])
async def test_garbage_as_a_picture_is_refused_and_nothing_is_stored(caller, make_envelope, make_part, reason_of, data):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(parts=[make_part(data)]))
    assert reason_of(failure.value) == (INVALID, "UNREADABLE_IMAGE")
    assert not (await caller("List", pb.AnalysisServiceListRequest())).analyses


async def test_a_picture_with_too_many_pixels_is_refused_by_its_header(
    caller, make_envelope, make_part, reason_of, huge_png
):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(parts=[make_part(huge_png)]))
    assert reason_of(failure.value) == (INVALID, "IMAGE_TOO_LARGE")


async def test_a_page_number_beyond_the_limit_is_refused(caller, make_envelope, make_part, reason_of, small_png):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(parts=[make_part(small_png, page=4_000_000_000)]))
    assert reason_of(failure.value) == (INVALID, "INVALID_ENVELOPE")


async def test_an_envelope_over_the_limit_is_refused(caller, make_envelope, make_part, reason_of):
    data = bytes(1 << 20)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(parts=[make_part(data, kind=envelope_pb2.PART_KIND_ORIGINAL)]))
    assert reason_of(failure.value) == (INVALID, "ENVELOPE_TOO_LARGE")


async def test_a_message_far_over_the_limit_does_not_get_in(caller, make_envelope, make_part):
    data = bytes(3 << 20)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(parts=[make_part(data, kind=envelope_pb2.PART_KIND_ORIGINAL)]))
    assert failure.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_page_without_any_reading_reaches_the_engine(caller, make_envelope, make_part, small_png):
    part = make_part(small_png, kind=envelope_pb2.PART_KIND_ORIGINAL)
    analysis = await caller.submit(make_envelope(structure=None, parts=[part]))
    assert not analysis.versions
    done = await caller.finished(analysis.analysis_id)
    assert [version.engine for version in done.versions] == ["echo"]


@pytest.mark.parametrize(
    ("name", "request_message"),
    [
        ("Correct", pb.CorrectRequest(analysis_id=str(uuid.uuid4()))),
        ("Get", pb.AnalysisServiceGetRequest(analysis_id=str(uuid.uuid4()))),
        ("Get", pb.AnalysisServiceGetRequest()),
        ("List", pb.AnalysisServiceListRequest(page_token="%%%")),
        ("List", pb.AnalysisServiceListRequest(page_size=-1)),
        (
            "List",
            pb.AnalysisServiceListRequest(page_token=base64.urlsafe_b64encode(b"1:" + b"9" * 30 + b":x").decode()),
        ),
    ],
)
async def test_every_refusal_carries_its_reason(caller, reason_of, name, request_message):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller(name, request_message)
    code, reason = reason_of(failure.value)
    assert (code, reason) in {
        (grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED"),
        (grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
        (INVALID, "INVALID_INPUT"),
    }


async def test_ask_and_export_name_the_analysis_that_is_not_there(caller, reason_of):
    for call in (
        caller._analysis.Ask(pb.AskRequest(question="?"), metadata=(("authorization", f"Bearer {caller.token}"),)),
        caller._analysis.Export(pb.ExportRequest(), metadata=(("authorization", f"Bearer {caller.token}"),)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call.read()
        assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


async def test_a_list_is_given_page_by_page_newest_first(caller, make_envelope):
    made = [(await caller.submit(make_envelope())).analysis_id for _ in range(5)]
    seen, token = [], ""
    while True:
        page = await caller("List", pb.AnalysisServiceListRequest(page_size=2, page_token=token))
        seen += [analysis.analysis_id for analysis in page.analyses]
        assert all(not version.HasField("interpretation") for a in page.analyses for version in a.versions)
        token = page.next_page_token
        if not token:
            break
    assert seen == made[::-1]


Reason = envelope_pb2.RouteReason


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (envelope_pb2.Route(risk=float("nan")), "INVALID_ENVELOPE"),
        (envelope_pb2.Route(target_risk=float("inf")), "INVALID_ENVELOPE"),
        (envelope_pb2.Route(reasons=[Reason(value=float("-inf"))]), "INVALID_ENVELOPE"),
        (envelope_pb2.Route(reasons=[Reason(code="C" * 65)]), "ENVELOPE_TOO_LARGE"),
        (envelope_pb2.Route(reasons=[Reason(detail="d" * 501)]), "ENVELOPE_TOO_LARGE"),
        (envelope_pb2.Route(reasons=[Reason()] * 33), "ENVELOPE_TOO_LARGE"),
    ],
    ids=["risk", "target", "value", "code", "detail", "count"],
)
async def test_a_route_without_measure_is_refused(caller, make_envelope, reason_of, route, reason):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(route=route))
    assert reason_of(failure.value) == (INVALID, reason)


async def test_a_full_page_of_the_largest_routes_still_fits_a_list(caller, make_envelope):
    reason = envelope_pb2.RouteReason(code="\U0001f6a2" * 64, detail="\U0001f6a2" * 500, value=1.0)
    analysis = await caller.submit(make_envelope(route=envelope_pb2.Route(reasons=[reason] * 32)))
    assert 100 * analysis.route.ByteSize() < 16 << 20
    assert (await caller("List", pb.AnalysisServiceListRequest())).analyses[0].route == analysis.route


async def test_an_envelope_that_announces_too_much_is_refused(caller, make_envelope, make_part, reason_of):
    parts = [
        make_part(b"x", part_id=f"p{number}", kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False, size=43 << 20)
        for number in range(3)
    ]
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(make_envelope(parts=parts))
    assert reason_of(failure.value) == (INVALID, "ENVELOPE_TOO_LARGE")
    await caller.submit(make_envelope(parts=parts[:2]))


async def test_a_request_whose_analysis_was_deleted_makes_no_second_one(caller, make_envelope, reason_of):
    envelope = make_envelope()
    taken = await caller.submit(envelope)
    await caller.finished(taken.analysis_id)
    await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=taken.analysis_id))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller.submit(envelope)
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    assert not (await caller("List", pb.AnalysisServiceListRequest())).analyses
    await caller.submit(make_envelope(document_id=envelope.document_id))
