"""Columns of whole numbers for where lines stand: small differences instead of coordinates. See envelope.proto."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from docferry.document import Box, Point, Polygon
from docferry.errors import EnvelopeError

STEPS = 4096
"""Steps a page is divided into, both ways, where its size in pixels is not known."""

Cell = tuple[int, int]
"""A point in steps of a grid."""
Row = tuple[int, int, int, int]
"""An upright box in steps: x0, y0, x1, y1."""
Shape = tuple[Cell, Cell, Cell, Cell]


@dataclass(frozen=True, slots=True)
class Grid:
    """Whole steps that a page is divided into; a coordinate is rounded to the nearest one."""

    across: int = STEPS
    down: int = STEPS

    def snap(self, point: Point) -> Cell:
        """The nearest step; points outside the page come to lie on its edge."""
        return round(_within(point[0]) * self.across), round(_within(point[1]) * self.down)

    def point(self, cell: Cell) -> Point:
        """The relative point of a step; cells outside the page come to lie on its edge."""
        return _within(cell[0] / self.across), _within(cell[1] / self.down)

    def row(self, box: Box) -> Row:
        """A box in steps."""
        return (*self.snap((box[0], box[1])), *self.snap((box[2], box[3])))

    def box(self, row: Row) -> Box:
        """A relative box, its corners in order."""
        x0, y0, x1, y1 = row
        return (*self.point((x0, y0)), *self.point((max(x0, x1), max(y0, y1))))

    def shape(self, polygon: Polygon) -> Shape:
        """A polygon in steps."""
        a, b, c, d = polygon
        return self.snap(a), self.snap(b), self.snap(c), self.snap(d)

    def polygon(self, shape: Shape) -> Polygon:
        """A relative polygon."""
        a, b, c, d = shape
        return self.point(a), self.point(b), self.point(c), self.point(d)


@dataclass(frozen=True, slots=True)
class LineColumns:
    """The columns `line_lefts`, `line_places`, `tilted`, `tilts`, `slanted` and `polygons` of a page."""

    lefts: bytes
    places: list[int]
    tilted: bytes
    tilts: list[int]
    slanted: list[int]
    polygons: list[int]


def line_columns(shapes: Sequence[Shape], characters: Sequence[int]) -> LineColumns:
    """The columns for lines of these shapes and these numbers of characters."""
    rows = list(map(bounds, shapes))
    tilts: list[int] = []
    slanted: list[int] = []
    polygons: list[int] = []
    bits = bytearray((len(shapes) + 7) // 8)
    for index, shape in enumerate(shapes):
        away = _from_corners(shape)
        if not any(away):
            continue
        tilt = _tilt(away)
        if tilt is None:
            slanted.append(index)
            polygons += away
        else:
            bits[index // 8] |= 1 << index % 8
            tilts += tilt
    lefts = bytes(x >> 8 for x, _, _, _ in rows) + bytes(x & 255 for x, _, _, _ in rows)
    places = list(_places(rows, characters))
    return LineColumns(lefts, places, bytes(bits).rstrip(b"\0"), tilts, slanted, polygons)


def line_shapes(rows: Sequence[Row], columns: LineColumns) -> Iterator[Shape]:
    """The shapes of lines with these boxes.

    Raises:
        EnvelopeError: The columns speak of lines that are not there.
    """
    tilted = [index for index in range(8 * len(columns.tilted)) if columns.tilted[index // 8] >> index % 8 & 1]
    check_length("tilts", len(columns.tilts), 4 * len(tilted))
    check_length("polygons", len(columns.polygons), 8 * len(columns.slanted))
    if any(index >= len(rows) for index in (*tilted, *columns.slanted)):
        raise EnvelopeError("a slant belongs to no line", field="structure", remedy="pack it again")
    away: dict[int, Sequence[int]] = {}
    away |= {index: _untilted(columns.tilts[4 * at : 4 * at + 4]) for at, index in enumerate(tilted)}
    away |= {index: columns.polygons[8 * at : 8 * at + 8] for at, index in enumerate(columns.slanted)}
    for index, row in enumerate(rows):
        offsets = away.get(index, (0,) * 8)
        a, b, c, d = ((x + offsets[2 * k], y + offsets[2 * k + 1]) for k, (x, y) in enumerate(_corners(row)))
        yield a, b, c, d


def rows_of_places(lefts: bytes, places: Sequence[int], characters: Sequence[int]) -> Iterator[Row]:
    """The boxes in the columns `line_lefts` and `line_places`; the inverse of what `line_columns` does."""
    count = len(characters)
    y = height = widths = before = 0
    for index, own in enumerate(characters):
        x = lefts[index] << 8 | lefts[count + index]
        down, more, taller = places[3 * index : 3 * index + 3]
        y, height = y + down, height + taller
        width = more + _usual(own, widths, before)
        yield x, y, x + width, y + height
        widths, before = widths + width, before + own


def check_length(name: str, found: int, wanted: int) -> None:
    """Refuse a column whose length does not fit the others.

    Raises:
        EnvelopeError: It does not; the metadata's `field` names the column.
    """
    if found != wanted:
        raise EnvelopeError(
            f"the structure's {name} has {found} entries, not {wanted}",
            remedy="pack it with docferry.packing",
            field=f"structure.{name}",
        )


def deltas(rows: Iterable[Row]) -> list[int]:
    """Boxes one after the other, each as differences from the one before."""
    flat: list[int] = []
    before: Row = (0, 0, 0, 0)
    for row in rows:
        flat += [value - old for value, old in zip(row, before, strict=True)]
        before = row
    return flat


def undeltas(flat: Sequence[int]) -> Iterator[Row]:
    """The inverse of `deltas`."""
    a = b = c = d = 0
    for start in range(0, len(flat), 4):
        a, b, c, d = a + flat[start], b + flat[start + 1], c + flat[start + 2], d + flat[start + 3]
        yield a, b, c, d


def rows_of_boxes(flat: Sequence[int]) -> Iterator[Row]:
    """The boxes in the column `line_boxes`: x0 and y0 as differences, width and height as they are."""
    x = y = 0
    for start in range(0, len(flat), 4):
        x, y = x + flat[start], y + flat[start + 1]
        yield x, y, x + flat[start + 2], y + flat[start + 3]


def bounds(shape: Shape) -> Row:
    """The upright box around a shape."""
    xs, ys = [x for x, _ in shape], [y for _, y in shape]
    return min(xs), min(ys), max(xs), max(ys)


def _places(rows: Iterable[Row], characters: Sequence[int]) -> Iterator[int]:
    top = tall = widths = before = 0
    for (x0, y0, x1, y1), own in zip(rows, characters, strict=True):
        width, height = x1 - x0, y1 - y0
        yield from (y0 - top, width - _usual(own, widths, before), height - tall)
        top, tall = y0, height
        widths, before = widths + width, before + own


def _usual(characters: int, widths: int, before: int) -> int:
    """The width that a line's characters would take at the mean width of those before it."""
    return characters * widths // before if before else 0


def _corners(row: Row) -> Shape:
    x0, y0, x1, y1 = row
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def _from_corners(shape: Shape) -> list[int]:
    corners = _corners(bounds(shape))
    return [number for (x, y), (cx, cy) in zip(shape, corners, strict=True) for number in (x - cx, y - cy)]


def _tilt(away: Sequence[int]) -> tuple[int, int, int, int] | None:
    """Four numbers for a tilted rectangle's corners, or None for any other shape."""
    ax, ay, bx, by, cx, cy, dx, dy = away
    if ay == bx == cy == dx == 0:
        return ax, by, -cx - ax, -dy - by
    # With neither a nor b the sign could not tell which way it is turned.
    if ax == by == cx == dy == 0 and ay - bx > 0:
        return -ay, bx, -cy - ay, dx + bx
    return None


def _untilted(tilt: Sequence[int]) -> tuple[int, ...]:
    a, b, c, d = tilt
    if a + b >= 0:
        return a, 0, 0, b, -(a + c), 0, 0, -(b + d)
    a, b = -a, -b
    return 0, a, -b, 0, 0, -(a + c), b + d, 0


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
