"""Which line of text belongs to which cell of a table. Pure geometry in pixels of the table's picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docferry.document import Box

_SAME_ROW = 0.5
"""Share of the lower of two heights that must be common for a line and a cell's content to be level."""

_REACHES = 0.3
"""Share of a cell's content that a line must cover sideways to hold print of it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One piece of text in a cell: where it stands, in pixels, and what it says."""

    box: Box
    text: str


def cell_of(line: Box, cells: Sequence[Box]) -> int | None:
    """The cell whose content shares the most area with a line; without any, the nearest one that is level with it."""
    best, most = None, 0.0
    for number, cell in enumerate(cells):
        shared = _shared(line[0], line[2], cell[0], cell[2]) * _shared(line[1], line[3], cell[1], cell[3])
        if shared > most:
            best, most = number, shared
    if best is not None:
        return best
    level = [number for number, cell in enumerate(cells) if _level(line, cell)]
    return min(level, key=lambda number: _gap(line, cells[number]), default=None)


def cuts(line: Box, cells: Sequence[Box]) -> list[float]:
    """Where a line that runs through the contents of several cells side by side must be cut: x in pixels, rising."""
    crossed = sorted(
        (
            cell
            for cell in cells
            if _level(line, cell)
            and _shared(line[0], line[2], cell[0], cell[2]) >= _REACHES * max(cell[2] - cell[0], 1e-6)
        ),
        key=lambda cell: cell[0] + cell[2],
    )
    found: list[float] = []
    end = None
    for cell in crossed:
        if end is not None:
            # Contents that overlap sideways stand above one another, or the network was not sure: no place to cut.
            if cell[0] <= end - 0.25 * (cell[2] - cell[0]):
                end = max(end, cell[2])
                continue
            found.append((end + cell[0]) / 2)
        end = cell[2] if end is None else max(end, cell[2])
    return [x for x in found if line[0] < x < line[2]]


def joined(pieces: Sequence[Placed]) -> str:
    """The pieces of one cell as one text: rows from top to bottom, each from left to right."""
    rows: list[list[Placed]] = []
    for piece in sorted(pieces, key=lambda piece: piece.box[1] + piece.box[3]):
        if rows and _level(piece.box, rows[-1][0].box):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return " ".join(piece.text for row in rows for piece in sorted(row, key=lambda piece: piece.box[0]))


def _level(one: Box, other: Box) -> bool:
    lower = min(one[3] - one[1], other[3] - other[1])
    return _shared(one[1], one[3], other[1], other[3]) > _SAME_ROW * max(lower, 1e-6)


def _shared(start: float, end: float, other_start: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(start, other_start))


def _gap(one: Box, other: Box) -> float:
    return max(other[0] - one[2], one[0] - other[2], 0.0)
