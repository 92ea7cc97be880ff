"""A table as cells on a grid, and as HTML. Pure; standard library only."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser

from docferry.document import Box

MOST_SPAN = 1000
"""As in the HTML standard for columns; a larger span is an error of whatever wrote it."""
_MOST_ROWSPAN = 65_534

MOST_PLACES = 1_000_000
"""Rows times columns of a table from HTML: a few bytes of spans must not become gigabytes of places."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        row, column: Where it begins, from 0.
        text: What stands in it, on one line; empty if nothing does.
        rows, columns: How many it spans, at least 1.
        header: Whether it belongs to the table's head.
        box: Where it stands on the page, relative; None where nobody knows.
    """

    row: int
    column: int
    text: str = ""
    rows: int = 1
    columns: int = 1
    header: bool = False
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: cells from left to right, row by row; no two cover the same place."""

    cells: tuple[Cell, ...] = ()

    @property
    def height(self) -> int:
        """Number of rows."""
        return max((cell.row + cell.rows for cell in self.cells), default=0)

    @property
    def width(self) -> int:
        """Number of columns."""
        return max((cell.column + cell.columns for cell in self.cells), default=0)

    @property
    def head(self) -> int:
        """Number of rows at the top whose cells are all of the head."""
        return min((cell.row for cell in self.cells if not cell.header), default=self.height)

    def texts(self) -> list[list[str]]:
        """The text of every place, `height` rows of `width`; a cell that spans stands in each place it covers."""
        table = [[""] * self.width for _ in range(self.height)]
        for cell in self.cells:
            for row in range(cell.row, cell.row + cell.rows):
                for column in range(cell.column, cell.column + cell.columns):
                    table[row][column] = cell.text
        return table

    def places(self) -> list[list[Cell | None]]:
        """The cell that covers each place, or None."""
        table: list[list[Cell | None]] = [[None] * self.width for _ in range(self.height)]
        for cell in self.cells:
            for row in range(cell.row, cell.row + cell.rows):
                for column in range(cell.column, cell.column + cell.columns):
                    table[row][column] = cell
        return table


