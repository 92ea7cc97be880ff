"""A table's grid from where its words stand and where rules run. Pure geometry; for text layers, whose boxes are exact.

Words that stand close form segments; segments that are level form rows; the gaps that few rows cross are the borders of
columns. A rule between two rows parts them; rows that no rule parts and that stand closer than the others are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from docferry.document import Box
from docferry.rectangles import around
from docferry.tables import Cell, Grid
from docferry_cloud.tables.matching import Placed

_SPACE = 0.62
"""Heights of a line between two words of one cell, at most."""

_CROSSED = 0.12
"""Share of the rows with several segments that may cross the border between two columns: cells that span both."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Words that stand beside one another without a gap: one cell, or one line of it."""

    box: Box
    text: str


def rows_of(words: Sequence[Placed]) -> list[list[Segment]]:
    """Rows from top to bottom of segments from left to right."""
    rows: list[list[Placed]] = []
    for word in sorted(words, key=lambda word: (word.box[1] + word.box[3], word.box[0])):
        if rows and _level(word.box, _middle_of(rows[-1])):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [_segments(sorted(row, key=lambda word: word.box[0])) for row in rows]


def aligned_grid(words: Sequence[Placed], rules: Sequence[Box]) -> Grid:
    """The grid of a table without its head told apart; no cells where there are fewer than two columns or rows.

    Args:
        words: All words of the table and no others.
        rules: Horizontal and vertical rules near it, as boxes.
    """
    rows = rows_of(words)
    borders = columns_of(rows, [rule for rule in rules if rule[3] - rule[1] > rule[2] - rule[0]])
    if len(rows) < 2 or not borders:
        return Grid()
    flat = [rule for rule in rules if rule[2] - rule[0] > rule[3] - rule[1]]
    cells: list[Cell] = []
    for number, row in enumerate(_joined_rows(rows, borders, flat)):
        cells += _row_cells(number, row, borders)
    return Grid(tuple(cells))


def columns_of(rows: Sequence[Sequence[Segment]], rules: Sequence[Box] = ()) -> list[float]:
    """Where one column ends and the next begins: x, rising; empty where there is one column."""
    telling = [row for row in rows if len(row) > 1]
    if not telling:
        return []
    most = max(len(row) for row in telling)
    telling = [row for row in telling if len(row) >= 0.5 * most] or telling
    edges = sorted({segment.box[side] for row in telling for segment in row for side in (0, 2)})
    allowed = _CROSSED * len(telling)
    borders: list[float] = []
    begun: float | None = None
    for left, right in pairwise(edges):
        middle = (left + right) / 2
        crossing = sum(any(s.box[0] < middle < s.box[2] for s in row) for row in telling)
        parted = sum(row[0].box[0] < middle < row[-1].box[2] for row in telling) - crossing
        if crossing <= allowed and parted:
            begun = left if begun is None else begun
        elif begun is not None:
            borders.append((begun + left) / 2)
            begun = None
    top, bottom = rows[0][0].box[1], rows[-1][0].box[3]
    tall = {round((rule[0] + rule[2]) / 2) for rule in rules if rule[3] - rule[1] > 0.8 * (bottom - top)}
    left, right = edges[0], edges[-1]
    for x in sorted(tall):
        crossing = sum(any(s.box[0] + 1 < x < s.box[2] - 1 for s in row) for row in rows)
        if left < x < right and not crossing and all(_parts(rows, x, border) for border in borders):
            borders.append(float(x))
    return sorted(borders)


def _parts(rows: Sequence[Sequence[Segment]], one: float, other: float) -> bool:
    """Whether some segment stands between two borders."""
    low, high = min(one, other), max(one, other)
    return any(low < (s.box[0] + s.box[2]) / 2 < high for row in rows for s in row)


