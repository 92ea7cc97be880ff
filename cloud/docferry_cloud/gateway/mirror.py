"""The mirror: each route of the table answers by the rpc it stands for."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc.aio
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from docferry.channel import MAX_CHUNK_BYTES
from docferry.errors import InputError
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.gateway.asking import fill, json_of, message_of, query_fields
from docferry_cloud.gateway.events import events
from docferry_cloud.gateway.link import Link, metadata_of, while_connected
from docferry_cloud.gateway.routes import MIRROR, MirrorRoute, Shape
from docferry_cloud.gateway.streams import SSE, Stream, failed, first_of, framed, rest_of, wanted_kind

Handler = Callable[[Request], Awaitable[Response]]

_LARGE = 64 << 10
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+(; charset=utf-8)?")
_RANGE = re.compile(r"bytes (\d{1,12})-(\d{1,12})/(\d{1,12})")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_ENDINGS = {
    "text/markdown": ".md",
    "application/json": ".json",
    "text/csv": ".csv",
    "text/html": ".html",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "application/xml": ".xml",
    "text/vnd.hocr+html": ".hocr",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}


def mirror_routes(link: Link) -> list[Route]:
    """The table as routes."""
    return [mirrored(route, link) for route in MIRROR]


def mirrored(route: MirrorRoute, link: Link) -> Route:
    """A route that answers by the rpc it stands for."""
    answers = {
        Shape.JSON: _json,
        Shape.PIECES: _pieces,
        Shape.FILE: _file,
        Shape.EVENTS: events,
        Shape.CHUNK: _chunk,
    }
    answer = answers[route.shape]

    async def handle(request: Request) -> Response:
        return await answer(request, link, route)

    return exactly(route.method, route.path, handle)


def exactly(method: str, path: str, handler: Handler) -> Route:
    """A route for this method alone: a HEAD of a stream would wait for its end."""
    route = Route(path, handler, methods=[method])
    route.methods = {method}
    return route


async def json_answer(message: Message, code: int = 200) -> Response:
    """A message as the JSON answer; a large one is put into words in a thread."""
    large = message.ByteSize() > _LARGE
    tree = await asyncio.to_thread(json_of, message) if large else json_of(message)
    return JSONResponse(tree, code)


async def _json(request: Request, link: Link, route: MirrorRoute) -> Response:
    message, metadata = await message_of(route, request), metadata_of(request)
    return await json_answer(await while_connected(request, link.unary(route.descriptor, message, metadata)))


async def _pieces(request: Request, link: Link, route: MirrorRoute) -> Response:
    message, metadata = await message_of(route, request), metadata_of(request)
    kind = wanted_kind(request, "")
    call = link.stream(route.descriptor, message, metadata)
    first = await while_connected(request, first_of(call))
    if kind:
        return Stream(_framed_pieces(kind, first, call), kind, call.cancel)
    try:
        return await json_answer(await while_connected(request, _whole_answer(first, call)))
    finally:
        call.cancel()


async def _whole_answer(first: Any, call: Any) -> pb.AskResponse:
    whole, text = pb.AskResponse(), []
    async for piece in rest_of(first, call):
        text.append(piece.text)
        whole.MergeFrom(piece)
    whole.text = "".join(text)
    return whole


async def _framed_pieces(kind: str, first: Any, call: Any) -> AsyncIterator[bytes]:
    try:
        async for piece in rest_of(first, call):
            yield framed(kind, json_of(piece), event="piece" if kind == SSE else "")
    except grpc.aio.AioRpcError as failure:
        yield failed(kind, failure)


async def _file(request: Request, link: Link, route: MirrorRoute) -> Response:
    message, metadata = await message_of(route, request), metadata_of(request)
    call = link.stream(route.descriptor, message, metadata)
    first = await while_connected(request, first_of(call))
    kind, name = "application/octet-stream", "file"
    if isinstance(first, (pb.ExportResponse, pb.GetPageResponse)):
        kind, name = first.media_type, message.analysis_id  # type: ignore[attr-defined]
    elif isinstance(first, pb.GetPartResponse):
        kind, name = first.part.media_type, first.part.part_id
    if not _MEDIA_TYPE.fullmatch(kind):
        kind = "application/octet-stream"
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100] + _ENDINGS.get(kind.partition(";")[0], "")
    # Never shown in place: what a device sent may claim to be HTML.
    headers = {"content-disposition": f'attachment; filename="{plain}"'}

    async def body() -> AsyncIterator[bytes]:
        async for piece in rest_of(first, call):
            yield piece.data

    return Stream(body(), kind, call.cancel, headers)


async def _chunk(request: Request, link: Link, route: MirrorRoute) -> Response:
    """Bytes of a part: all of it, or from an offset on; they go to the service in chunks of its size."""
    metadata = metadata_of(request)
    tree = query_fields(request.query_params, route) | request.path_params
    digest = tree.pop("sha256", "")
    if digest and not _DIGEST.fullmatch(digest):
        raise InputError("sha256 is no SHA-256 in hex", remedy="give the 64 hex digits of the whole part's")
    message = pb.SupplyRequest()
    fill(message, tree)
    message.sha256 = bytes.fromhex(digest)
    body = await request.body()
    _place(message, request.headers.get("content-range", ""), len(body))
    if not message.sha256:
        if len(body) != message.total_size:
            raise InputError("a piece of a part needs sha256", remedy="give the whole part's SHA-256 in hex")
        message.sha256 = hashlib.sha256(body).digest()

    async def send() -> Message:
        begin, at = message.offset, message.offset
        while True:
            message.data = body[at - begin : at - begin + MAX_CHUNK_BYTES]
            message.offset = at
            answer = await link.unary(route.descriptor, message, metadata)
            assert isinstance(answer, pb.SupplyResponse)
            if not at < answer.received < begin + len(body):
                return answer
            at = answer.received

    return await json_answer(await while_connected(request, send()))


def _place(message: pb.SupplyRequest, content_range: str, size: int) -> None:
    """Where the bytes stand: by Content-Range, by the query, or else they are the whole part."""
    if content_range:
        found = _RANGE.fullmatch(content_range.strip())
        begin, end, total = map(int, found.groups()) if found else (0, 0, 0)
        if not found or end - begin + 1 != size or end >= total:
            raise InputError(
                f"Content-Range {content_range[:100]!r} does not fit the {size} bytes of the body",
                remedy="send `bytes FIRST-LAST/TOTAL`",
            )
        if (message.offset or begin, message.total_size or total) != (begin, total):
            raise InputError("Content-Range and the query contradict each other", remedy="give one of the two")
        message.offset, message.total_size = begin, total
    elif not message.total_size and not message.offset:
        message.total_size = size
