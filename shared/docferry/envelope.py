"""What every envelope must keep: checked by the edge before it is stored and by the cloud before it is taken."""

from __future__ import annotations

import hashlib
import math
import re
import uuid

from docferry.channel import MAX_ENVELOPE_BYTES, PROTOCOL_VERSION
from docferry.errors import EnvelopeError, EnvelopeTooLarge, UnsupportedVersion
from docferry.v1 import envelope_pb2 as pb

MAX_PARTS = 256
MAX_REASONS = 32
MAX_PART_BYTES = 64 << 20
"""Largest announced part."""

_PART_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KINDS = frozenset(pb.PartKind.values()) - {pb.PART_KIND_UNSPECIFIED}


def check_envelope(envelope: pb.Envelope) -> None:
    """Check everything that can be checked without unpacking.

    Raises:
        UnsupportedVersion: The sender speaks another protocol.
        EnvelopeTooLarge: Too many bytes or too many parts.
        EnvelopeError: Anything else; the metadata's `field` names the place.
    """
    if envelope.protocol_version != PROTOCOL_VERSION:
        raise UnsupportedVersion(
            f"protocol version {envelope.protocol_version} is not spoken here",
            remedy=f"use a release of Docferry that speaks version {PROTOCOL_VERSION}",
            field="protocol_version",
            supported=str(PROTOCOL_VERSION),
        )
    size = envelope.ByteSize()
    if size >= MAX_ENVELOPE_BYTES:
        raise EnvelopeTooLarge(
            f"the envelope has {size} bytes",
            remedy=f"keep it below {MAX_ENVELOPE_BYTES}: announce large parts and send them by Supply",
            field="envelope",
        )
    _check_uuid("request_id", envelope.request_id)
    _check_uuid("document_id", envelope.document_id)
    _check_known("effort", envelope.effort, pb.Effort.values())
    _check_known("route.decision", envelope.route.decision, pb.RouteDecision.values())
    _check_route(envelope.route)
    if len(envelope.file_name) > 255:
        raise EnvelopeError("file_name is longer than 255 characters", remedy="shorten it", field="file_name")
    if "\0" in envelope.file_name:
        raise EnvelopeError("file_name holds a NUL character", remedy="leave it out", field="file_name")
    if len(envelope.parts) > MAX_PARTS:
        raise EnvelopeTooLarge(
            f"the envelope has {len(envelope.parts)} parts", remedy=f"send at most {MAX_PARTS}", field="parts"
        )
    if not envelope.HasField("structure") and not envelope.parts:
        raise EnvelopeError("the envelope is empty", remedy="send a structure, or at least one part", field="structure")
    seen: set[str] = set()
    for index, part in enumerate(envelope.parts):
        _check_part(f"parts[{index}]", part, seen)


def part_name(kind: pb.PartKind.ValueType) -> str:
    """A part kind as it stands in the traffic account: overview, crop, page, original."""
    return pb.PartKind.Name(kind).removeprefix("PART_KIND_").lower()


def _check_route(route: pb.Route) -> None:
    numbers = [route.risk, route.target_risk, *(reason.value for reason in route.reasons)]
    if not all(map(math.isfinite, numbers)):
        raise EnvelopeError("the route holds a number that is none", remedy="send finite numbers", field="route")
    long = any(len(reason.code) > 64 or len(reason.detail) > 500 for reason in route.reasons)
    if long or len(route.reasons) > MAX_REASONS:
        raise EnvelopeTooLarge(
            "the route's reasons are too many or too long",
            remedy=f"at most {MAX_REASONS}, with codes of 64 and details of 500 characters",
            field="route.reasons",
        )


def _check_part(place: str, part: pb.Part, seen: set[str]) -> None:
    if not _PART_ID.fullmatch(part.part_id) or part.part_id in seen:
        raise EnvelopeError(
            f"{place}.part_id {part.part_id[:64]!r} is malformed or used twice",
            remedy="use 1..64 letters, digits, '.', '_' or '-', once each",
            field=f"{place}.part_id",
        )
    seen.add(part.part_id)
    _check_known(f"{place}.kind", part.kind, _KINDS)
    if not 0 < part.size <= MAX_PART_BYTES:
        raise EnvelopeTooLarge(
            f"{place} has {part.size} bytes", remedy=f"1..{MAX_PART_BYTES} are taken", field=f"{place}.size"
        )
    if len(part.sha256) != 32:
        raise EnvelopeError(
            f"{place}.sha256 has {len(part.sha256)} bytes", remedy="send all 32", field=f"{place}.sha256"
        )
    if part.data and (len(part.data) != part.size or hashlib.sha256(part.data).digest() != part.sha256):
        raise EnvelopeError(
            f"{place}.data does not match its size and sha256", remedy="send it again", field=f"{place}.data"
        )
    box = part.box
    if part.kind == pb.PART_KIND_CROP and not (0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1):
        raise EnvelopeError(
            f"{place}.box is not a box within the page",
            remedy="0 <= x0 < x1 <= 1, same for y",
            field=f"{place}.box",
        )


def _check_uuid(field: str, text: str) -> None:
    try:
        if str(uuid.UUID(text)) == text:
            return
    except ValueError:
        pass
    raise EnvelopeError(
        f"{field} {text[:64]!r} is not a UUID",
        remedy="make one on the device, lower case with dashes",
        field=field,
    )


def _check_known(field: str, value: int, known: object) -> None:
    if value not in known:  # type: ignore[operator]
        raise EnvelopeError(
            f"{field} {value} is unknown to this release",
            remedy="update the service, or send a known one",
            field=field,
        )