def _joined_rows(rows: Sequence[list[Segment]], borders: Sequence[float], rules: Sequence[Box]) -> list[list[Segment]]:
    """Lines of text that belong to one row of the table brought together."""
    if len(rows) < 3:
        return [list(row) for row in rows]
    boxes = [around(segment.box for segment in row) for row in rows]
    left, right = min(box[0] for box in boxes), max(box[2] for box in boxes)
    wide = [rule for rule in rules if min(rule[2], right) - max(rule[0], left) > 0.6 * (right - left)]
    parted = [
        any(above[1] < r[1] < below[3] and _between(above, below, r) for r in wide) for above, below in _pairs(boxes)
    ]
    steps = [below[1] - above[1] for above, below in _pairs(boxes)]
    ruled = sum(parted) >= 0.3 * len(parted)
    closest = min(steps)
    joined: list[list[Segment]] = [list(rows[0])]
    for row, split, step in zip(rows[1:], parted, steps, strict=True):
        if ruled:
            goes_on = not split
        else:
            goes_on = _continues(row, joined[-1], borders) and step < 1.25 * closest < 0.9 * median(steps)
        if goes_on:
            joined[-1].extend(row)
        else:
            joined.append(list(row))
    return joined


def _continues(row: Sequence[Segment], above: Sequence[Segment], borders: Sequence[float]) -> bool:
    """Whether a line of text may go on the row above: it has fewer segments, each under one of that row."""
    own = {_column(segment, borders)[0] for segment in row}
    over = {_column(segment, borders)[0] for segment in above}
    return len(own) < max(2, len(borders) + 1) and own <= over


def _between(above: Box, below: Box, rule: Box) -> bool:
    middle = (rule[1] + rule[3]) / 2
    return (above[1] + above[3]) / 2 < middle < (below[1] + below[3]) / 2


def _pairs(boxes: Sequence[Box]) -> list[tuple[Box, Box]]:
    return list(pairwise(boxes))


def _row_cells(number: int, row: Sequence[Segment], borders: Sequence[float]) -> list[Cell]:
    spans: list[tuple[int, int, list[Segment]]] = []
    for segment in sorted(row, key=lambda segment: (segment.box[0], segment.box[1])):
        first, last = _column(segment, borders)
        clash = [span for span in spans if span[0] <= last and first <= span[1]]
        for span in clash:
            spans.remove(span)
        low = min([first, *(span[0] for span in clash)])
        high = max([last, *(span[1] for span in clash)])
        spans.append((low, high, [*(s for span in clash for s in span[2]), segment]))
    taken = {column for first, last, _ in spans for column in range(first, last + 1)}
    spans += [(column, column, []) for column in range(len(borders) + 1) if column not in taken]
    return [
        Cell(number, first, _text(held), columns=last - first + 1, box=around(s.box for s in held) if held else None)
        for first, last, held in sorted(spans, key=lambda span: span[0])
    ]


def _column(segment: Segment, borders: Sequence[float]) -> tuple[int, int]:
    """First and last column that a segment stands in; it may stick out a little."""
    air = min(2.0, 0.1 * (segment.box[2] - segment.box[0]))
    first = sum(border <= segment.box[0] + air for border in borders)
    last = sum(border <= segment.box[2] - air for border in borders)
    return first, max(first, last)


def _text(segments: Sequence[Segment]) -> str:
    return " ".join(s.text for s in sorted(segments, key=lambda s: (round(s.box[1]), s.box[0])))


def _segments(row: Sequence[Placed]) -> list[Segment]:
    segments: list[Segment] = []
    for word in row:
        last = segments[-1] if segments else None
        if last is not None and word.box[0] - last.box[2] <= _SPACE * (word.box[3] - word.box[1]):
            # Accents and superscripts may be written as words of their own on top of the one before.
            glued = word.box[0] - last.box[2] < 0.05 * (word.box[3] - word.box[1])
            text = f"{last.text}{'' if glued else ' '}{word.text}"
            segments[-1] = Segment(around((last.box, word.box)), text)
        else:
            segments.append(Segment(word.box, word.text))
    return segments


def _level(one: Box, other: Box) -> bool:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared > 0.5 * min(one[3] - one[1], other[3] - other[1])


def _middle_of(row: Sequence[Placed]) -> Box:
    return (0.0, median(word.box[1] for word in row), 0.0, median(word.box[3] for word in row))
