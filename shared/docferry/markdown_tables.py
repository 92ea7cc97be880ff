"""Tables in Markdown: rows and columns from geometry, and HTML tables with nothing but a table in them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

_MOST_SPAN = 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of text in one row of a table: where it starts and ends across the page, and its text, escaped already."""

    left: float
    right: float
    text: str


def pipe_table(rows: Sequence[Sequence[Cell]]) -> str:
    """Rows of cells as a pipe table, the first row as its head; empty where the columns are not clear.

    Columns are clear when the cells of rows with several cells fall into strips that no cell bridges, at least two of
    them, and no row has two cells in one strip. A row with a single cell (a heading inside the table) decides nothing.
    """
    telling = [row for row in rows if len(row) > 1]
    strips = _strips([cell for row in telling for cell in row])
    if len(strips) < 2 or len(telling) < 2:
        return ""
    grid: list[list[str]] = []
    for row in rows:
        places = [_strip_of(cell, strips) for cell in row]
        if len(set(places)) < len(places):
            return ""
        texts = [""] * len(strips)
        for place, cell in zip(places, row, strict=True):
            texts[place] = cell.text
        grid.append(texts)
    ruled = [grid[0], ["---"] * len(strips), *grid[1:]]
    return "\n".join(f"| {' | '.join(texts)} |" for texts in ruled)


def safe_table(source: str) -> str:
    """An HTML table rebuilt from its rows, cells, spans and text alone, on one line; empty if it holds no cell.

    Whatever made the HTML may have copied tags off the paper: any other tag or attribute is dropped, text is escaped.
    """
    parser = _TableParser()
    parser.feed(source)
    parser.close()
    return parser.rebuilt()


def _strips(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    """Disjoint ranges across the page, left to right, that the cells fill."""
    strips: list[tuple[float, float]] = []
    for cell in sorted(cells, key=lambda cell: cell.left):
        if strips and cell.left < strips[-1][1]:
            strips[-1] = (strips[-1][0], max(strips[-1][1], cell.right))
        else:
            strips.append((cell.left, cell.right))
    return strips


def _strip_of(cell: Cell, strips: Sequence[tuple[float, float]]) -> int:
    """The first strip the cell touches, or else the nearest."""

    def distance(place: int) -> float:
        return max(strips[place][0] - cell.right, cell.left - strips[place][1], 0.0)

    return min(range(len(strips)), key=distance)


_STRUCTURE = ("table", "thead", "tbody", "tfoot", "tr", "td", "th")
_CELLS = ("td", "th")
_SILENT = ("script", "style", "template")


@dataclass(slots=True)
class _Output:
    parts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    silent: int = 0
    cells: int = 0


class _TableParser(HTMLParser):
    """Writes back the first table's structure and text; everything stays balanced whatever comes in."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out = _Output()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        out = self._out
        if tag in _SILENT:
            out.silent += 1
        elif tag == "br" and self._in_cell():
            out.parts.append(" ")
        elif tag in _STRUCTURE and (tag == "table") == (not out.open) and not out.silent:
            self._close_until(tag)
            out.open.append(tag)
            out.cells += tag in _CELLS
            out.parts.append(f"<{tag}{_spans(attrs) if tag in _CELLS else ''}>")

    def handle_endtag(self, tag: str) -> None:
        out = self._out
        if tag in _SILENT:
            out.silent = max(0, out.silent - 1)
        elif tag in out.open:
            while out.open[-1] != tag:
                out.parts.append(f"</{out.open.pop()}>")
            out.parts.append(f"</{out.open.pop()}>")

    def handle_data(self, data: str) -> None:
        if self._in_cell() and not self._out.silent:
            # A blank line would end the HTML block and let Markdown act on what follows.
            text = " ".join(data.split())
            lead, trail = data[:1].isspace(), data[-1:].isspace()
            self._out.parts.append(html.escape(f"{' ' * lead}{text}{' ' * trail}" if text else " ", quote=False))

    def rebuilt(self) -> str:
        """The table, closed; empty if there was no cell."""
        closing = [f"</{tag}>" for tag in reversed(self._out.open)]
        return "".join([*self._out.parts, *closing]) if self._out.cells else ""

    def _in_cell(self) -> bool:
        return bool(self._out.open) and self._out.open[-1] in _CELLS

    def _close_until(self, tag: str) -> None:
        """Close what a new row, cell or section implies is over."""
        rank = {"table": 0, "thead": 1, "tbody": 1, "tfoot": 1, "tr": 2, "td": 3, "th": 3}
        while len(self._out.open) > 1 and rank[self._out.open[-1]] >= rank[tag]:
            self._out.parts.append(f"</{self._out.open.pop()}>")


def _spans(attrs: Sequence[tuple[str, str | None]]) -> str:
    kept = ""
    for name in ("rowspan", "colspan"):
        value = next((value for key, value in attrs if key == name), None)
        if value is not None and value.isascii() and value.isdigit() and 1 < int(value[:5]) <= _MOST_SPAN:
            kept += f' {name}="{int(value[:5])}"'
    return kept
