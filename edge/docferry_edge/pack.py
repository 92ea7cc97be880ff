"""From a plan to the bytes that go up: one request, and the parts too large to lie inside it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import cv2
import numpy as np

from docferry.channel import MAX_ENVELOPE_BYTES, PROTOCOL_VERSION
from docferry.client import original_envelope
from docferry.document import Box
from docferry.envelope import check_envelope
from docferry.packing import pack_reading
from docferry.route import Decision, PicturePlan, Plan
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry.vision.crops import crop
from docferry.vision.images import Pixels, encode_webp
from docferry.wire import box_to_proto, route_to_proto
from docferry_edge.cutting import cut, geometry_of, sharpness
from docferry_edge.entry import OutboxPart
from docferry_edge.examine import Examined

_INLINE_BYTES = MAX_ENVELOPE_BYTES - (128 << 10)
"""Parts lie inside the envelope as long as they fit into this together; the rest leaves room for the structure."""
_WEBP = "image/webp"


@dataclass(frozen=True, slots=True)
class Pictures:
    """How pictures are encoded where the plan leaves it open: the overview's long side in pixels, and WebP qualities
    1..100. All are grey.
    """

    overview_side: int = 768
    overview_quality: int = 40
    crop_quality: int = 80
    page_quality: int = 60


@dataclass(frozen=True, slots=True)
class Packed:
    """A serialized SubmitRequest, the parts it announces, and the examination's timings in milliseconds."""

    request: bytes
    parts: tuple[OutboxPart, ...]
    timings: dict[str, float]


@dataclass(frozen=True, slots=True)
class Identity:
    """What an envelope says of its document besides the reading: ids, name, size, time of capture (Unix, seconds)."""

    request_id: str
    document_id: str
    file_name: str
    original_bytes: int
    captured_at: float


def pack(
    identity: Identity,
    examined: Examined,
    plan: Plan,
    pictures: Pictures,
    effort: envelope_pb2.Effort.ValueType = envelope_pb2.EFFORT_AUTO,
) -> Packed:
    """Pack what the plan lets go.

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
    )
    envelope.capture_time.FromMilliseconds(int(identity.captured_at * 1000))
    announced: list[OutboxPart] = []
    inline = 0
    for part in _pictures(examined, plan, pictures):
        if inline + part.size <= _INLINE_BYTES:
            inline += part.size
        else:
            announced.append(OutboxPart(part.part_id, part.data))
            part.data = b""
        envelope.parts.append(part)
    check_envelope(envelope)
    request = analysis_service_pb2.SubmitRequest(envelope=envelope)
    return Packed(request.SerializeToString(), tuple(announced), examined.timings)


def pack_original(identity: Identity, data: bytes) -> Packed:
    """Pack a file that cannot be read here, as it is."""
    envelope = original_envelope(
        identity.file_name, data, request_id=identity.request_id, effort=envelope_pb2.EFFORT_AUTO
    )
    envelope.document_id = identity.document_id
    del envelope.route.reasons[:]
    envelope.route.reasons.add(code="READER_STOPPED", detail="reading it stopped the agent: sent as it is")
    parts = () if envelope.parts[0].data else (OutboxPart(envelope.parts[0].part_id, data),)
    request = analysis_service_pb2.SubmitRequest(envelope=envelope)
    return Packed(request.SerializeToString(), parts, {})


def resized(pixels: Pixels, scale: float) -> Pixels:
    """The picture scaled down; a scale of 1 or more leaves it as it is."""
    height, width = pixels.shape[:2]
    if scale >= 1:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _pictures(examined: Examined, plan: Plan, pictures: Pictures) -> list[envelope_pb2.Part]:
    page, decision = examined.page, plan.route.decision
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
    sources = {scale: _source(examined, scale) for scale in {wanted.scale for wanted in plan.crops}}
    for number, wanted in enumerate(plan.crops):
        pixels, box = crop(sources[wanted.scale], wanted.box)
        data = encode_webp(pixels, wanted.quality or pictures.crop_quality, grey=True)
        parts.append(_part(f"crop-{number + 1}", envelope_pb2.PART_KIND_CROP, data, page=wanted.page, box=box))
    return parts


def _source(examined: Examined, scale: float) -> Pixels:
    """The page at that scale: smaller than it was prepared, or cut anew from the frame where that is sharper."""
    if scale > 1 and examined.frame is not None:
        geometry = geometry_of(examined.page, examined.frame)
        if geometry is not None and sharpness(geometry) > 1:
            return cut(examined.frame, geometry, None, scale)
    return resized(examined.page.pixels, scale)


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
