"""One document: the page with what was read drawn over it, versions, text, tables, fields with their places."""

from __future__ import annotations

import asyncio
import difflib
import itertools
from collections.abc import Sequence
from typing import Any

import grpc.aio
from starlette.responses import RedirectResponse, Response

from docferry.errors import InputError, NotFound
from docferry.v1 import analysis_pb2, document_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.console import session
from docferry_cloud.console.inbox import row
from docferry_cloud.console.overlay import level, overlay
from docferry_cloud.console.render import enum_word
from docferry_cloud.console.visit import Visit
from docferry_cloud.gateway.problems import reason_and_remedy, rpc_status
from docferry_cloud.gateway.rich_text import rendered
from docferry_cloud.gateway.streams import Stream, first_of, rest_of

EXPORTS = ("markdown", "json", "csv", "xlsx", "html", "pdf")
_LARGEST_VERSION = 1 << 31
_SIDES = {"page": 1100, "review": 2000, "full": 3000}
"""Pixels of a page's longer side: on a page of the console, and by itself."""
_MOST_ALIGNED = 250_000
"""Lines of one side times lines of the other up to which they are aligned: what that takes grows with this product."""
_NO_PIXELS = "PIXELS_UNAVAILABLE"


def url(analysis_id: str) -> str:
    """Where a document's page is."""
    return f"{session.PATH}/analyses/{analysis_id}"


async def document(visit: Visit) -> Response:
    """The document with its first page; the others are asked for as they come into sight."""
    analysis, version = await read(visit)
    content = version.interpretation
    return visit.page(
        "document.html",
        title=analysis.file_name or analysis.document_id,
        analysis=analysis,
        about=row(analysis),
        url=url(analysis.analysis_id),
        version=version,
        versions=await _heads(visit, analysis),
        pages=len(content.document.pages),
        page=await asyncio.to_thread(_page_values, analysis, version, 0) if content.document.pages else None,
        fields=[_field(field) for field in content.document.fields],
        content=content,
        failure=analysis.error.message if analysis.state == analysis_pb2.Analysis.STATE_FAILED else "",
        reasons=[(reason.code, reason.detail) for reason in analysis.route.reasons],
        exports=EXPORTS,
    )


async def page(visit: Visit) -> Response:
    """One page: as a piece that the document's page takes in, or by itself where no script runs."""
    analysis, version = await read(visit)
    values = await asyncio.to_thread(_page_values, analysis, version, _page_number(visit))
    template = "page_piece.html" if "piece" in visit.request.query_params else "page.html"
    return visit.page(
        template,
        title=f"Page {values['number'] + 1} of {analysis.file_name}",
        url=url(analysis.analysis_id),
        version=version,
        page=values,
        pages=len(version.interpretation.document.pages),
    )


async def picture(visit: Visit) -> Response:
    """The page's picture; 204 where none is here, so that a page without pixels is no error of its own."""
    side = _SIDES.get(visit.request.query_params.get("size", "page"), _SIDES["page"])
    request = pb.GetPageRequest(
        analysis_id=visit.request.path_params["analysis_id"], page=_page_number(visit), longer_side=side
    )
    call = visit.stream("AnalysisService.GetPage", request)
    try:
        data = [piece.data async for piece in rest_of(await first_of(call), call)]
    except grpc.aio.AioRpcError as failure:
        if reason_and_remedy(rpc_status(failure))[0] == _NO_PIXELS:
            return Response(status_code=204)
        raise
    finally:
        call.cancel()
    return Response(b"".join(data), media_type="image/jpeg")


async def text(visit: Visit) -> Response:
    """The document's text, from its Markdown: as it is meant, and as it is written."""
    analysis, version = await read(visit)
    return visit.page(
        "text.html",
        title=f"Text of {analysis.file_name}",
        url=url(analysis.analysis_id),
        version=version,
        markdown=version.interpretation.markdown,
        text=await asyncio.to_thread(rendered, version.interpretation.markdown),
    )


async def compare(visit: Visit) -> Response:
    """Two versions side by side: fields, and the lines of one page aligned by what they say."""
    analysis_id = visit.request.path_params["analysis_id"]
    query = visit.request.query_params
    heads = await _heads(visit, None)
    if not heads:
        raise NotFound("there is no version to compare", remedy="wait until the document has been read")
    newest = heads[-1].version
    right = _whole(query.get("right", ""), newest)
    left = _whole(query.get("left", ""), max(1, right - 1))
    both = [(await _get(visit, analysis_id, number)).versions[-1] for number in (left, right)]
    number = _whole(query.get("page", ""), 0)
    pages = [list(version.interpretation.document.pages) for version in both]
    lines = [_texts(of[number]) if number < len(of) else [] for of in pages]
    fields = [[f"{f.name}: {f.value}" for f in version.interpretation.document.fields] for version in both]
    return visit.page(
        "compare.html",
        title=f"Versions {left} and {right}",
        url=url(analysis_id),
        versions=heads,
        both=both,
        fields=await asyncio.to_thread(_beside, fields),
        lines=await asyncio.to_thread(_beside, lines),
        number=number,
        pages=max(len(of) for of in pages),
    )


