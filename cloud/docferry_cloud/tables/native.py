"""Tables on born-digital pages: found by the layout network, drawn tight by the text layer, read from it.

SLANet+ sees the rendered table and gives its structure, the text layer gives the words. It is not believed where the
table is larger than it was trained for, and where it is unsure and the words' own alignment tells another number of
rows: then the alignment counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import median

from docferry.document import Box, RegionType
from docferry.reading_order import LayoutBox
from docferry.rectangles import area, around, overlap_area
from docferry.tables import Cell, Grid, without_empty
from docferry_cloud.tables.aligned import Segment, aligned_grid, columns_of, rows_of
from docferry_cloud.tables.matching import Placed, cell_of, joined
from docferry_cloud.tables.structure import Structure

_MOST_ROWS = 40
_MOST_CELLS = 400
"""Larger tables lose rows in the network's 488 pixels."""

_UNSURE = 0.992
_FULL = 0.8
_MOST_RULES = 3000

_CAPTION = re.compile(r"(?i)^(table|tab\.|tabelle|tabel|tableau|fig(ure|\.)|chart|表)\s*\d")
_NOTE = re.compile(r"(?i)^(sources?\b|notes?\b|n\.?b\.?\s|\(?\*|†|‡|¹|quelle|注|资料来源|来源)")


@dataclass(frozen=True, slots=True)
class NativeTable:
    """One table of a page in points: its box, drawn around its words, and these words."""

    box: Box
    words: tuple[Placed, ...]


def native_tables(layout: Sequence[LayoutBox], words: Sequence[Placed], rules: Sequence[Box] = ()) -> list[NativeTable]:
    """The tables of a page.

    Args:
        layout: What the layout network saw, boxes in points.
        words: The page's words.
        rules: The page's rules.
    """
    found: list[NativeTable] = []
    # Tables first: a figure that lies over one is the same thing seen twice.
    for box in sorted(layout, key=lambda box: (box.type is not RegionType.TABLE, -box.score)):
        inside = _inside(box.box, words)
        known = any(overlap_area(box.box, table.box) > 0.5 * min(area(table.box), area(box.box)) for table in found)
        if known or not (box.type is RegionType.TABLE or (box.type is RegionType.IMAGE and _is_grid(inside))):
            continue
        for frame in _frames(inside, [rule for rule in rules if overlap_area(_thick(rule), box.box) > 0]):
            found += [table for part in _parts(frame) if (table := _tight(part)) is not None]
    return found


def _inside(box: Box, words: Sequence[Placed]) -> list[Placed]:
    """The words of a layout box, and those of a column that its sides cut through."""
    for _ in range(2):
        cut = [word.box for word in words if box[1] <= _middle(word.box) <= box[3] and _reaches(word.box, box)]
        if cut:
            left, _, right, _ = around(cut)
            box = (min(box[0], left), box[1], max(box[2], right), box[3])
    return [word for word in words if _holds(box, word.box)]


def _middle(box: Box) -> float:
    return (box[1] + box[3]) / 2


def _reaches(word: Box, box: Box) -> bool:
    """Whether a word stands across a side of the box, or so near it that it may belong to a word that does."""
    return word[0] < box[2] + 1.0 and word[2] > box[0] - 1.0


def _frames(words: Sequence[Placed], rules: Sequence[Box]) -> list[list[Placed]]:
    """The words by the frame of rules they stand in, where frames stand side by side and hold most of them."""
    held = [(frame, [word for word in words if _holds(frame, word.box)]) for frame in _joined_rules(rules)]
    held = [(frame, inside) for frame, inside in held if _several(rows_of(inside)) >= 3]
    beside = all(min(one[3], other[3]) > max(one[1], other[1]) for (one, _), (other, _) in combinations(held, 2))
    if len(held) < 2 or not beside or sum(len(inside) for _, inside in held) < 0.6 * len(words):
        return [list(words)]
    return [inside for _, inside in held]


def _joined_rules(rules: Sequence[Box]) -> list[Box]:
    """Boxes around rules that touch one another, directly or through others."""
    boxes: list[Box] = []
    if len(rules) > _MOST_RULES:
        return boxes
    for rule in rules:
        joint = _thick(rule)
        rest = []
        for box in boxes:
            if overlap_area(box, joint) > 0:
                joint = around((box, joint))
            else:
                rest.append(box)
        boxes = [*rest, joint]
    # A box that grew may touch one that it did not touch before.
    while True:
        again = [(one, other) for one, other in combinations(boxes, 2) if overlap_area(one, other) > 0]
        if not again:
            return boxes
        one, other = again[0]
        boxes = [*(box for box in boxes if box not in (one, other)), around((one, other))]


def _thick(rule: Box) -> Box:
    """A rule with enough breadth to touch those it meets."""
    return rule[0] - 1.0, rule[1] - 1.0, rule[2] + 1.0, rule[3] + 1.0


