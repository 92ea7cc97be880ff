"""The inbox, newest first, by state, route, device and words, page by page; and the review queue."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from docferry.v1 import analysis_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.console.render import enum_word
from docferry_cloud.console.visit import Visit

PAGE_SIZE = 25

_STATES = [value.name for value in analysis_pb2.Analysis.State.DESCRIPTOR.values if value.number]
_ROUTES = [value.name for value in envelope_pb2.RouteDecision.DESCRIPTOR.values if value.number]
_FILTERS = ("q", "state", "route", "device")


async def inbox(visit: Visit) -> Response:
    """A page of the list."""
    query = visit.request.query_params
    chosen = {name: query.get(name, "")[:200] for name in _FILTERS}
    request = pb.AnalysisServiceListRequest(
        page_size=PAGE_SIZE,
        page_token=query.get("page_token", ""),
        query=chosen["q"],
        states=[analysis_pb2.Analysis.State.Value(chosen["state"])] if chosen["state"] in _STATES else [],
        routes=[envelope_pb2.RouteDecision.Value(chosen["route"])] if chosen["route"] in _ROUTES else [],
        device=chosen["device"],
    )
    answer = await visit.call("AnalysisService.List", request, pb.AnalysisServiceListResponse)
    kept = {name: value for name, value in chosen.items() if value}
    return visit.page(
        "inbox.html",
        title="Inbox",
        rows=[row(analysis) for analysis in answer.analyses],
        chosen=chosen,
        states=[(name, enum_word(name, "STATE_")) for name in _STATES],
        routes=[(name, enum_word(name, "ROUTE_DECISION_")) for name in _ROUTES],
        next=_next(answer.next_page_token, kept),
        first=f"?{urlencode(kept)}" if query.get("page_token") else "",
    )


async def queue(visit: Visit) -> Response:
    """What is in doubt, the weightiest first."""
    query = visit.request.query_params
    request = pb.AnalysisServiceListRequest(
        page_size=PAGE_SIZE,
        page_token=query.get("page_token", ""),
        order=pb.AnalysisServiceListRequest.ORDER_DOUBT_FIRST,
    )
    answer = await visit.call("AnalysisService.List", request, pb.AnalysisServiceListResponse)
    return visit.page(
        "queue.html",
        title="Review queue",
        rows=[row(analysis) for analysis in answer.analyses],
        next=_next(answer.next_page_token, {}),
        first="?" if query.get("page_token") else "",
    )


def row(analysis: analysis_pb2.Analysis) -> dict[str, Any]:
    """What a list shows of an analysis."""
    return {
        "id": analysis.analysis_id,
        "file": analysis.file_name or analysis.document_id,
        "headline": analysis.digest.headline,
        "state": enum_word(analysis_pb2.Analysis.State.Name(analysis.state), "STATE_"),
        "route": enum_word(envelope_pb2.RouteDecision.Name(analysis.route.decision), "ROUTE_DECISION_"),
        "risk": analysis.route.risk,
        "device": analysis.digest.device,
        "doubts": analysis.digest.doubts,
        "weight": analysis.digest.weight,
        "pages": analysis.digest.pages,
        "time": analysis.create_time,
        "sent": analysis.traffic.sent_bytes,
    }


def _next(token: str, kept: dict[str, str]) -> str:
    return f"?{urlencode(kept | {'page_token': token})}" if token else ""
