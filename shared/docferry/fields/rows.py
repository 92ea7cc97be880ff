"""Lines grouped by where they stand: rows across a page, and segments of text within a row.

A reader may cut one printed row into several boxes (keyword left, amount right) or hand its lines over in any order,
so the rules look at geometry, never at the order of the lines.
"""

from __future__ import annotations

import functools
import statistics
from dataclasses import dataclass

from docferry.document import Document, Evidence, Line, Page


@dataclass(frozen=True, slots=True)
class Piece:
    """One line of the document with its upright box in pixels of the prepared page."""

    page: int
    line: Line
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """Pixels from top to bottom; never 0."""
        return max(self.bottom - self.top, 1e-6)

    @property
    def middle(self) -> float:
        """The vertical centre, pixels."""
        return (self.top + self.bottom) / 2

    @property
    def evidence(self) -> Evidence:
        """This line as evidence."""
        return Evidence(self.page, self.line.box, self.line.id)


@dataclass(frozen=True)
class Row:
    """Pieces that stand side by side, from left to right. `page` counts from 0, `index` from the document's top."""

    page: int
    index: int
    pieces: tuple[Piece, ...]

    @functools.cached_property
    def text(self) -> str:
        """The row's text, pieces joined by a space."""
        return " ".join(piece.line.text for piece in self.pieces)

    @functools.cached_property
    def middle(self) -> float:
        """The mean vertical centre, pixels."""
        return statistics.fmean(piece.middle for piece in self.pieces)


@dataclass(frozen=True)
class Segment:
    """Pieces of one row that stand so close that they are one run of text."""

    row: int
    pieces: tuple[Piece, ...]

    @functools.cached_property
    def text(self) -> str:
        """The run of text, pieces joined by a space."""
        return " ".join(piece.line.text for piece in self.pieces)

    @property
    def page(self) -> int:
        """Page number from 0."""
        return self.pieces[0].page

    @property
    def left(self) -> float:
        """Left edge, pixels."""
        return self.pieces[0].left

    @property
    def right(self) -> float:
        """Right edge, pixels."""
        return max(piece.right for piece in self.pieces)

    @functools.cached_property
    def top(self) -> float:
        """Upper edge, pixels."""
        return min(piece.top for piece in self.pieces)

    @functools.cached_property
    def bottom(self) -> float:
        """Lower edge, pixels."""
        return max(piece.bottom for piece in self.pieces)

    @functools.cached_property
    def height(self) -> float:
        """Median height of its pieces, pixels."""
        return statistics.median(piece.height for piece in self.pieces)


_MAX_GAP = 1.6
"""A wider gap, in text heights, ends a segment: about four letters."""


def find_rows(document: Document) -> tuple[Row, ...]:
    """All rows of the document, page by page, from top to bottom."""
    rows: list[Row] = []
    for number, page in enumerate(document.pages):
        for pieces in _rows_of_page(number, page):
            rows.append(Row(number, len(rows), pieces))
    return tuple(rows)


def find_segments(rows: tuple[Row, ...]) -> tuple[Segment, ...]:
    """The segments of all rows, top to bottom and left to right within a row."""
    segments: list[Segment] = []
    for row in rows:
        run = [row.pieces[0]]
        for piece in row.pieces[1:]:
            if piece.left - run[-1].right > _MAX_GAP * min(piece.height, run[-1].height):
                segments.append(Segment(row.index, tuple(run)))
                run = []
            run.append(piece)
        segments.append(Segment(row.index, tuple(run)))
    return tuple(segments)


def _rows_of_page(number: int, page: Page) -> list[tuple[Piece, ...]]:
    pieces = [_piece(number, page, line) for line in page.lines if line.text.strip()]
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: (piece.middle, piece.left)):
        # Only the latest rows can still be beside it; on a page seen askew a few of them are open at once.
        fitting = [row for row in rows[-6:] if _beside(row, piece)]
        if fitting:
            min(fitting, key=lambda row: abs(_nearest(row, piece).middle - piece.middle)).append(piece)
        else:
            rows.append([piece])
    ordered = [tuple(sorted(row, key=lambda piece: piece.left)) for row in rows]
    return sorted(ordered, key=lambda row: statistics.fmean(piece.middle for piece in row))


def _piece(number: int, page: Page, line: Line) -> Piece:
    x0, y0, x1, y1 = line.box
    return Piece(number, line, x0 * page.width, y0 * page.height, x1 * page.width, y1 * page.height)


def _nearest(row: list[Piece], piece: Piece) -> Piece:
    return min(row, key=lambda other: max(other.left - piece.right, piece.left - other.right))


def _beside(row: list[Piece], piece: Piece) -> bool:
    """Whether `piece` continues `row`: level with its nearest member and not over or under any of them."""
    near = _nearest(row, piece)
    if abs(near.middle - piece.middle) > 0.5 * min(near.height, piece.height):
        return False
    for other in row:
        shared = min(other.right, piece.right) - max(other.left, piece.left)
        if shared > 0.5 * min(other.right - other.left, piece.right - piece.left):
            return False
    return True