async def fetch_page(visit: Visit) -> Response:
    """Ask the device for a page that is not here."""
    await visit.form()
    analysis_id, number = visit.request.path_params["analysis_id"], _page_number(visit)
    request = pb.RequestPartRequest(analysis_id=analysis_id, page=number)
    await visit.call("AnalysisService.RequestPart", request, pb.RequestPartResponse)
    return RedirectResponse(f"{url(analysis_id)}#p{number}", 303)


async def export(visit: Visit) -> Response:
    """The document as a file to keep."""
    query, analysis_id = visit.request.query_params, visit.request.path_params["analysis_id"]
    name = query.get("format", "")
    if name not in EXPORTS:
        raise InputError(f"there is no format {name[:20]!r}", remedy=f"choose one of {', '.join(EXPORTS)}")
    kind = pb.ExportRequest.Format.Value(f"FORMAT_{name.upper()}")
    wanted = pb.ExportRequest(analysis_id=analysis_id, format=kind, version=_whole(query.get("version", ""), 0))
    call = visit.stream("AnalysisService.Export", wanted)
    first = await first_of(call)
    ending = "md" if name == "markdown" else name
    headers = {"content-disposition": f'attachment; filename="{analysis_id}.{ending}"'}

    async def body() -> Any:
        async for piece in rest_of(first, call):
            yield piece.data

    return Stream(body(), first.media_type if first else "application/octet-stream", call.cancel, headers)


async def read(visit: Visit) -> tuple[analysis_pb2.Analysis, analysis_pb2.Version]:
    """The analysis with the version that is asked for, or the newest; an empty one where nothing was read yet.

    Raises:
        grpc.aio.AioRpcError: There is none such.
    """
    wanted = _whole(visit.request.query_params.get("version", ""), 0)
    analysis = await _get(visit, visit.request.path_params["analysis_id"], wanted)
    return analysis, analysis.versions[-1] if analysis.versions else analysis_pb2.Version()


async def _get(visit: Visit, analysis_id: str, version: int) -> analysis_pb2.Analysis:
    request = pb.AnalysisServiceGetRequest(analysis_id=analysis_id, version=version)
    return (await visit.call("AnalysisService.Get", request, pb.AnalysisServiceGetResponse)).analysis


async def _heads(visit: Visit, analysis: analysis_pb2.Analysis | None) -> Sequence[analysis_pb2.Version]:
    """All versions of the analysis; what was read of one version alone does not name the others."""
    if analysis is not None and not visit.request.query_params.get("version"):
        return analysis.versions
    return (await _get(visit, visit.request.path_params["analysis_id"], 0)).versions


def _page_number(visit: Visit) -> int:
    return _whole(visit.request.path_params["page"], _LARGEST_VERSION)


def _page_values(analysis: analysis_pb2.Analysis, version: analysis_pb2.Version, number: int) -> dict[str, Any]:
    pages = version.interpretation.document.pages
    if number >= len(pages):
        raise NotFound(f"there is no page {number + 1}", remedy=f"the document has {len(pages)}")
    drawn = overlay(pages[number])
    return {
        "number": number,
        "drawn": drawn,
        "lines": sum(1 for _ in drawn.lines),
        "quality": pages[number].quality,
        "picture": f"{url(analysis.analysis_id)}/pages/{number}/picture",
        "fetch": f"{url(analysis.analysis_id)}/pages/{number}/fetch",
    }


def _field(field: document_pb2.Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "value": field.value,
        "normalized": field.normalized,
        "confidence": field.confidence,
        "level": level(field.confidence),
        "evidence": [{"page": place.page, "line": place.line_id, "box": place.box} for place in field.evidence],
    }


def _texts(page: document_pb2.Page) -> list[str]:
    return [line.text for region in page.regions for line in region.lines]


def _beside(both: Sequence[Sequence[str]]) -> list[tuple[str, str, bool]]:
    """Rows of left, right and whether they are the same, aligned by what they say; too many stand line by line."""
    left, right = both
    if len(left) * len(right) > _MOST_ALIGNED:
        return [(one, other, one == other) for one, other in itertools.zip_longest(left, right, fillvalue="")]
    rows: list[tuple[str, str, bool]] = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        count = max(i_end - i, j_end - j)
        for step in range(count):
            one = left[i + step] if i + step < i_end else ""
            other = right[j + step] if j + step < j_end else ""
            rows.append((one, other, kind == "equal"))
    return rows


def _whole(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default


def route_word(decision: envelope_pb2.RouteDecision.ValueType) -> str:
    """A route for people."""
    return enum_word(envelope_pb2.RouteDecision.Name(decision), "ROUTE_DECISION_")
