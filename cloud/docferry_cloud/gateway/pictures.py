"""Pictures and files as HTTP callers send them, and the envelopes they go up in. A web address is never fetched."""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
import re
import uuid
from dataclasses import dataclass

from docferry.channel import PROTOCOL_VERSION
from docferry.envelope import MAX_PART_BYTES
from docferry.errors import ImageTooLarge, InputError, UnreadableImage
from docferry.packing import MAX_PAGES
from docferry.upload import original_envelope
from docferry.v1 import envelope_pb2

_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w-]+=[^;,]*)*)(;base64)?,", re.IGNORECASE | re.ASCII)
_INLINE_BYTES = 256 << 10
_SPACE = str.maketrans("", "", " \t\r\n")


@dataclass(frozen=True, slots=True)
class Picture:
    """A file in memory and the name it is shown by."""

    data: bytes
    name: str

    def __post_init__(self) -> None:
        if not self.data:
            raise UnreadableImage("the file is empty", remedy="send its bytes", field="image")
        if len(self.data) > MAX_PART_BYTES:
            raise ImageTooLarge(
                f"{len(self.data)} bytes", remedy=f"files up to {MAX_PART_BYTES >> 20} MiB are taken", field="image"
            )


def picture_from_text(text: str, name: str = "", *, field: str = "image") -> Picture:
    """A picture from base64 or from a data URI.

    Raises:
        InputError: It is neither; web addresses are refused.
    """
    head, kind = "", ""
    if text[:5].lower() == "data:":
        found = _DATA_URI.match(text[:400])
        if found is None or not found.group(3):
            raise InputError("the data URI is malformed", remedy="send data:image/png;base64,...", field=field)
        head, kind = found.group(0), found.group(1) or ""
    elif re.match(r"[a-z][a-z0-9+.-]*:", text[:40], re.IGNORECASE):
        raise InputError(
            "addresses are not fetched, the picture itself is needed",
            remedy="send it as base64 or as data:image/png;base64,...",
            field=field,
        )
    try:
        data = base64.b64decode(text[len(head) :].translate(_SPACE), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"the picture is no base64: {error}", remedy="send standard base64", field=field) from None
    ending = mimetypes.guess_extension(kind.lower()) or ""
    return Picture(data, name or f"upload{ending}")


def envelope_of(
    pictures: list[Picture], *, request_id: str, effort: envelope_pb2.Effort.ValueType
) -> envelope_pb2.Envelope:
    """The envelope of one file as it is, or of several pictures as the pages of one document.

    Raises:
        InputError: There are more pages than a document may have.
    """
    if len(pictures) == 1:
        return original_envelope(pictures[0].name, pictures[0].data, request_id=request_id, effort=effort)
    if len(pictures) > MAX_PAGES:
        raise InputError(f"{len(pictures)} pages", remedy=f"send at most {MAX_PAGES}", field="image")
    room = _INLINE_BYTES
    parts = []
    for number, picture in enumerate(pictures):
        inside = len(picture.data) <= room
        room -= len(picture.data) if inside else 0
        parts.append(
            envelope_pb2.Part(
                part_id=f"page-{number}",
                kind=envelope_pb2.PART_KIND_PAGE,
                page=number,
                media_type=mimetypes.guess_type(picture.name)[0] or "application/octet-stream",
                size=len(picture.data),
                sha256=hashlib.sha256(picture.data).digest(),
                data=picture.data if inside else b"",
            )
        )
    reason = envelope_pb2.RouteReason(code="NO_EDGE", detail="submitted without an edge: the pages went up as they are")
    return envelope_pb2.Envelope(
        request_id=request_id,
        document_id=str(uuid.uuid5(uuid.UUID(request_id), "document")),
        protocol_version=PROTOCOL_VERSION,
        file_name=pictures[0].name[:255],
        original_bytes=sum(len(picture.data) for picture in pictures),
        parts=parts,
        route=envelope_pb2.Route(decision=envelope_pb2.ROUTE_DECISION_PAGE, reasons=[reason], risk=1.0),
        effort=effort,
    )
