"""What is drawn over a page: regions and lines in the page's own pixels, with classes for how sure and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from docferry.tables.grid import Cell, from_html
from docferry.v1 import document_pb2 as pb
from docferry.wire import region_type_from_proto

_STEPS = ((0.5, "c0"), (0.75, "c1"), (0.9, "c2"), (0.97, "c3"))
_BLANK = (1000, 1414)
"""Width and height of a page whose size nobody told: A4's proportions."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One line.

    Attributes:
        points: As SVG writes them, in pixels of the page.
        level: Class of its confidence: `c0` (below 0.5) to `c4` (0.97 and more), `cu` where nothing has calibrated it.
        by: `edge`, `cloud` or `person`: who read it.
        told: All of it in words.
        x, y, height: Where its text goes on a blank page.
    """

    line_id: str
    text: str
    points: str
    level: str
    by: str
    told: str
    confidence: float | None
    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Block:
    """One region with its lines; `rows` are the cells of a table, `latex` a formula's source."""

    region_id: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[Shape, ...]
    rows: tuple[tuple[Cell, ...], ...]
    latex: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """A page as it is drawn, in pixels."""

    width: int
    height: int
    blocks: tuple[Block, ...]

    @property
    def lines(self) -> Iterator[Shape]:
        """All lines, in reading order."""
        return (line for block in self.blocks for line in block.lines)


def overlay(page: pb.Page) -> Overlay:
    """What is drawn over a page."""
    width, height = (page.width, page.height) if page.width and page.height else _BLANK
    return Overlay(width, height, tuple(_block(region, width, height) for region in page.regions))


def level(confidence: float | None) -> str:
    """The class of a confidence, see `Shape`."""
    if confidence is None:
        return "cu"
    return next((name for bound, name in _STEPS if confidence < bound), "c4")


def table_rows(html: str) -> tuple[tuple[Cell, ...], ...]:
    """A table's cells row by row: its markup is not taken over, only text and spans."""
    rows: dict[int, list[Cell]] = {}
    for cell in from_html(html).cells:
        rows.setdefault(cell.row, []).append(cell)
    return tuple(tuple(rows.get(number, ())) for number in range(max(rows, default=-1) + 1))


def _block(region: pb.Region, width: int, height: int) -> Block:
    box = region.box
    return Block(
        region_id=region.region_id,
        kind=region_type_from_proto(region.type).value.replace("_", " "),
        x=_pixel(box.x0, width),
        y=_pixel(box.y0, height),
        width=_pixel(max(0.0, box.x1 - box.x0), width),
        height=_pixel(max(0.0, box.y1 - box.y0), height),
        lines=tuple(_shape(line, width, height) for line in region.lines),
        rows=table_rows(region.html) if region.html else (),
        latex=region.latex,
    )


def _shape(line: pb.Line, width: int, height: int) -> Shape:
    confidence = line.confidence if line.HasField("confidence") else None
    xs = [_pixel(value, width) for value in line.polygon[0::2]] or [0.0]
    ys = [_pixel(value, height) for value in line.polygon[1::2]] or [0.0]
    by = reader(line.provenance)
    sure = "not calibrated" if confidence is None else f"{confidence:.2f}"
    return Shape(
        line_id=line.line_id,
        text=line.text,
        points=" ".join(f"{x:g},{y:g}" for x, y in zip(xs, ys, strict=False)),
        level=level(confidence),
        by=by,
        told=f"{line.text} (confidence {sure}, read by {line.provenance or by})",
        confidence=confidence,
        x=min(xs),
        y=max(ys),
        height=max(1.0, max(ys) - min(ys)),
    )


def reader(provenance: str) -> str:
    """Who read: `edge`, `cloud` or `person`."""
    head = provenance.partition(":")[0]
    return head if head in {"edge", "person"} else "cloud"


def _pixel(value: float, size: int) -> float:
    return round(min(1.0, max(0.0, value)) * size, 1)
