"""GET /r/{analysis_id}: what is known of the document by now. Without a script a plain page; with one it follows."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
from starlette.requests import Request
from starlette.responses import Response

from docferry import report
from docferry.errors import DocferryError
from docferry.tables.grid import Cell, from_html
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.gateway.link import SESSION_COOKIE, Link, metadata_of, while_connected
from docferry_cloud.gateway.problems import Refused, status_and_code
from docferry_cloud.gateway.rich_text import rendered
from docferry_cloud.gateway.routes import SERVICES
from docferry_cloud.phone.rendering import Pages

EXPORTS = ("markdown", "json", "csv", "xlsx", "html", "pdf")
MOST_TEXT, MOST_CELLS = 12_000, 1_200
"""Characters of the text and cells of tables on the page; all of them are in the files."""
_DOUBTFUL = 0.9
"""A field below this is marked to be looked at: a hint for eyes, nothing is decided by it."""
_GET = SERVICES["AnalysisService"].methods_by_name["Get"]
_OPEN = frozenset({"sending", "pending", "running"})


async def result_page(request: Request, link: Link, pages: Pages) -> Response:
    """The page, or a page that says why there is none, with the same code as the mirror would give."""
    try:
        wanted = pb.AnalysisServiceGetRequest(analysis_id=request.path_params["analysis_id"])
        given = await while_connected(request, link.unary(_GET, wanted, metadata_of(request)))
    except (grpc.aio.AioRpcError, DocferryError, Refused) as failure:
        status, code, headers = status_and_code(failure)
        # A claim that is over is told in the words of one that never was.
        gone = SESSION_COOKIE in request.cookies and code in {401, 404}
        return pages.problem(request, 404 if gone else code, {} if gone else headers, status.message, gone=gone)
    assert isinstance(given, pb.AnalysisServiceGetResponse)
    values = await asyncio.to_thread(_values, given.analysis)
    return pages.answer(request, "result.html", **values)


def _values(analysis: analysis_pb2.Analysis) -> dict[str, Any]:
    tree = report.analysis("", analysis)
    place = f"/r/{analysis.analysis_id}"
    return {
        "title": tree["summary"] or tree["file"] or tree["analysis_id"],
        "tree": tree,
        "place": place,
        "open": tree["status"] in _OPEN,
        "tables": _tables(tree),
        "text": rendered(tree["markdown"][:MOST_TEXT]) if tree["markdown"] else "",
        "cut": len(tree["markdown"]) > MOST_TEXT,
        "problem": tree.get("error", {}).get("reason", ""),
        "progress": (analysis.progress.pages_done, analysis.progress.pages),
        "sheets": _sheets(tree),
        "doubtful": _DOUBTFUL,
        "exports": [{"name": name, "href": f"{place}/export?format={name}"} for name in EXPORTS],
    }


def _sheets(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Each page's size, and the boxes on it that a field leads to, in thousandths of the page."""
    sheets = [
        {"number": number, "width": max(1, page["width"]), "height": max(1, page["height"]), "boxes": []}
        for number, page in enumerate(tree["pages"])
    ]
    for index, field in enumerate(tree["fields"]):
        for place in field["evidence"]:
            if place["page"] < len(sheets):
                x0, y0, x1, y1 = (round(1000 * value, 1) for value in place["box"])
                box = {"field": index, "x": x0, "y": y0, "width": max(0, x1 - x0), "height": max(0, y1 - y0)}
                sheets[place["page"]]["boxes"].append(box)
    return sheets


def _tables(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables that the page has room for."""
    room, tables = MOST_CELLS, []
    for number, page in enumerate(tree["pages"], 1):
        for region in page["regions"]:
            if not region["html"] or not (rows := _rows(region["html"])):
                continue
            kept = []
            for row in rows:
                room -= len(row)
                if room < 0:
                    break
                kept.append(row)
            if kept:
                tables.append({"page": number, "rows": kept, "cut": len(kept) < len(rows)})
    return tables


def _rows(html: str) -> list[list[Cell]]:
    """A table's cells row by row: its markup is not taken over, only text and spans."""
    rows: dict[int, list[Cell]] = {}
    for cell in from_html(html).cells:
        rows.setdefault(cell.row, []).append(cell)
    return [rows.get(number, []) for number in range(max(rows, default=-1) + 1)]
