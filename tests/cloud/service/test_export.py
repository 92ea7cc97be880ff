"""Files made of a finished analysis, over gRPC."""

import json

import cv2
import grpc
import numpy as np
import pytest

from docferry.channel import call_metadata
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import envelope_pb2

pytestmark = pytest.mark.asyncio(loop_scope="module")
Format = pb.ExportRequest


async def exported(caller, analysis_id, kind, **fields):
    request = pb.ExportRequest(analysis_id=analysis_id, format=kind, **fields)
    pieces = [piece async for piece in caller._analysis.Export(request, metadata=call_metadata(caller.token))]
    return b"".join(piece.data for piece in pieces), pieces[0].media_type


async def test_a_finished_analysis_comes_as_markdown_and_json(caller, make_envelope):
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    await caller.finished(analysis_id)
    markdown, kind = await exported(caller, analysis_id, Format.FORMAT_MARKDOWN)
    assert (markdown, kind) == (b"TOTAL 9.00\n", "text/markdown; charset=utf-8")
    tree = json.loads((await exported(caller, analysis_id, Format.FORMAT_JSON))[0])
    assert tree["analysis_id"] == analysis_id
    assert tree["pages"][0]["regions"][0]["lines"][0]["text"] == "TOTAL 9.00"


async def test_a_page_that_has_not_come_yet_is_shown_blank(caller, make_envelope, make_part):
    whole = make_part(bytes(9000), inline=False)
    analysis_id = (await caller.submit(make_envelope(parts=[whole]))).analysis_id
    await caller.supply(analysis_id, whole, b"\x89PNG\r\n\x1a\n".ljust(4096, b"x"))
    html, _ = await exported(caller, analysis_id, Format.FORMAT_HTML)
    assert b"TOTAL" in html
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await exported(caller, analysis_id, Format.FORMAT_PDF)
    assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_large_file_comes_in_pieces(caller, make_envelope, make_part):
    noise = np.random.default_rng(7).integers(0, 255, (800, 600, 3), dtype=np.uint8)
    picture = cv2.imencode(".jpg", noise)[1].tobytes()
    part = make_part(picture, kind=envelope_pb2.PART_KIND_OVERVIEW)
    analysis_id = (await caller.submit(make_envelope(parts=[part]))).analysis_id
    await caller.finished(analysis_id)
    data, kind = await exported(caller, analysis_id, Format.FORMAT_PDF)
    assert kind == "application/pdf"
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    assert len(data) > 256 * 1024


async def test_pages_whose_pixels_never_came_are_refused_as_pdf(caller, make_envelope, reason_of):
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    await caller.finished(analysis_id)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await exported(caller, analysis_id, Format.FORMAT_PDF)
    assert reason_of(failure.value) == (grpc.StatusCode.FAILED_PRECONDITION, "PIXELS_UNAVAILABLE")


async def test_another_tenants_analysis_is_not_there(caller, service, make_envelope, reason_of):
    analysis_id = (await caller.submit(make_envelope())).analysis_id
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await exported(service.caller(), analysis_id, Format.FORMAT_JSON)
    assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
