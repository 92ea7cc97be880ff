"""What is done with a finished analysis on a call: exporting it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import envelope_pb2
from docferry_cloud import resources
from docferry_cloud.engine import PageInput
from docferry_cloud.exporting.export import File, export
from docferry_cloud.interpreter import page_inputs
from docferry_cloud.service import Service

_PIECE = 256 * 1024


async def exported(service: Service, tenant: str, request: pb.ExportRequest) -> AsyncGenerator[pb.ExportResponse, None]:
    """The file in pieces; its MIME type comes with the first.

    Raises:
        NotFound: No such analysis of this tenant.
        InputError: No such format or version.
        PixelsUnavailable: The format shows pages whose pixels are not here.
    """
    row = await service.get(tenant, request.analysis_id, "")
    stored = await service.stored(tenant, request.analysis_id)

    def make() -> File:
        pages: tuple[PageInput, ...] = ()
        if stored is not None:
            body, supplied = stored
            pages = page_inputs(envelope_pb2.Envelope.FromString(body), supplied)
        return export(resources.analysis(row), request.version, request.format, pages)

    file = await asyncio.to_thread(make)
    yield pb.ExportResponse(data=file.data[:_PIECE], media_type=file.media_type)
    for start in range(_PIECE, len(file.data), _PIECE):
        yield pb.ExportResponse(data=file.data[start : start + _PIECE])
