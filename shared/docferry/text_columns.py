"""Columns of running text among lines that no layout box holds, though headlines and pictures lie across them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from docferry.document import Box
from docferry.rectangles import middle

_LEAST = 6
"""Long lines on each side that end, or begin, at a gutter."""

_CERTAIN = 20
"""The same, where the lines could be the cells of a table."""

_LONG = 7.0
"""Lines of running text are at least this long, in heights of a line: prices, cells and pieces of formulas are not."""

_AT = 3.0
"""Lines belong to a gutter that end or begin this near to it, in heights of a line, ..."""

_FLUSH = 1.2
"""... and those to its right begin within this much of each other, ..."""

_MOSTLY = 0.7
"""... this share of them."""

_CROSSING = 0.5
"""Lines that lie across a gutter, for one at it on the side with fewer, at most."""

_WIDE = 0.5
"""A gutter is at least this wide, in heights of a line."""


@dataclass(frozen=True, slots=True)
class _Gutter:
    """A place between two columns; `strength` is how many lines on the weaker side are at it."""

    x: float
    strength: int


def text_columns(boxes: Sequence[Box]) -> list[list[int]]:
    """The lines of each piece of a column, and those that lie across columns, each as indices into `boxes`.

    A page is cut at its clearest gutter; lines across it part what is above them from what is below. Each piece is cut
    again. Lines without a gutter of running text stay one piece, as they were given.
    """
    return _parted(list(range(len(boxes))), boxes)


def runs_in_columns(boxes: Sequence[Box]) -> bool:
    """Whether lines are columns of running text for certain: longer ones than a table with sentences in it has."""
    gutter = _gutter(boxes)
    return gutter is not None and gutter.strength >= _CERTAIN


def _parted(indices: list[int], boxes: Sequence[Box]) -> list[list[int]]:
    gutter = _gutter([boxes[index] for index in indices])
    if gutter is None:
        return [indices] if indices else []
    # 0 left of the gutter, 1 right of it, 2 across it: what lies across ends both columns.
    pieces: list[list[int]] = []
    held: tuple[list[int], list[int]] = ([], [])
    across: list[int] = []
    for index in sorted(indices, key=lambda index: middle(boxes[index])):
        box = boxes[index]
        if box[0] < gutter.x < box[2]:
            pieces += [side for side in held if side]
            held = ([], [])
            across.append(index)
            continue
        if across:
            pieces.append(across)
            across = []
        held[box[0] >= gutter.x].append(index)
    pieces += [side for side in (*held, across) if side]
    cut: list[list[int]] = []
    for piece in pieces:
        # In the order they were given in.
        ordered = sorted(piece)
        cut += [ordered] if len(ordered) == len(indices) else _parted(ordered, boxes)
    return cut


def _gutter(lines: Sequence[Box]) -> _Gutter | None:
    """The clearest gutter; None where there is none between running text."""
    if len(lines) < 2 * _LEAST:
        return None
    height = median(line[3] - line[1] for line in lines)
    found = [gutter for x in _thin(lines, height) if (gutter := _at(x, lines, height)) is not None]
    return max(found, key=lambda gutter: gutter.strength, default=None)


def _thin(lines: Sequence[Box], height: float) -> list[float]:
    """Places that few lines lie across: the middles of the gaps between where many end and many begin."""
    ends = [(line[0], 1) for line in lines] + [(line[2], -1) for line in lines]
    runs: list[tuple[float, float, int]] = []
    depth, before = 0, min(line[0] for line in lines)
    for x, changes in groupby(sorted(ends), key=lambda end: end[0]):
        runs.append((before, x, depth))
        depth += sum(change for _, change in changes)
        before = x
    most = max(depth for _, _, depth in runs)
    thin: list[tuple[float, float]] = []
    for left, right, depth in runs:
        if depth <= _CROSSING * most / 2:
            joined = bool(thin) and thin[-1][1] == left
            thin.append((thin.pop()[0] if joined else left, right))
    return [(left + right) / 2 for left, right in thin if right - left >= _WIDE * height]


def _at(x: float, lines: Sequence[Box], height: float) -> _Gutter | None:
    long = [line for line in lines if line[2] - line[0] >= _LONG * height]
    ends = [line for line in long if 0 <= x - line[2] <= _AT * height]
    begins = [line for line in long if 0 <= line[0] - x <= _AT * height]
    strength = min(len(ends), len(begins))
    if strength < _LEAST or sum(line[0] < x < line[2] for line in lines) > _CROSSING * strength:
        return None
    edge = median(line[0] for line in begins)
    flush = sum(abs(line[0] - edge) <= _FLUSH * height for line in begins)
    return _Gutter(x, strength) if flush >= _MOSTLY * len(begins) else None
