"""Intake: an envelope is bounded and checked whole before anything of it is stored."""

from __future__ import annotations

import hashlib

from google.protobuf.message import Message

from docferry.envelope import check_envelope, part_name
from docferry.errors import EnvelopeError, EnvelopeTooLarge, InputError
from docferry.packing import MAX_PAGES, unpack_reading
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import analysis_service_pb2 as service_pb
from docferry.v1 import envelope_pb2 as pb
from docferry.wire import document_to_proto
from docferry_cloud import places
from docferry_cloud.pictures import check_picture, is_picture
from docferry_cloud.rows import Caller, NewPart, NewVersion, Submission
from docferry_cloud.supply import Chunk

MAX_ANNOUNCED_BYTES = 128 << 20
"""All announced parts of one envelope together: they are held in memory at once when the work begins."""

MAX_WITHIN_S = 30 * 86400
"""The longest deadline."""


def envelope_hash(envelope: pb.Envelope) -> tuple[bytes, bytes]:
    """The bytes that are stored for an envelope, and their SHA-256: one body, one hash."""
    body = envelope.SerializeToString(deterministic=True)
    return body, hashlib.sha256(body).digest()


def submission(request: service_pb.SubmitRequest, caller: Caller) -> Submission:
    """A checked submission, ready to be stored. Pure; takes milliseconds for a large envelope.

    Raises:
        EnvelopeError, EnvelopeTooLarge, UnsupportedVersion: The envelope breaks the contract.
        UnreadableImage, ImageTooLarge: A picture inside it cannot be used.
        InputError: The time that it is given is none.
    """
    envelope = request.envelope
    check_envelope(envelope)
    _check_announced(envelope)
    for index, part in enumerate(envelope.parts):
        _check_part(f"envelope.parts[{index}]", part)
    body, digest = envelope_hash(envelope)
    return Submission(
        caller=caller,
        request_id=envelope.request_id,
        document_id=envelope.document_id,
        body=body,
        body_sha256=digest,
        file_name=envelope.file_name,
        effort=envelope.effort,
        route=envelope.route.SerializeToString(deterministic=True),
        traffic=_traffic(envelope, request).SerializeToString(deterministic=True),
        announced=tuple(_announced(part) for part in envelope.parts if not part.data),
        edge=_edge_version(envelope),
        within_s=_within(request),
        lane=places.BACKGROUND if request.urgency == service_pb.URGENCY_BACKGROUND else places.INTERACTIVE,
    )


def chunk(request: service_pb.SupplyRequest) -> Chunk:
    """The chunk in a Supply."""
    return Chunk(
        analysis_id=request.analysis_id,
        part_id=request.part_id,
        offset=request.offset,
        total_size=request.total_size,
        sha256=request.sha256,
        data=request.data,
        message_bytes=request.ByteSize(),
    )


def _within(request: service_pb.SubmitRequest) -> float | None:
    if not request.HasField("finish_within"):
        return None
    seconds = request.finish_within.seconds + request.finish_within.nanos / 1e9
    if not 1 <= seconds <= MAX_WITHIN_S:
        raise InputError(
            f"finish_within is {seconds:g} s",
            remedy=f"give 1..{MAX_WITHIN_S} s, or leave it out",
            field="finish_within",
        )
    return seconds


def _check_part(place: str, part: pb.Part) -> None:
    if part.page >= MAX_PAGES:
        raise EnvelopeError(
            f"{place}.page is {part.page}", remedy=f"number pages 0..{MAX_PAGES - 1}", field=f"{place}.page"
        )
    if part.data and is_picture(part):
        check_picture(part.data, f"part {part.part_id}", f"{place}.data")


def _check_announced(envelope: pb.Envelope) -> None:
    announced = sum(part.size for part in envelope.parts if not part.data)
    if announced > MAX_ANNOUNCED_BYTES:
        raise EnvelopeTooLarge(
            f"the envelope announces {announced} bytes",
            remedy=f"announce at most {MAX_ANNOUNCED_BYTES} in all parts together; split the document",
            field="envelope.parts",
        )


def _edge_version(envelope: pb.Envelope) -> NewVersion | None:
    """The edge's reading as version 1, unpacked within its bounds."""
    if not envelope.HasField("structure"):
        return None
    document = document_to_proto(unpack_reading(envelope.structure).document)
    return NewVersion("edge", _bytes(analysis_pb.Interpretation(document=document)))


def _announced(part: pb.Part) -> NewPart:
    return NewPart(part.part_id, _bytes(part), part.size, part.sha256)


def _traffic(envelope: pb.Envelope, request: service_pb.SubmitRequest) -> analysis_pb.Traffic:
    sizes: dict[str, int] = {}
    if envelope.HasField("structure"):
        sizes["structure"] = len(envelope.structure.data) + len(envelope.structure.texts)
    for part in envelope.parts:
        if part.data:
            name = part_name(part.kind)
            sizes[name] = sizes.get(name, 0) + len(part.data)
    sent = request.ByteSize()
    sizes["frame"] = sent - sum(sizes.values())
    return analysis_pb.Traffic(
        original_bytes=envelope.original_bytes,
        sent_bytes=sent,
        parts=[analysis_pb.PartTraffic(kind=kind, bytes=size) for kind, size in sizes.items()],
    )


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)
