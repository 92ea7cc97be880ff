"""The JSON object that stands for one document in every command's `--json` output.

Keys are stable; more may be added. Geometry is relative 0..1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from docferry.document import Document, Field, Line, Page, Region
from docferry.errors import DocferryError
from docferry.route import Route
from docferry.status import error_of
from docferry.v1 import analysis_pb2
from docferry.wire import box_from_proto, document_from_proto, route_from_proto

Tree = dict[str, Any]

_STATUS = {
    analysis_pb2.Analysis.STATE_SUCCEEDED: "done",
    analysis_pb2.Analysis.STATE_FAILED: "failed",
    analysis_pb2.Analysis.STATE_CANCELLED: "cancelled",
    analysis_pb2.Analysis.STATE_AWAITING_PARTS: "sending",
    analysis_pb2.Analysis.STATE_PENDING: "pending",
    analysis_pb2.Analysis.STATE_RUNNING: "running",
}


def failure(file: str, error: DocferryError) -> Tree:
    """A document that failed."""
    return {"file": file, "status": "failed", "error": error.as_dict()}


def edge_reading(
    file: str,
    document_id: str,
    document: Document,
    *,
    markdown: str,
    original_bytes: int,
    route: Route | None = None,
    timings: Mapping[str, float] | None = None,
) -> Tree:
    """The edge's own answer, marked as such: status `read`, engine `edge`."""
    return {
        "file": file,
        "status": "read",
        "document_id": document_id,
        "version": 1,
        "engine": "edge",
        **document_tree(document),
        "markdown": markdown,
        "summary": "",
        "answers": [],
        "notices": [],
        "route": _route(route) if route is not None else None,
        "traffic": {"original_bytes": original_bytes, "sent_bytes": 0, "parts": []},
        "timings_ms": _rounded(timings or {}),
        "versions": [{"version": 1, "engine": "edge"}],
        "notified": [],
    }


def analysis(
    file: str,
    found: analysis_pb2.Analysis,
    *,
    timings: Mapping[str, float] | None = None,
    notified: Iterable[Tree] = (),
) -> Tree:
    """The cloud's answer: the newest version's content, and every version's name."""
    status = _STATUS.get(found.state, "unknown")
    tree: Tree = {
        "file": file or found.file_name,
        "status": status,
        "document_id": found.document_id,
        "analysis_id": found.analysis_id,
    }
    tree |= {"version": 0, "engine": "", "pages": [], "fields": [], "markdown": "", "summary": ""}
    tree |= {"answers": [], "notices": []}
    if found.versions:
        newest = found.versions[-1]
        content = newest.interpretation
        tree |= {
            "version": newest.version,
            "engine": newest.engine,
            **document_tree(document_from_proto(content.document)),
            "markdown": content.markdown,
            "summary": content.summary,
            "answers": [answer(given) for given in content.answers],
            "notices": [{"code": notice.code, "detail": notice.detail} for notice in content.notices],
        }
    tree |= {
        "route": _route(route_from_proto(found.route)),
        "traffic": {
            "original_bytes": found.traffic.original_bytes,
            "sent_bytes": found.traffic.sent_bytes,
            "parts": [{"kind": part.kind, "bytes": part.bytes} for part in found.traffic.parts],
        },
        "timings_ms": _rounded(timings or {}),
        "versions": [{"version": v.version, "engine": v.engine} for v in found.versions],
        "notified": list(notified),
    }
    if status == "failed":
        tree["error"] = error_of(found.error).as_dict()
    return tree


def answer(given: analysis_pb2.Answer) -> Tree:
    """One answer; its text is empty where the document does not hold it."""
    return {
        "question": given.question,
        "answer": given.answer,
        "confidence": _number(given.confidence),
        "evidence": [
            {"page": e.page, "box": _numbers(box_from_proto(e.box)), "line": e.line_id} for e in given.evidence
        ],
    }


def document_tree(document: Document) -> Tree:
    """`pages` and `fields` of a document."""
    return {"pages": [_page(page) for page in document.pages], "fields": [_field(field) for field in document.fields]}


def _page(page: Page) -> Tree:
    quality = page.quality
    return {
        "width": page.width,
        "height": page.height,
        "quality": {name: _number(getattr(quality, name)) for name in quality.__dataclass_fields__},
        "regions": [_region(region) for region in page.regions],
    }


def _region(region: Region) -> Tree:
    return {
        "id": region.id,
        "type": region.type.value,
        "box": _numbers(region.box),
        "order": region.order,
        "score": _number(region.score),
        "confidence": _number(region.confidence),
        "html": region.html,
        "latex": region.latex,
        "marks": [{"code": mark.code, "detail": mark.detail} for mark in region.marks],
        "lines": [_line(line) for line in region.lines],
    }


def _line(line: Line) -> Tree:
    return {
        "id": line.id,
        "text": line.text,
        "polygon": [_numbers(point) for point in line.polygon],
        "score": _number(line.score),
        "confidence": _number(line.confidence),
        "provenance": line.provenance,
    }


def _field(field: Field) -> Tree:
    return {
        "name": field.name,
        "value": field.value,
        "normalized": field.normalized,
        "confidence": _number(field.confidence),
        "evidence": [{"page": e.page, "box": _numbers(e.box), "line": e.line} for e in field.evidence],
    }


def _route(route: Route) -> Tree:
    return {
        "decision": route.decision.value,
        "reasons": [
            {"code": reason.code, "detail": reason.detail, "value": _number(reason.value)} for reason in route.reasons
        ],
        "risk": _number(route.risk),
        "target_risk": _number(route.target_risk),
    }


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return round(value, 5) if math.isfinite(value) else None


def _numbers(values: Iterable[float]) -> list[float]:
    return [round(value, 5) for value in values]


def _rounded(timings: Mapping[str, float]) -> dict[str, int]:
    return {name: round(value) for name, value in timings.items()}
