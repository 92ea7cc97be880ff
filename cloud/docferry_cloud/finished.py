"""What is done with a finished analysis on a call: exporting it, answering questions about it, filling a schema."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

from docferry.document import Page
from docferry.errors import ConfigurationError, Conflict, InputError
from docferry.fields.schema import in_shape, wanted_fields
from docferry.schema_filling import tree_of, value_of
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.wire import box_to_proto, document_from_proto
from docferry_cloud import resources
from docferry_cloud.engine import PageInput
from docferry_cloud.exporting.export import File, export, shows_pages
from docferry_cloud.exporting.pictures import page_picture
from docferry_cloud.interpreter import page_inputs
from docferry_cloud.meaning import MAX_QUESTION, Found, answer, filled
from docferry_cloud.meaning.embeddings import installed
from docferry_cloud.rows import AnalysisRow
from docferry_cloud.service import Service

_PIECE = 256 * 1024
_LONGER_SIDE = 1600
MAX_LONGER_SIDE = 4096
MAX_EXPORTS = 2
"""Files that one front end makes at the same time: each holds its document's pages in memory. Others wait."""
MAX_FILLS = 2
"""Schemas that one front end fills at the same time; others wait."""


async def exported(
    service: Service, tenant: str, request: pb.ExportRequest, room: asyncio.Semaphore
) -> AsyncGenerator[pb.ExportResponse, None]:
    """The file in pieces; its MIME type comes with the first.

    Args:
        room: Held while the file is made, also when the caller has left meanwhile: a thread cannot be stopped.

    Raises:
        NotFound: No such analysis of this tenant.
        InputError: No such format or version.
        PixelsUnavailable: The format shows pages whose pixels are not here.
    """
    row = await service.get(tenant, request.analysis_id, "")
    await room.acquire()
    making: asyncio.Future[File] | None = None
    try:
        stored = await service.stored(tenant, request.analysis_id) if shows_pages(request.format) else None
        making = asyncio.ensure_future(asyncio.to_thread(_made, row, request, stored))
        making.add_done_callback(lambda _: room.release())
    finally:
        if making is None:
            room.release()
    file = await asyncio.shield(making)
    yield pb.ExportResponse(data=file.data[:_PIECE], media_type=file.media_type)
    for start in range(_PIECE, len(file.data), _PIECE):
        yield pb.ExportResponse(data=file.data[start : start + _PIECE])


async def pictured(
    service: Service, tenant: str, request: pb.GetPageRequest, room: asyncio.Semaphore
) -> AsyncGenerator[pb.GetPageResponse, None]:
    """A page's picture in pieces; its MIME type comes with the first.

    Args:
        room: See `exported`.

    Raises:
        NotFound: No such analysis of this tenant.
        InputError: No such page or size.
        PixelsUnavailable: No picture of the whole page is here.
    """
    side = request.longer_side or _LONGER_SIDE
    if side > MAX_LONGER_SIDE:
        raise InputError(f"a side of {side} pixels", remedy=f"at most {MAX_LONGER_SIDE}", field="longer_side")
    row = await service.get(tenant, request.analysis_id, "")
    await room.acquire()
    making: asyncio.Future[bytes] | None = None
    try:
        stored = await service.stored(tenant, request.analysis_id)
        making = asyncio.ensure_future(asyncio.to_thread(_drawn, row, request.page, side, stored))
        making.add_done_callback(lambda _: room.release())
    finally:
        if making is None:
            room.release()
    data = await asyncio.shield(making)
    yield pb.GetPageResponse(data=data[:_PIECE], media_type="image/jpeg")
    for start in range(_PIECE, len(data), _PIECE):
        yield pb.GetPageResponse(data=data[start : start + _PIECE])


