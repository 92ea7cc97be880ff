"""GET /r/{analysis_id}/pages/{page}: the page to look at. Where no pixels are here, its text on a blank sheet."""

from __future__ import annotations

from html import escape

import grpc.aio
from google.rpc import code_pb2
from starlette.requests import Request
from starlette.responses import Response

from docferry.document import Page
from docferry.errors import InputError
from docferry.v1 import analysis_service_pb2 as pb
from docferry.wire import document_from_proto
from docferry_cloud.gateway.asking import fill
from docferry_cloud.gateway.link import Link, Metadata, metadata_of, while_connected
from docferry_cloud.gateway.problems import rpc_status
from docferry_cloud.gateway.routes import SERVICES
from docferry_cloud.gateway.streams import first_of, rest_of

LONGER_SIDE = 1000
"""Pixels: as sharp as a phone shows it, and small enough to come with the page."""
_METHODS = SERVICES["AnalysisService"].methods_by_name
_SAFE = {"content-security-policy": "default-src 'none'; sandbox", "content-disposition": "inline"}


async def sheet(request: Request, link: Link) -> Response:
    """The picture: JPEG of what was photographed, or SVG drawn from what was read."""
    wanted, metadata = pb.GetPageRequest(longer_side=LONGER_SIDE), metadata_of(request)
    fill(wanted, {name: request.path_params[name] for name in ("analysis_id", "page")})
    try:
        data, kind = await while_connected(request, _photographed(link, wanted, metadata)), "image/jpeg"
    except grpc.aio.AioRpcError as failure:
        if rpc_status(failure).code != code_pb2.FAILED_PRECONDITION:
            raise
        data, kind = await while_connected(request, _drawn(link, wanted, metadata)), "image/svg+xml"
    return Response(data, media_type=kind, headers=_SAFE)


async def _photographed(link: Link, wanted: pb.GetPageRequest, metadata: Metadata) -> bytes:
    call = link.stream(_METHODS["GetPage"], wanted, metadata)
    try:
        return b"".join([piece.data async for piece in rest_of(await first_of(call), call)])
    finally:
        call.cancel()


async def _drawn(link: Link, wanted: pb.GetPageRequest, metadata: Metadata) -> bytes:
    get = pb.AnalysisServiceGetRequest(analysis_id=wanted.analysis_id)
    answer = await link.unary(_METHODS["Get"], get, metadata)
    assert isinstance(answer, pb.AnalysisServiceGetResponse)
    versions = answer.analysis.versions
    pages = document_from_proto(versions[-1].interpretation.document).pages if versions else ()
    if wanted.page >= len(pages):
        raise InputError(f"there is no page {wanted.page + 1}", remedy="the document has fewer", field="page")
    return drawn(pages[wanted.page])


def drawn(page: Page) -> bytes:
    """A page's lines as text where they stand, on white."""
    width, height = max(1, page.width), max(1, page.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/><g font-family="sans-serif" fill="#222">',
    ]
    for line in page.lines:
        (x0, y0), (x1, _), _, (_, y3) = line.polygon
        size = max(1.0, abs(y3 - y0) * height * 0.8)
        place = f'x="{x0 * width:.1f}" y="{y3 * height - size * 0.2:.1f}" font-size="{size:.1f}"'
        room = max(1.0, abs(x1 - x0) * width)
        parts.append(f'<text {place} textLength="{room:.1f}" lengthAdjust="spacingAndGlyphs">{_text(line.text)}</text>')
    return "".join([*parts, "</g></svg>"]).encode()


def _text(text: str) -> str:
    """Text as XML has it: control characters have no place there, not even escaped."""
    return escape("".join(char if char >= " " and char not in "\ufffe\uffff" else " " for char in text))