def native_grid(table: NativeTable, rules: Sequence[Box], seen: Structure | None) -> Grid:
    """The table's grid with its text, boxes in points; no cells where it is none.

    Args:
        rules: The page's rules.
        seen: What the network saw of `table.box`, boxes relative to it; None where it was not asked.
    """
    x0, y0, x1, y1 = table.box
    near = [rule for rule in rules if rule[2] > x0 - 5 and rule[0] < x1 + 5 and rule[3] > y0 - 5 and rule[1] < y1 + 5]
    aligned = aligned_grid(table.words, near)
    if seen is None or not seen.grid.cells:
        return aligned
    if (aligned.height, aligned.width) == (seen.grid.height, seen.grid.width):
        # Two ways of looking agree on the shape: the network knows what spans, the words know where they stand.
        return _with_texts(seen.grid, aligned)
    read = without_empty(_filled(seen.grid, table))
    large = max(aligned.height, read.height) > _MOST_ROWS or aligned.height * aligned.width > _MOST_CELLS
    differs = (
        seen.score < _UNSURE
        and aligned.width == read.width
        and aligned.height != read.height
        and _filled_share(aligned) >= max(_FULL, _filled_share(read))
    )
    return aligned if aligned.cells and (large or differs) else read


def without_notes(table: NativeTable, grid: Grid) -> tuple[NativeTable, Grid]:
    """The table and its grid without rows at the end that one text fills from side to side: notes, not data."""
    cells = list(grid.cells)
    while cells:
        last = max(cell.row for cell in cells)
        row = [cell for cell in cells if cell.row + cell.rows > last]
        if last < 2 or len(row) != 1 or row[0].columns < max(2, grid.width):
            break
        cells.remove(row[0])
    if len(cells) == len(grid.cells):
        return table, grid
    bottom = min(cell.box[1] for cell in grid.cells if cell not in cells and cell.box is not None)
    words = tuple(word for word in table.words if _middle(word.box) < bottom)
    return NativeTable(around(word.box for word in words), words), Grid(tuple(cells))


def _with_texts(shape: Grid, texts: Grid) -> Grid:
    """One grid's cells with the texts that another one of as many rows and columns has in the same places."""
    held: dict[Cell, list[Cell]] = {}
    places = shape.places()
    for cell in texts.cells:
        home = places[cell.row][cell.column]
        if home is not None and cell.text:
            held.setdefault(home, []).append(cell)
    return Grid(
        tuple(
            replace(
                cell,
                text=" ".join(part.text for part in held.get(cell, ())),
                box=around(part.box for part in held[cell] if part.box) if cell in held else None,
            )
            for cell in shape.cells
        )
    )


def _filled_share(grid: Grid) -> float:
    """Share of the cells in which something stands; lines of text taken for rows leave many empty."""
    return sum(bool(cell.text) for cell in grid.cells) / len(grid.cells) if grid.cells else 0.0


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
    lettered = sum(any(letter.isalpha() for letter in segment.text) for row in rows for segment in row)
    # The numbers along the axes and on the bars of a chart are aligned as well.
    worded = lettered >= 0.2 * sum(map(len, rows))
    return worded and len(full) >= 3 and len(full) >= 0.6 * len(rows) and len(columns_of(rows)) >= 2


def _parts(words: Sequence[Placed]) -> list[list[Placed]]:
    """The words of each table where the network took several, one above the other, for one.

    The next one begins after a wide gap, or where the first row's texts come again.
    """
    rows = rows_of(words)
    if len(rows) < 6:
        return [list(words)]
    boxes = [around(segment.box for segment in row) for row in rows]
    gaps = [below[1] - above[3] for above, below in pairwise(boxes)]
    height = median(box[3] - box[1] for box in boxes)
    wide = max(3.0 * height, 3 * median(gaps))
    head = [segment.text for segment in rows[0]]
    cuts = [
        boxes[number][1]
        for number in range(2, len(rows))
        if (gaps[number - 1] > wide or [segment.text for segment in rows[number]] == head)
        and _several(rows[:number]) >= 3
        and _several(rows[number:]) >= 3
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
    while len(rows) > 2 and _is_caption(rows, whole):
        rows = rows[1:]
    rows = rows[: len(rows) - _notes(rows, whole)]
    if _several(rows) < 2:
        return None
    top = min(segment.box[1] for segment in rows[0])
    bottom = max(segment.box[3] for segment in rows[-1])
    kept = tuple(word for word in words if top - 0.1 <= (word.box[1] + word.box[3]) / 2 <= bottom + 0.1)
    return NativeTable(around(word.box for word in kept), kept) if kept else None


def _is_caption(rows: Sequence[Sequence[Segment]], whole: Box) -> bool:
    first = rows[0]
    if len(first) > 1:
        return False
    return bool(_CAPTION.match(first[0].text)) or _is_prose(first[0], whole)


def _is_prose(segment: Segment, whole: Box) -> bool:
    return segment.box[2] - segment.box[0] > 0.7 * (whole[2] - whole[0]) and len(segment.text) > 60


def _notes(rows: Sequence[Sequence[Segment]], whole: Box) -> int:
    """How many rows at the end are notes: from the first that looks like one, if none after it has several pieces."""
    notes = 0
    for number, row in enumerate(reversed(rows[2:]), 1):
        if len(row) > 1:
            break
        if _NOTE.match(row[0].text) or _is_prose(row[0], whole):
            notes = number
    return notes
