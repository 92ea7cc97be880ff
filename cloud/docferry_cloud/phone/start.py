"""GET /r/: what this phone has opened; for who may list documents, the latest of them and a place to drop another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc.aio
from starlette.requests import Request
from starlette.responses import Response

from docferry import report
from docferry.errors import DocferryError
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.gateway.link import Link, Metadata, metadata_of
from docferry_cloud.gateway.routes import SERVICES
from docferry_cloud.phone.rendering import Pages

_LIST = SERVICES["AnalysisService"].methods_by_name["List"]
_GET = SERVICES["AnalysisService"].methods_by_name["Get"]
_LATEST = 20
_SUMMARISED = 8
"""So many of the latest say what they are about: each is one call more."""


async def start_page(request: Request, link: Link, pages: Pages, *, own_machine: bool) -> Response:
    """The page.

    Args:
        own_machine: The service may take callers without a key.
    """
    latest = None
    if own_machine or "authorization" in request.headers:
        try:
            asked = pb.AnalysisServiceListRequest(page_size=_LATEST)
            answer = await link.unary(_LIST, asked, metadata_of(request))
        except (grpc.aio.AioRpcError, DocferryError):
            # Whoever may not list sees the page of whoever may not.
            pass
        else:
            assert isinstance(answer, pb.AnalysisServiceListResponse)
            latest = await _with_summaries(answer.analyses, link, metadata_of(request))
    return pages.answer(request, "start.html", latest=latest)


async def _with_summaries(
    analyses: Sequence[analysis_pb2.Analysis], link: Link, metadata: Metadata
) -> list[dict[str, str]]:
    async def told(analysis: analysis_pb2.Analysis) -> dict[str, str]:
        try:
            asked = pb.AnalysisServiceGetRequest(analysis_id=analysis.analysis_id)
            answer = await link.unary(_GET, asked, metadata)
        except grpc.aio.AioRpcError:
            # Deleted since, or the service is busy: its name does.
            return _shown(analysis)
        assert isinstance(answer, pb.AnalysisServiceGetResponse)
        return _shown(answer.analysis)

    first = await asyncio.gather(*(told(analysis) for analysis in analyses[:_SUMMARISED]))
    return [*first, *(_shown(analysis) for analysis in analyses[_SUMMARISED:])]


def _shown(analysis: analysis_pb2.Analysis) -> dict[str, str]:
    tree = report.analysis("", analysis)
    return {
        "analysis_id": analysis.analysis_id,
        "file": tree["file"] or analysis.analysis_id,
        "status": tree["status"],
        "summary": tree["summary"],
    }
