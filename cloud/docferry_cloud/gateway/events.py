"""GET /v1/events: the event log as server-sent events (or NDJSON), in order, from a resume token on.

Each event's id is its resume token, so a browser's EventSource goes on by itself after a broken link. A heartbeat is a
comment with the token it stands at. When the events after a token are no longer kept, an event `history_gone` says so
and the stream goes on with the oldest that is kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc.aio
from starlette.requests import Request
from starlette.responses import Response

from docferry.errors import HistoryGone
from docferry.status import error_from_rpc
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import event_pb2
from docferry_cloud.gateway.asking import json_of, message_of
from docferry_cloud.gateway.link import Link, Metadata, StreamCall, metadata_of, while_connected
from docferry_cloud.gateway.problems import problem_tree, status_and_code
from docferry_cloud.gateway.routes import MirrorRoute
from docferry_cloud.gateway.streams import NDJSON, SSE, Stream, failed, first_of, framed, rest_of, wanted_kind

_RETRY = b"retry: 1000\n\n"


class _Watch:
    """The rpc behind one stream of events; another one takes its place when history is gone."""

    def __init__(self, link: Link, route: MirrorRoute, metadata: Metadata) -> None:
        self._link = link
        self._route = route
        self._metadata = metadata
        self._call: StreamCall | None = None

    async def begin(self, request: pb.AnalysisServiceWatchRequest) -> tuple[object, StreamCall]:
        self._call = call = self._link.stream(self._route.descriptor, request, self._metadata)
        return await first_of(call), call

    def end(self) -> None:
        if self._call is not None:
            self._call.cancel()


async def events(request: Request, link: Link, route: MirrorRoute) -> Response:
    """Answer with the stream."""
    kind = wanted_kind(request, SSE)
    wanted = await message_of(route, request)
    assert isinstance(wanted, pb.AnalysisServiceWatchRequest)
    # A browser that comes back says where it was; its address still says where it began.
    wanted.resume_token = request.headers.get("last-event-id", "") or wanted.resume_token
    watch = _Watch(link, route, metadata_of(request))
    lost = b""
    try:
        first, call = await while_connected(request, watch.begin(wanted))
    except grpc.aio.AioRpcError as failure:
        if not isinstance(error_from_rpc(failure), HistoryGone):
            raise
        status, code, _ = status_and_code(failure)
        lost = framed(kind, problem_tree(status, code), event="history_gone", token="")
        wanted.resume_token = ""
        first, call = await while_connected(request, watch.begin(wanted))
    except BaseException:
        watch.end()
        raise

    async def body() -> AsyncIterator[bytes]:
        yield (_RETRY if kind == SSE else b"") + lost
        try:
            async for response in rest_of(first, call):
                yield _framed(kind, response)
        except grpc.aio.AioRpcError as failure:
            yield failed(kind, failure)

    return Stream(body(), kind, watch.end)


def _framed(kind: str, response: pb.AnalysisServiceWatchResponse) -> bytes:
    if response.HasField("heartbeat"):
        if kind == NDJSON:
            return framed(kind, json_of(response))
        beat = response.heartbeat
        return f": {beat.time.ToJsonString()}\nid: {beat.resume_token}\n\n".encode()
    if kind == NDJSON:
        return framed(kind, json_of(response))
    event = response.event
    name = event_pb2.Event.Type.Name(event.type).removeprefix("TYPE_").lower()
    return framed(kind, json_of(event), event=name, token=event.resume_token)