def placed(rows: Iterable[Sequence[Cell]]) -> Grid:
    """A grid from rows of cells as HTML gives them: each goes to the first free place of its row.

    The cells' own `row` and `column` are replaced; spans are cut where they would cover another cell or leave the
    table. A table has at most `MOST_SPAN` columns and `MOST_PLACES` places: the text of a cell beyond them is added to
    the cell before.
    """
    listed = [tuple(row) for row in rows]
    most = max(1, min(MOST_SPAN, MOST_PLACES // max(1, len(listed))))
    taken: set[tuple[int, int]] = set()
    cells: list[Cell] = []
    beyond: dict[int, list[str]] = {}
    for number, row in enumerate(listed):
        column = 0
        for cell in row:
            while (number, column) in taken:
                column += 1
            if column >= most and cells:
                if cell.text:
                    beyond.setdefault(len(cells) - 1, []).append(cell.text)
                continue
            wide = 1
            while wide < min(cell.columns, most - column) and (number, column + wide) not in taken:
                wide += 1
            high = 1
            while high < min(cell.rows, len(listed) - number) and not any(
                (number + high, column + x) in taken for x in range(wide)
            ):
                high += 1
            taken.update((number + y, column + x) for y in range(high) for x in range(wide))
            cells.append(replace(cell, row=number, column=column, rows=high, columns=wide))
            column += wide
    for index, texts in beyond.items():
        cells[index] = replace(cells[index], text=" ".join([cells[index].text, *texts]).strip())
    return Grid(tuple(cells))


def without_empty(grid: Grid) -> Grid:
    """The grid without the rows and columns in which nothing stands; spans shrink with them."""
    rows = _kept(grid.height, [(cell.row, cell.rows, cell.text) for cell in grid.cells])
    columns = _kept(grid.width, [(cell.column, cell.columns, cell.text) for cell in grid.cells])
    cells = []
    for cell in grid.cells:
        high = sum(row in rows for row in range(cell.row, cell.row + cell.rows))
        wide = sum(column in columns for column in range(cell.column, cell.column + cell.columns))
        if high and wide:
            row, column = sum(at < cell.row for at in rows), sum(at < cell.column for at in columns)
            cells.append(replace(cell, row=row, column=column, rows=high, columns=wide))
    return Grid(tuple(cells))


def _kept(count: int, spans: Sequence[tuple[int, int, str]]) -> set[int]:
    """Rows (or columns) in which some text begins: one that only a span reaches into holds nothing of its own."""
    return {start for start, _, text in spans if text} & set(range(count))


def to_html(grid: Grid) -> str:
    """The table on one line: `<table><thead>..</thead><tbody>..</tbody></table>`, text escaped; empty without cells.

    Cells are `td` in the head too, as in PubTabNet and MinerU.
    """
    if not grid.cells:
        return ""
    by_row: dict[int, list[Cell]] = {}
    for cell in grid.cells:
        by_row.setdefault(cell.row, []).append(cell)
    rows = [
        f"<tr>{''.join(map(_cell_html, sorted(by_row.get(row, []), key=lambda cell: cell.column)))}</tr>"
        for row in range(grid.height)
    ]
    head = grid.head
    parts = ["<table>"]
    if head:
        parts += ["<thead>", *rows[:head], "</thead>"]
    if rows[head:]:
        parts += ["<tbody>", *rows[head:], "</tbody>"] if head else rows[head:]
    return "".join([*parts, "</table>"])


def from_html(source: str) -> Grid:
    """The first table in a piece of HTML; anything but its rows, cells, spans and text is dropped. Never raises."""
    parser = _Reader()
    parser.feed(source)
    parser.close()
    return placed(parser.rows)


def _cell_html(cell: Cell) -> str:
    spans = f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
    spans += f' colspan="{cell.columns}"' if cell.columns > 1 else ""
    return f"<td{spans}>{html.escape(cell.text, quote=False)}</td>"


_SILENT = frozenset({"script", "style", "template"})


class _Reader(HTMLParser):
    """Collects the rows of the first table; cells of tables inside it count as text of the cell around them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[Cell]] = []
        self._depth = 0
        self._over = False
        self._silent = 0
        self._head = False
        self._cell: Cell | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag == "table":
            self._depth += 1
        elif self._over or self._depth != 1:
            self._text.append(" ")
        elif tag in {"thead", "tbody", "tfoot"}:
            self._end_cell()
            self._head = tag == "thead"
        elif tag == "tr":
            self._end_cell()
            self.rows.append([])
        elif tag in {"td", "th"}:
            self._end_cell()
            if not self.rows:
                self.rows.append([])
            given = dict(attrs)
            self._cell = Cell(
                0,
                0,
                rows=_span(given.get("rowspan"), _MOST_ROWSPAN),
                columns=_span(given.get("colspan"), MOST_SPAN),
                header=self._head or tag == "th",
            )
        elif tag in {"br", "p", "div", "li"}:
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "table" and self._depth:
            self._depth -= 1
            if not self._depth:
                self._end_cell()
                self._over = True
        elif tag in {"td", "th", "tr", "thead"} and self._depth == 1:
            self._end_cell()
            if tag == "thead":
                self._head = False

    def handle_data(self, data: str) -> None:
        if self._cell is not None and not self._silent:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._end_cell()

    def _end_cell(self) -> None:
        if self._cell is not None:
            self.rows[-1].append(replace(self._cell, text=" ".join("".join(self._text).split())))
        self._cell = None
        self._text = []


def _span(value: str | None, most: int) -> int:
    if value is None or not (value.isascii() and value.isdigit()):
        return 1
    return max(1, min(int(value[:6]), most))