def _drawn(row: AnalysisRow, number: int, side: int, stored: tuple[bytes, dict[str, bytes]] | None) -> bytes:
    analysis = resources.analysis(row)
    read = document_from_proto(analysis.versions[-1].interpretation.document).pages if analysis.versions else ()
    pages: tuple[PageInput, ...] = ()
    if stored is not None:
        body, supplied = stored
        pages = page_inputs(envelope_pb2.Envelope.FromString(body), supplied)
    if number >= len(pages):
        raise InputError(
            f"there is no page {number + 1}", remedy=f"the document has {len(pages)}, counted from 0", field="page"
        )
    page = read[number] if number < len(read) else Page(1, 1)
    return page_picture(pages[number], page, number, longer_side=side)


def _made(row: AnalysisRow, request: pb.ExportRequest, stored: tuple[bytes, dict[str, bytes]] | None) -> File:
    pages: tuple[PageInput, ...] = ()
    if stored is not None:
        body, supplied = stored
        pages = page_inputs(envelope_pb2.Envelope.FromString(body), supplied)
    return export(resources.analysis(row), request.version, request.format, pages)


async def asked(service: Service, tenant: str, request: pb.AskRequest) -> AsyncGenerator[pb.AskResponse, None]:
    """The answer from the newest version, with its evidence; an empty one where the document does not hold it.

    Raises:
        NotFound: No such analysis of this tenant.
        InputError: The question is empty or too long.
        Conflict: Nothing has been read yet.
    """
    row = await service.get(tenant, request.analysis_id, "")
    question = request.question.strip()
    if not question or len(question) > MAX_QUESTION:
        raise InputError(
            f"the question has {len(question)} characters",
            remedy=f"ask something of 1 to {MAX_QUESTION} characters",
            field="question",
        )
    content = _newest(row).interpretation
    found = await asyncio.to_thread(lambda: answer(document_from_proto(content.document), question, installed()))
    yield pb.AskResponse(text=found.answer, answer=_message(found))


async def filled_in(service: Service, tenant: str, request: pb.FillRequest, room: asyncio.Semaphore) -> pb.FillResponse:
    """A schema filled from the newest version, or from the one that is named.

    Args:
        room: Held while it is filled: that is work for a processor.

    Raises:
        NotFound: No such analysis of this tenant, or no such version.
        InputError: The schema cannot be filled.
        Conflict: Nothing has been read yet.
    """
    row = await service.get(tenant, request.analysis_id, "", request.version)
    try:
        schema = tree_of(request.schema)
        wanted_fields(schema)
    except ConfigurationError as error:
        raise InputError(error.reason, remedy=error.remedy, field="schema") from None
    version = _newest(row)
    left = threading.Event()
    async with room:
        try:
            return await asyncio.to_thread(_filled, version, schema, left.is_set)
        finally:
            # A thread cannot be stopped: it looks for itself whether anybody still waits.
            left.set()


def _filled(version: analysis_pb2.Version, schema: Any, left: Callable[[], bool]) -> pb.FillResponse:
    found = filled(document_from_proto(version.interpretation.document), schema, left)
    response = pb.FillResponse(version=version.version)
    # The order of an object's members is lost on the wire.
    for leaf in found if isinstance(schema, list) else sorted(found, key=lambda leaf: leaf.path):
        response.fields.add(
            path=leaf.path, found=leaf.value is not None, value=value_of(leaf.value), answer=_message(leaf.found)
        )
    if not left():
        response.filled.CopyFrom(value_of(in_shape(schema, {leaf.path: leaf.value for leaf in found})))
    return response


def _newest(row: AnalysisRow) -> analysis_pb2.Version:
    analysis = resources.analysis(row)
    if not analysis.versions:
        raise Conflict("the document has not been read yet", remedy="ask again once the analysis has finished")
    return analysis.versions[-1]


def _message(found: Found) -> analysis_pb2.Answer:
    message = analysis_pb2.Answer(question=found.question, answer=found.answer, confidence=found.confidence)
    for place in found.evidence:
        message.evidence.add(page=place.page, box=box_to_proto(place.box), line_id=place.line)
    return message
