"""Between the core's dataclasses and protobuf. Nothing else in the core knows the generated types."""

from __future__ import annotations

from collections.abc import Sequence

from docferry.document import (
    Box,
    Document,
    Evidence,
    Field,
    Line,
    Mark,
    Page,
    Polygon,
    Quality,
    Region,
    RegionType,
)
from docferry.errors import EnvelopeError
from docferry.route import Decision, Reason, Route
from docferry.v1 import document_pb2 as document_pb
from docferry.v1 import envelope_pb2 as envelope_pb

_REGION_NUMBERS: dict[RegionType, document_pb.RegionType.ValueType] = {
    kind: document_pb.RegionType.Value(f"REGION_TYPE_{kind.name}")
    for kind in RegionType
    if kind is not RegionType.UNKNOWN
}
_REGION_KINDS: dict[int, RegionType] = {number: kind for kind, number in _REGION_NUMBERS.items()}


def region_type_to_proto(kind: RegionType) -> document_pb.RegionType.ValueType:
    """The wire's number; UNKNOWN travels as unspecified."""
    return _REGION_NUMBERS.get(kind, document_pb.REGION_TYPE_UNSPECIFIED)


def region_type_from_proto(number: int) -> RegionType:
    """Our name; a number from a newer peer reads as UNKNOWN."""
    return _REGION_KINDS.get(number, RegionType.UNKNOWN)


def box_to_proto(box: Box) -> document_pb.Box:
    """A box for the wire."""
    return document_pb.Box(x0=box[0], y0=box[1], x1=box[2], y1=box[3])


def box_from_proto(box: document_pb.Box) -> Box:
    """A box from the wire, unchecked."""
    return box.x0, box.y0, box.x1, box.y1


def quality_to_proto(quality: Quality) -> document_pb.Quality:
    """A quality report for the wire."""
    return document_pb.Quality(
        sharpness=quality.sharpness,
        brightness=quality.brightness,
        contrast=quality.contrast,
        text_height=quality.text_height,
        orientation=quality.orientation,
        orientation_score=quality.orientation_score,
        hint=quality.hint,
        blur=quality.blur,
        glare=quality.glare,
        cropped_edges=quality.cropped_edges,
        skew=quality.skew,
    )


def quality_from_proto(quality: document_pb.Quality) -> Quality:
    """A quality report from the wire."""
    return Quality(
        sharpness=quality.sharpness,
        brightness=quality.brightness,
        contrast=quality.contrast,
        text_height=quality.text_height,
        orientation=quality.orientation,
        orientation_score=quality.orientation_score,
        hint=quality.hint,
        blur=quality.blur,
        glare=quality.glare,
        cropped_edges=quality.cropped_edges,
        skew=quality.skew,
    )


def line_to_proto(line: Line) -> document_pb.Line:
    """A line for the wire."""
    return document_pb.Line(
        line_id=line.id,
        text=line.text,
        polygon=[number for point in line.polygon for number in point],
        score=line.score,
        confidence=line.confidence,
        provenance=line.provenance,
    )


def line_from_proto(line: document_pb.Line) -> Line:
    """A line from the wire.

    Raises:
        EnvelopeError: The polygon has not eight numbers.
    """
    return Line(
        id=line.line_id,
        text=line.text,
        polygon=polygon_of(line.polygon),
        score=line.score,
        confidence=line.confidence if line.HasField("confidence") else None,
        provenance=line.provenance,
    )


def polygon_of(numbers: Sequence[float]) -> Polygon:
    """Four points from eight numbers.

    Raises:
        EnvelopeError: There are not eight.
    """
    if len(numbers) != 8:
        raise EnvelopeError(f"a polygon has {len(numbers)} numbers", remedy="send eight: x, y of four points")
    a, b, c, d, e, f, g, h = numbers
    return (a, b), (c, d), (e, f), (g, h)


def region_to_proto(region: Region) -> document_pb.Region:
    """A region for the wire."""
    return document_pb.Region(
        region_id=region.id,
        type=region_type_to_proto(region.type),
        box=box_to_proto(region.box),
        order=region.order,
        score=region.score,
        confidence=region.confidence,
        lines=[line_to_proto(line) for line in region.lines],
        html=region.html,
        latex=region.latex,
        provenance=region.provenance,
        marks=[document_pb.Mark(code=mark.code, detail=mark.detail) for mark in region.marks],
    )


def region_from_proto(region: document_pb.Region) -> Region:
    """A region from the wire."""
    return Region(
        id=region.region_id,
        type=region_type_from_proto(region.type),
        box=box_from_proto(region.box),
        order=region.order,
        score=region.score,
        confidence=region.confidence if region.HasField("confidence") else None,
        lines=tuple(line_from_proto(line) for line in region.lines),
        html=region.html if region.HasField("html") else None,
        latex=region.latex if region.HasField("latex") else None,
        provenance=region.provenance,
        marks=tuple(Mark(mark.code, mark.detail) for mark in region.marks),
    )


def field_to_proto(field: Field) -> document_pb.Field:
    """A field for the wire."""
    return document_pb.Field(
        name=field.name,
        value=field.value,
        normalized=field.normalized,
        confidence=field.confidence,
        evidence=[document_pb.Evidence(page=e.page, box=box_to_proto(e.box), line_id=e.line) for e in field.evidence],
    )


def field_from_proto(field: document_pb.Field) -> Field:
    """A field from the wire."""
    return Field(
        name=field.name,
        value=field.value,
        normalized=field.normalized,
        confidence=field.confidence,
        evidence=tuple(Evidence(e.page, box_from_proto(e.box), e.line_id) for e in field.evidence),
    )


def document_to_proto(document: Document) -> document_pb.Document:
    """A document for the wire."""
    return document_pb.Document(
        pages=[
            document_pb.Page(
                width=page.width,
                height=page.height,
                regions=[region_to_proto(region) for region in page.regions],
                quality=quality_to_proto(page.quality),
            )
            for page in document.pages
        ],
        fields=[field_to_proto(field) for field in document.fields],
    )


def document_from_proto(document: document_pb.Document) -> Document:
    """A document from the wire."""
    return Document(
        pages=tuple(
            Page(
                width=page.width,
                height=page.height,
                regions=tuple(region_from_proto(region) for region in page.regions),
                quality=quality_from_proto(page.quality),
            )
            for page in document.pages
        ),
        fields=tuple(field_from_proto(field) for field in document.fields),
    )


def route_to_proto(route: Route) -> envelope_pb.Route:
    """A route for the wire."""
    return envelope_pb.Route(
        decision=envelope_pb.RouteDecision.Value(f"ROUTE_DECISION_{route.decision.name}"),
        reasons=[envelope_pb.RouteReason(code=r.code, detail=r.detail, value=r.value) for r in route.reasons],
        risk=route.risk,
        target_risk=route.target_risk,
    )


def route_from_proto(route: envelope_pb.Route) -> Route:
    """A route from the wire; a decision from a newer peer reads as ORIGINAL, the most cautious."""
    known = route.decision in envelope_pb.RouteDecision.values()
    name = envelope_pb.RouteDecision.Name(route.decision) if known else ""
    short = name.removeprefix("ROUTE_DECISION_")
    return Route(
        decision=Decision[short] if short in Decision.__members__ else Decision.ORIGINAL,
        reasons=tuple(Reason(r.code, r.detail, r.value if r.HasField("value") else None) for r in route.reasons),
        risk=route.risk,
        target_risk=route.target_risk,
    )
