"""From layout boxes and lines to a page in reading order. Pure geometry, no numpy.

How it goes:

1. Layout boxes are cleaned: of two that cover each other the better one stays; a figure that is full of text, as the
   network calls most receipts, is none; a caption without anything to caption is text.
2. Every line goes to the box that holds most of it; lines that no box holds are gathered into blocks of their own, so
   that no line is ever lost.
3. Blocks are ordered as Breuel does ("High Performance Document Layout Analysis", 2003): what stands above comes first
   where two blocks share columns, and the left one comes first where they do not, unless a block that spans both
   stands between them.
4. Inside a block, lines form rows (along the text's own slant) from top to bottom, and a row runs from left to right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from docferry.block_order import in_reading_order
from docferry.document import Box, Line, Page, Polygon, Quality, Region, RegionType
from docferry.rectangles import area, around, in_pixels, in_shares, overlap_area, spans
from docferry.text_columns import runs_in_columns, text_columns

_HELD = 0.5
"""A box holds a line when it covers at least this share of it."""

_COVERED = 0.7
"""A layout box is redundant when another covers this share of it."""

_TEXT_FIGURE = 0.15
"""A figure whose lines cover at least this share of it is running text."""

_TEXT_TABLE = 0.4
"""A table of at least this share of the page whose lines run in long columns is a page of a newspaper."""

_STRONG = 0.85
"""On a page with such a figure the network is out of its depth, and only boxes scored this high are believed."""


@dataclass(frozen=True, slots=True)
class LayoutBox:
    """One block a layout network found: its type, its relative box, and the network's raw score."""

    type: RegionType
    box: Box
    score: float


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the arranged page.

    Attributes:
        members: Indices into the lines handed in, in reading order; empty for a block without text.
        score: The layout network's score; 0 for a block gathered from lines that no layout box held.
    """

    type: RegionType
    box: Box
    score: float
    members: tuple[int, ...]


def arrange(width: int, height: int, layout: Iterable[LayoutBox], polygons: Sequence[Polygon]) -> tuple[Block, ...]:
    """Sort lines into blocks and both into reading order.

    Every index into `polygons` appears in exactly one block, once.

    Args:
        width, height: The page's pixels; distances are compared in pixels, not in shares of either side.
        layout: Blocks the layout network found, in any order, possibly overlapping.
        polygons: Lines, relative.
    """
    marks = [_mark(polygon, width, height) for polygon in polygons]
    boxes = _captions_checked(cleaned(_without_text_figures(tuple(layout), marks, width, height)))
    scaled = [in_pixels(box.box, width, height) for box in boxes]
    members: list[list[int]] = [[] for _ in boxes]
    left_over: list[int] = []
    for index, mark in enumerate(marks):
        holder = _holder(mark, scaled)
        (left_over if holder is None else members[holder]).append(index)
    blocks = [
        Block(box.type, box.box, box.score, tuple(_rows(held, marks))) for box, held in zip(boxes, members, strict=True)
    ]
    for group in _gathered(left_over, marks, scaled):
        box = in_shares(around(marks[index].box for index in group), width, height)
        blocks.append(Block(RegionType.TEXT, box, 0.0, tuple(group)))
    placed = [in_pixels(block.box, width, height) for block in blocks]
    return tuple(blocks[index] for index in in_reading_order(placed))


def assemble_page(
    width: int,
    height: int,
    layout: Iterable[LayoutBox],
    lines: Sequence[Line],
    quality: Quality | None = None,
    *,
    provenance: str = "",
) -> Page:
    """The page these blocks and lines make: regions `r1`.., lines `r1.l1`.., all in reading order.

    The lines' own ids are replaced.

    Args:
        width, height: The page's pixels.
        layout: What the layout network found.
        lines: Recognised lines, in any order.
        quality: What the picture is like.
        provenance: Who found the blocks, as in `Line.provenance`.
    """
    blocks = arrange(width, height, layout, [line.polygon for line in lines])
    regions = tuple(
        Region(
            id=region_id(order),
            type=block.type,
            box=block.box,
            order=order,
            score=block.score,
            lines=tuple(replace(lines[index], id=line_id(order, place)) for place, index in enumerate(block.members)),
            provenance=provenance if block.score else "",
        )
        for order, block in enumerate(blocks)
    )
    return Page(width, height, regions, quality or Quality())


def region_id(order: int) -> str:
    """`r1` for the first region of a page."""
    return f"r{order + 1}"


def line_id(order: int, place: int) -> str:
    """`r1.l1` for the first line of the first region."""
    return f"r{order + 1}.l{place + 1}"


def cleaned(layout: Iterable[LayoutBox]) -> tuple[LayoutBox, ...]:
    """Layout boxes without those another one makes redundant, best score first.

    A box goes when a better-scored one mostly covers it, and when it lies inside a table or figure.
    """
    kept: list[LayoutBox] = []
    for box in sorted(layout, key=lambda candidate: -candidate.score):
        if any(_redundant(box, other) for other in kept):
            continue
        kept = [other for other in kept if not _redundant(other, box)]
        kept.append(box)
    return tuple(kept)


def _redundant(box: LayoutBox, other: LayoutBox) -> bool:
    """Whether `box` adds nothing beside `other`."""
    if area(box.box) <= 0:
        return True
    shared = overlap_area(box.box, other.box)
    if shared / area(box.box) < _COVERED:
        return False
    if other.score >= box.score:
        return True
    # The smaller of two nested ones is the better scored: a table or a figure still keeps its own cells.
    return other.type in (RegionType.TABLE, RegionType.IMAGE) and box.type not in (RegionType.TABLE, RegionType.IMAGE)


def _without_text_figures(
    layout: tuple[LayoutBox, ...], marks: Sequence[_Mark], width: int, height: int
) -> tuple[LayoutBox, ...]:
    def is_text(box: LayoutBox) -> bool:
        if box.type not in {RegionType.IMAGE, RegionType.TABLE}:
            return False
        figure = in_pixels(box.box, width, height)
        inside = [mark.box for mark in marks if overlap_area(mark.box, figure) >= _HELD * max(area(mark.box), 1e-9)]
        if box.type is RegionType.TABLE:
            return area(box.box) >= _TEXT_TABLE and runs_in_columns(inside)
        return len(inside) >= 4 and sum(map(area, inside)) >= _TEXT_FIGURE * area(figure)

    rest = tuple(box for box in layout if not is_text(box))
    if len(rest) == len(layout):
        return layout
    return tuple(box for box in rest if box.score >= _STRONG)


_CAPTIONED = {RegionType.IMAGE_CAPTION: RegionType.IMAGE, RegionType.TABLE_CAPTION: RegionType.TABLE}


def _captions_checked(layout: tuple[LayoutBox, ...]) -> tuple[LayoutBox, ...]:
    types = {box.type for box in layout}
    return tuple(
        replace(box, type=RegionType.TEXT) if _CAPTIONED.get(box.type, box.type) not in types else box for box in layout
    )


@dataclass(frozen=True, slots=True)
class _Mark:
    """A line in pixels: its upright box, its centre, its height across the text, its slant and its direction."""

    box: Box
    x: float
    y: float
    thickness: float
    slant: float
    vertical: bool


def _mark(polygon: Polygon, width: int, height: int) -> _Mark:
    points = [(x * width, y * height) for x, y in polygon]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    along = (points[1][0] - points[0][0], points[1][1] - points[0][1])
    thickness = math.dist(points[0], points[3])
    box = (min(xs), min(ys), max(xs), max(ys))
    vertical = abs(along[1]) > abs(along[0])
    slant = math.atan2(along[1], along[0]) if math.hypot(*along) > 3 * thickness else math.nan
    return _Mark(box, sum(xs) / 4, sum(ys) / 4, max(thickness, 1.0), slant, vertical)


def _holder(mark: _Mark, boxes: Sequence[Box]) -> int | None:
    """The box that covers most of the line, of equals the smaller one; else a small box that the line covers."""
    own = max(area(mark.box), 1e-9)
    covered = [(overlap_area(mark.box, box), area(box), number) for number, box in enumerate(boxes)]
    held = [(-common / own, size, number) for common, size, number in covered if common >= _HELD * own]
    # A page number's box is often smaller than the line, which the detector draws with some air.
    around_it = [(size, number) for common, size, number in covered if common > 0 and common >= _HELD * size]
    if held:
        return min(held)[2]
    return max(around_it)[1] if around_it else None


def _rows(indices: Sequence[int], marks: Sequence[_Mark]) -> list[int]:
    """Rows from top to bottom along the text's slant, each from left to right; lines that run downwards come last."""
    across = [index for index in indices if not marks[index].vertical]
    down = [index for index in indices if marks[index].vertical]
    return [index for row in _row_lists(across, marks) for index in row] + sorted(
        down, key=lambda index: (marks[index].x, marks[index].y)
    )


