"""A file on its way up as it is, without an edge that has read it."""

from __future__ import annotations

import hashlib
import mimetypes
import uuid
from pathlib import Path

from docferry.channel import PROTOCOL_VERSION
from docferry.envelope import MAX_PART_BYTES
from docferry.errors import ImageTooLarge, NotFound, UnreadableImage
from docferry.v1 import envelope_pb2

_INLINE_BYTES = 256 << 10


def original_envelope(
    name: str, data: bytes, *, request_id: str, effort: envelope_pb2.Effort.ValueType
) -> envelope_pb2.Envelope:
    """The envelope that sends a file as it is: inside when small, announced when large."""
    part = envelope_pb2.Part(
        part_id="original",
        kind=envelope_pb2.PART_KIND_ORIGINAL,
        media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        size=len(data),
        sha256=hashlib.sha256(data).digest(),
        data=data if len(data) <= _INLINE_BYTES else b"",
    )
    reason = envelope_pb2.RouteReason(code="NO_EDGE", detail="submitted without an edge: the file went up as it is")
    return envelope_pb2.Envelope(
        request_id=request_id,
        # The same request must be the same body, so the document's id follows from the request's.
        document_id=str(uuid.uuid5(uuid.UUID(request_id), "document")),
        protocol_version=PROTOCOL_VERSION,
        file_name=name[:255],
        original_bytes=len(data),
        parts=[part],
        route=envelope_pb2.Route(decision=envelope_pb2.ROUTE_DECISION_ORIGINAL, reasons=[reason], risk=1.0),
        effort=effort,
    )


def read_file(path: Path) -> bytes:
    """The bytes of a file a user named.

    Raises:
        NotFound: There is no such file.
        UnreadableImage: It is empty, a folder, or may not be read.
        ImageTooLarge: It is larger than a part may be.
    """
    try:
        size = path.stat().st_size
        if size > MAX_PART_BYTES:
            raise ImageTooLarge(
                f"{path}: {size} bytes", remedy=f"files up to {MAX_PART_BYTES >> 20} MiB are taken", file=str(path)
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file", remedy="check the name", file=str(path)) from None
    except OSError as error:
        raise UnreadableImage(f"{path}: {error.strerror}", remedy="give a readable file", file=str(path)) from None
    if not data:
        raise UnreadableImage(f"{path}: the file is empty", remedy="take the picture again", file=str(path))
    return data
