"""GET /r/{analysis_id}: what was found, as a plain page that needs no script."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from docferry import report
from docferry.errors import DocferryError
from docferry.tables.grid import Cell, from_html
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.gateway.link import Link, metadata_of, while_connected
from docferry_cloud.gateway.problems import Refused, status_and_code
from docferry_cloud.gateway.routes import SERVICES
from docferry_cloud.gateway.words import WORDS, language_of

EXPORTS = ("markdown", "json", "csv", "xlsx", "html", "pdf")
_GET = SERVICES["AnalysisService"].methods_by_name["Get"]
_POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " sandbox allow-downloads allow-popups"
)


class ResultPage:
    """Renders it; made once."""

    def __init__(self) -> None:
        import base64
        import hashlib

        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("docferry_cloud.gateway"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._template = environment.get_template("result.html")
        style, _, _ = environment.loader.get_source(environment, "result.css")  # type: ignore[union-attr]
        self._style = style
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self._headers = {"content-security-policy": _POLICY.format(style=digest)}

    async def answer(self, request: Request, link: Link) -> Response:
        """The page, or a page that says why there is none, with the same code as the mirror would give."""
        language = language_of(request.headers.get("accept-language", ""))
        analysis_id = request.path_params["analysis_id"]
        try:
            wanted = pb.AnalysisServiceGetRequest(analysis_id=analysis_id)
            metadata = metadata_of(request)
            given = await while_connected(request, link.unary(_GET, wanted, metadata))
        except (grpc.aio.AioRpcError, DocferryError, Refused) as failure:
            status, code, headers = status_and_code(failure)
            return self._page(language, code, headers, title=WORDS[language]["problem"], problem=status.message)
        assert isinstance(given, pb.AnalysisServiceGetResponse)
        values = await asyncio.to_thread(_values, given.analysis)
        return self._page(language, 200, {}, **values)

    def _page(self, language: str, code: int, headers: dict[str, str], **values: Any) -> Response:
        text = self._template.render(
            words=WORDS[language], language=language, style=self._style, exports=EXPORTS, **values
        )
        return HTMLResponse(
            text, code, {**self._headers, **headers, "content-language": language, "vary": "accept-language"}
        )


def _values(analysis: analysis_pb2.Analysis) -> dict[str, Any]:
    tree = report.analysis("", analysis)
    tables = [
        {"page": number, "rows": rows}
        for number, page in enumerate(tree["pages"], 1)
        for region in page["regions"]
        if region["html"] and (rows := _rows(region["html"]))
    ]
    return {
        "title": tree["summary"] or tree["file"] or tree["analysis_id"],
        "tree": tree,
        "tables": tables,
        "problem": tree.get("error", {}).get("reason", ""),
    }


def _rows(html: str) -> list[list[Cell]]:
    """A table's cells row by row: its markup is not taken over, only text and spans."""
    rows: dict[int, list[Cell]] = {}
    for cell in from_html(html).cells:
        rows.setdefault(cell.row, []).append(cell)
    return [rows.get(number, []) for number in range(max(rows, default=-1) + 1)]