def _row_lists(indices: Sequence[int], marks: Sequence[_Mark]) -> list[list[int]]:
    if not indices:
        return []
    x, y = _straightened(_slant(indices, marks))
    rows: list[list[int]] = []
    for index in sorted(indices, key=lambda i: (y(marks[i]), i)):
        if rows and _same_row(index, rows[-1], marks, y):
            rows[-1].append(index)
        else:
            rows.append([index])
    return [sorted(row, key=lambda i: (x(marks[i]), i)) for row in rows]


def _same_row(index: int, row: Sequence[int], marks: Sequence[_Mark], y: Callable[[_Mark], float]) -> bool:
    """Whether a line stands beside the row's lines: centres within half the smaller height of the row's mean."""
    mean = sum(y(marks[i]) for i in row) / len(row)
    reach = 0.5 * min(marks[index].thickness, max(marks[i].thickness for i in row))
    return y(marks[index]) - mean <= reach


def _slant(indices: Sequence[int], marks: Sequence[_Mark]) -> float:
    """The median slant of the longer lines, radians; 0 when there are none."""
    slants = sorted(marks[i].slant for i in indices if not math.isnan(marks[i].slant) and not marks[i].vertical)
    return slants[len(slants) // 2] if slants else 0.0


def _straightened(slant: float) -> tuple[Callable[[_Mark], float], Callable[[_Mark], float]]:
    """Coordinates along and across text of that slant."""
    cosine, sine = math.cos(slant), math.sin(slant)
    return (lambda mark: mark.x * cosine + mark.y * sine), (lambda mark: mark.y * cosine - mark.x * sine)


def _gathered(indices: Sequence[int], marks: Sequence[_Mark], obstacles: Sequence[Box]) -> list[list[int]]:
    """Blocks made of lines no layout box held, each in reading order.

    Rows that follow one another closely form a block; a layout box between two rows parts them, and so does a gutter
    between two columns of running text. A row of a table or receipt stays one row however wide its gaps are.
    """
    groups = [[index] for index in indices if marks[index].vertical]
    across = [index for index in indices if not marks[index].vertical]
    for part in text_columns([marks[index].box for index in across]):
        inside = [across[place] for place in part]
        for stack in _stacks(_row_lists(inside, marks), marks, obstacles):
            flat = [index for row in stack for index in row]
            for column in _columns(flat, marks):
                if len(column) == len(flat):
                    groups.append(flat)
                else:
                    groups += [
                        [i for row in piece for i in row]
                        for piece in _stacks(_row_lists(column, marks), marks, obstacles)
                    ]
    return groups


def _stacks(rows: Sequence[list[int]], marks: Sequence[_Mark], obstacles: Sequence[Box]) -> list[list[list[int]]]:
    """Consecutive rows that belong together."""
    stacks: list[list[list[int]]] = []
    for row in rows:
        if stacks and not _parted(stacks[-1][-1], row, marks, obstacles):
            stacks[-1].append(row)
        else:
            stacks.append([row])
    return stacks


def _parted(upper: list[int], lower: list[int], marks: Sequence[_Mark], obstacles: Sequence[Box]) -> bool:
    above, below = around(marks[i].box for i in upper), around(marks[i].box for i in lower)
    thickness = min(max(marks[i].thickness for i in row) for row in (upper, lower))
    if below[1] - above[3] > 1.5 * thickness:
        return True
    middle_above, middle_below = (above[1] + above[3]) / 2, (below[1] + below[3]) / 2
    return any(
        middle_above < (box[1] + box[3]) / 2 < middle_below and spans(box, above) and spans(box, below)
        for box in obstacles
    )


def _columns(indices: list[int], marks: Sequence[_Mark]) -> list[list[int]]:
    """Columns of running text, left to right; one column unless every test for a gutter says otherwise.

    Running text fills its column: on both sides of the gutter the typical line must be at least 0.6 of the column's
    width, with at least three lines; names and prices on a receipt do not.
    """
    if len(indices) < 6:
        return [indices]
    thickness = sorted(marks[i].thickness for i in indices)[len(indices) // 2]
    edge = -math.inf
    order = sorted(indices, key=lambda i: marks[i].box[0])
    for place, index in enumerate(order):
        if place and marks[index].box[0] - edge >= thickness:
            left, right = set(order[:place]), set(order[place:])
            if _fills(left, marks, thickness) and _fills(right, marks, thickness):
                rest = [i for i in indices if i in right]
                return [[i for i in indices if i in left], *_columns(rest, marks)]
        edge = max(edge, marks[index].box[2])
    return [indices]


def _fills(indices: set[int], marks: Sequence[_Mark], thickness: float) -> bool:
    if len(indices) < 3:
        return False
    box = around(marks[i].box for i in indices)
    widths = sorted(marks[i].box[2] - marks[i].box[0] for i in indices)
    column = box[2] - box[0]
    return widths[len(widths) // 2] >= 0.6 * column and column >= 8 * thickness
