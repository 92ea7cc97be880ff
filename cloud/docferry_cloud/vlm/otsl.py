"""OTSL, the model's table language, as a grid; nothing that was said is lost. Pure; never raises.

`<fcel>` a cell with text, `<ecel>` an empty one, `<lcel>` goes on from the left, `<ucel>` from above, `<xcel>` from
both, `<nl>` ends a row (Lysak et al. 2023, "Optimized Table Tokenization for Table Structure Recognition").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from docferry.document import Mark
from docferry.tables import Cell, Grid, from_html
from docferry.tables.grid import MOST_PLACES, MOST_SPAN

_TOKEN = re.compile(r"<(fcel|ecel|lcel|ucel|xcel|nl)>")
_TABLE = re.compile(r"<table[\s>]", re.IGNORECASE)
_LEFT, _UP, _BOTH = "lcel", "ucel", "xcel"
_OWN = frozenset({"fcel", "ecel"})

Piece = tuple[str, str]
"""A token's name, and the text after it."""


@dataclass(frozen=True, slots=True)
class Table:
    """What a table answer says. Without cells its text stands in `raw` alone, and a mark says why."""

    grid: Grid
    raw: str
    marks: tuple[Mark, ...] = ()


def parse_table(answer: str) -> Table:
    """Read a table answer: OTSL, or HTML where the model wrote that.

    Every letter outside the tokens stands in some cell of the grid, or there is no grid.
    """
    raw = answer.strip()
    if not raw:
        return Table(Grid(), "", (Mark("EMPTY", "the model answered nothing for this table"),))
    if not _TOKEN.search(raw):
        return _from_html(raw) if _TABLE.search(raw) else _without_structure(raw)
    rows, added = _rows(raw)
    width = max(len(row) for row in rows)
    if width > MOST_SPAN or width * len(rows) > MOST_PLACES:
        return Table(Grid(), raw, (Mark("MALFORMED", f"a table of {len(rows)} rows and {width} columns"),))
    marks = []
    if added:
        marks.append(Mark("MALFORMED", f"{added} pieces of text stood outside of cells; they are cells now"))
    grid, orphans = _grid(rows, width)
    if orphans:
        marks.append(Mark("SPANS", f"{orphans} places go on from cells that are not there; they are empty"))
    return Table(grid, raw, tuple(marks))


def _without_structure(raw: str) -> Table:
    return Table(Grid(), raw, (Mark("MALFORMED", "the answer has no table tokens; its text is kept as it is"),))


def _from_html(raw: str) -> Table:
    grid = from_html(raw)
    kept = sum(len("".join(cell.text.split())) for cell in grid.cells)
    said = len("".join(re.sub(r"<[^>]*>", "", raw).split()))
    if not kept:
        return _without_structure(raw)
    # Entities are shorter once they are read, so fewer letters are no proof; many fewer are.
    lost = said - kept > max(8, said // 10)
    marks = (Mark("MALFORMED", "text of the answer stands outside of its table; the answer is kept as lines"),)
    return Table(grid, raw, marks if lost else ())


def _rows(raw: str) -> tuple[list[list[Piece]], int]:
    """Rows of tokens with their texts, at least one place each; and how many texts had no cell of their own."""
    parts = _TOKEN.split(raw)
    rows: list[list[Piece]] = [[]]
    added = 0
    if parts[0].strip():
        rows[-1].append(("fcel", _plain(parts[0])))
        added += 1
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        said = _plain(text)
        if name != "nl":
            # Text makes a cell, whatever the token says.
            added += bool(said) and name != "fcel"
            rows[-1].append(("fcel" if said else name, said))
            continue
        rows.append([])
        if said:
            rows[-1].append(("fcel", said))
            added += 1
    return [row for row in rows if row] or [[("ecel", "")]], added


def _grid(rows: list[list[Piece]], width: int) -> tuple[Grid, int]:
    """The cells, and how many places go on from no cell. Spans are cut where another cell stands."""
    names = [[name for name, _ in row] + ["ecel"] * (width - len(row)) for row in rows]
    texts = [[text for _, text in row] + [""] * (width - len(row)) for row in rows]
    taken: set[tuple[int, int]] = set()
    cells: list[Cell] = []
    orphans = 0
    for row, line in enumerate(names):
        for column, name in enumerate(line):
            if (row, column) in taken:
                continue
            if name not in _OWN:
                orphans += 1
            wide, high = _reach(names, taken, row, column) if name in _OWN else (1, 1)
            taken.update((row + y, column + x) for y in range(high) for x in range(wide))
            cells.append(Cell(row, column, texts[row][column], high, wide))
    return Grid(tuple(cells)), orphans


def _reach(names: list[list[str]], taken: set[tuple[int, int]], row: int, column: int) -> tuple[int, int]:
    """How many columns and rows a cell covers: as far as its row and its column go on, and all between is free."""
    wide = 1
    while column + wide < len(names[0]) and names[row][column + wide] == _LEFT and (row, column + wide) not in taken:
        wide += 1
    high = 1
    while row + high < len(names) and _goes_on(names[row + high][column : column + wide]):
        if any((row + high, column + x) in taken for x in range(wide)):
            break
        high += 1
    return wide, high


def _goes_on(places: list[str]) -> bool:
    """Whether a row's places are the lower part of a cell: the first from above, the others from both sides.

    Models write the inner places as `<ucel>` or `<lcel>` too; whatever has no text of its own belongs to the cell.
    """
    return places[0] == _UP and not any(name in _OWN for name in places[1:])


def _plain(text: str) -> str:
    return " ".join(text.split())
