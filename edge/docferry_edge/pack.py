"""From a plan to the bytes that go up: one request, and the parts too large to lie inside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import cv2
import numpy as np

from docferry.channel import MAX_ENVELOPE_BYTES, PROTOCOL_VERSION
from docferry.document import Box
from docferry.envelope import check_envelope
from docferry.packing import pack_reading
from docferry.route import Decision, PicturePlan, Plan
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry.vision.crops import crop
from docferry.vision.images import Pixels, encode_webp
from docferry.wire import box_to_proto, route_to_proto
from docferry_edge.cutting import cut, geometry_of, sharpness
from docferry_edge.desk import Identity, Packed
from docferry_edge.entry import OutboxPart
from docferry_edge.examine import Examined
from docferry_edge.pictures import Pictures
from docferry_edge.prepare import Frame, PageImage

_INLINE_BYTES = MAX_ENVELOPE_BYTES - (128 << 10)
"""Parts lie inside the envelope as long as they fit into this together; the rest leaves room for the structure."""
_WEBP = "image/webp"


def pack(
    identity: Identity,
    examined: Examined,
    plan: Plan,
    pictures: Pictures,
    effort: envelope_pb2.Effort.ValueType = envelope_pb2.EFFORT_AUTO,
    *,
    original_percent: int = 0,
) -> Packed:
    """Pack what the plan lets go.

    Args:
        original_percent: How sharp the kept original is, for a sender that answers wants: its pixels along a side for
            100 of the prepared page; 0 for one that does not.

    Raises:
        EnvelopeTooLarge: The structure alone does not fit.
    """
    envelope = envelope_pb2.Envelope(
        request_id=identity.request_id,
        document_id=identity.document_id,
        protocol_version=PROTOCOL_VERSION,
        file_name=identity.file_name[:255],
        original_bytes=identity.original_bytes,
        structure=pack_reading(examined.assessment.reading),
        route=route_to_proto(plan.route),
        effort=effort,
        original_percent=original_percent,
    )
    envelope.capture_time.FromMilliseconds(int(identity.captured_at * 1000))
    announced: list[OutboxPart] = []
    inline = 0
    for part in _all_pictures(examined, plan, pictures):
        if inline + part.size <= _INLINE_BYTES:
            inline += part.size
        else:
            announced.append(OutboxPart(part.part_id, part.data))
            part.data = b""
        envelope.parts.append(part)
    check_envelope(envelope)
    request = analysis_service_pb2.SubmitRequest(envelope=envelope)
    return Packed(request.SerializeToString(), tuple(announced), examined.timings)


def resized(pixels: Pixels, scale: float) -> Pixels:
    """The picture scaled down; a scale of 1 or more leaves it as it is."""
    height, width = pixels.shape[:2]
    if scale >= 1:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _all_pictures(examined: Examined, plan: Plan, pictures: Pictures) -> Iterator[envelope_pb2.Part]:
    """Every page's parts; those of the second page and on are named after it."""
    for number, page in enumerate(examined.pages):
        own = tuple(wanted for wanted in plan.crops if wanted.page == number)
        frame = None if examined.frame is None else replace(examined.frame, page=number)
        for part in _pictures(page, frame, replace(plan, crops=own), pictures):
            part.page = number
            if number:
                part.part_id = f"{part.part_id}-p{number + 1}"
            yield part


def _pictures(page: PageImage, frame: Frame | None, plan: Plan, pictures: Pictures) -> list[envelope_pb2.Part]:
    decision = plan.route.decision
    longest = max(page.width, page.height)
    if decision is Decision.PAGE:
        whole = plan.page or PicturePlan(longest, pictures.page_quality)
        data = encode_webp(resized(page.pixels, whole.side / longest), whole.quality, grey=True)
        return [_part("page", envelope_pb2.PART_KIND_PAGE, data)]
    parts: list[envelope_pb2.Part] = []
    overview = plan.overview
    if overview is None and decision is Decision.OVERVIEW:
        overview = PicturePlan(pictures.overview_side, pictures.overview_quality)
    if overview is not None:
        data = encode_webp(resized(page.pixels, overview.side / longest), overview.quality, grey=True)
        parts.append(_part("overview", envelope_pb2.PART_KIND_OVERVIEW, data))
    sources = {scale: _source(page, frame, scale) for scale in {wanted.scale for wanted in plan.crops}}
    for number, wanted in enumerate(plan.crops):
        pixels, box = crop(sources[wanted.scale], wanted.box)
        data = encode_webp(pixels, wanted.quality or pictures.crop_quality, grey=True)
        parts.append(_part(f"crop-{number + 1}", envelope_pb2.PART_KIND_CROP, data, page=wanted.page, box=box))
    return parts


def _source(page: PageImage, frame: Frame | None, scale: float) -> Pixels:
    """The page at that scale: smaller than it was prepared, or cut anew from the frame where that is sharper."""
    # The cutter opens a file's first page.
    if scale > 1 and frame is not None and frame.page == 0:
        geometry = geometry_of(page, frame)
        if geometry is not None and sharpness(geometry) > 1:
            return cut(frame, geometry, None, scale)
    return resized(page.pixels, scale)


def _part(
    part_id: str, kind: envelope_pb2.PartKind.ValueType, data: bytes, *, page: int = 0, box: Box | None = None
) -> envelope_pb2.Part:
    return envelope_pb2.Part(
        part_id=part_id,
        kind=kind,
        page=page,
        box=box_to_proto(box) if box is not None else None,
        media_type=_WEBP,
        size=len(data),
        sha256=hashlib.sha256(data).digest(),
        data=data,
    )
