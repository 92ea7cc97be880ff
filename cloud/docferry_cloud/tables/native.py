"""Tables on born-digital pages: found by the layout network, drawn tight by the text layer, read from it.

SLANet+ sees the rendered table and gives its structure, the text layer gives the words. It is not believed where the
table is larger than it was trained for, and where it is unsure and the words' own alignment tells another number of
rows: then the alignment counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from docferry.document import Box, RegionType
from docferry.reading_order import LayoutBox
from docferry.rectangles import around
from docferry.tables import Cell, Grid, without_empty
from docferry_cloud.tables.aligned import Segment, aligned_grid, columns_of, rows_of
from docferry_cloud.tables.matching import Placed, cell_of, joined
from docferry_cloud.tables.structure import Structure

_MOST_ROWS = 40
_MOST_CELLS = 400
"""Larger tables lose rows in the network's 488 pixels."""

_UNSURE = 0.992

_CAPTION = re.compile(r"(?i)^(table|tab\.|tabelle|tabel|tableau|fig(ure|\.)|chart|表)\s*\d")
_NOTE = re.compile(r"(?i)^(sources?\b|notes?\b|n\.?b\.?\s|\(?\*|†|‡|¹|quelle|注|资料来源|来源)")


@dataclass(frozen=True, slots=True)
class NativeTable:
    """One table of a page in points: its box, drawn around its words, and these words."""

    box: Box
    words: tuple[Placed, ...]


def native_tables(layout: Sequence[LayoutBox], words: Sequence[Placed]) -> list[NativeTable]:
    """The tables of a page.

    Args:
        layout: What the layout network saw, boxes in points.
        words: The page's words.
    """
    found: list[NativeTable] = []
    for box in layout:
        inside = [word for word in words if _holds(box.box, word.box)]
        if box.type is RegionType.TABLE or (box.type is RegionType.IMAGE and _is_grid(inside)):
            found += [table for part in _parts(inside) if (table := _tight(part)) is not None]
    return found


def native_grid(table: NativeTable, rules: Sequence[Box], seen: Structure | None) -> Grid:
    """The table's grid with its text; no cells where it is none.

    Args:
        rules: The page's rules.
        seen: What the network saw of `table.box`, boxes relative to it; None where it was not asked.
    """
    x0, y0, x1, y1 = table.box
    near = [rule for rule in rules if rule[2] > x0 - 5 and rule[0] < x1 + 5 and rule[3] > y0 - 5 and rule[1] < y1 + 5]
    aligned = aligned_grid(table.words, near)
    if seen is None or not seen.grid.cells:
        return aligned
    read = without_empty(_filled(seen.grid, table))
    large = max(aligned.height, read.height) > _MOST_ROWS or aligned.height * aligned.width > _MOST_CELLS
    differs = seen.score < _UNSURE and aligned.width == read.width and aligned.height != read.height
    return aligned if aligned.cells and (large or differs) else read


def _filled(grid: Grid, table: NativeTable) -> Grid:
    x0, y0, x1, y1 = table.box
    boxes = [_on_page(cell, x0, y0, x1 - x0, y1 - y0) for cell in grid.cells]
    inside: list[list[Placed]] = [[] for _ in boxes]
    for word in table.words:
        home = cell_of(word.box, boxes)
        if home is not None:
            inside[home].append(word)
    return Grid(
        tuple(
            replace(cell, text=joined(held), box=around(word.box for word in held) if held else None)
            for cell, held in zip(grid.cells, inside, strict=True)
        )
    )


def _on_page(cell: Cell, x: float, y: float, wide: float, high: float) -> Box:
    box = cell.box or (0.0, 0.0, 0.0, 0.0)
    return x + box[0] * wide, y + box[1] * high, x + box[2] * wide, y + box[3] * high


def _holds(outer: Box, inner: Box) -> bool:
    x, y = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]


def _is_grid(words: Sequence[Placed]) -> bool:
    """Whether words in what the network took for a figure are a table: most rows with three cells and more, aligned."""
    rows = rows_of(words)
    full = [row for row in rows if len(row) >= 3]
    return len(full) >= 3 and len(full) >= 0.6 * len(rows) and len(columns_of(rows)) >= 2


def _parts(words: Sequence[Placed]) -> list[list[Placed]]:
    """The words of each table where the network took two, one above the other, for one."""
    rows = rows_of(words)
    if len(rows) < 6:
        return [list(words)]
    boxes = [around(segment.box for segment in row) for row in rows]
    steps = [below[1] - above[3] for above, below in pairwise(boxes)]
    height = median(box[3] - box[1] for box in boxes)
    cuts = [
        below[1]
        for number, (above, below) in enumerate(pairwise(boxes))
        if below[1] - above[3] > 2.0 * height
        and below[1] - above[3] > 3 * max(median(steps), 0.1 * height)
        and _several(rows[: number + 1]) >= 3
        and _several(rows[number + 1 :]) >= 3
    ]
    ends = [float("-inf"), *cuts, float("inf")]
    return [[word for word in words if top <= word.box[1] + 0.1 < bottom] for top, bottom in pairwise(ends)]


def _several(rows: Sequence[Sequence[Segment]]) -> int:
    return sum(len(row) > 1 for row in rows)


def _tight(words: Sequence[Placed]) -> NativeTable | None:
    """The table without a caption above and notes below that the network took in."""
    rows = rows_of(words)
    if not rows:
        return None
    whole = around(word.box for word in words)
    while len(rows) > 2 and len(rows[0]) == 1 and _CAPTION.match(rows[0][0].text):
        rows = rows[1:]
    while len(rows) > 2 and _is_note(rows, whole):
        rows = rows[:-1]
    if _several(rows) < 2:
        return None
    top = min(segment.box[1] for segment in rows[0])
    bottom = max(segment.box[3] for segment in rows[-1])
    kept = tuple(word for word in words if top - 0.1 <= (word.box[1] + word.box[3]) / 2 <= bottom + 0.1)
    return NativeTable(around(word.box for word in kept), kept) if kept else None


def _is_note(rows: Sequence[Sequence[Segment]], whole: Box) -> bool:
    last, above = rows[-1], rows[-2]
    if len(last) > 1:
        return False
    segment = last[0]
    wide = segment.box[2] - segment.box[0] > 0.7 * (whole[2] - whole[0])
    return bool(_NOTE.match(segment.text)) or (wide and (len(above) == 1 or len(segment.text) > 60))
