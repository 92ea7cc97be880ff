"""A Word document into blocks, from its XML: paragraphs, lists, headings and tables in the order of the file.

What a reader sees counts: inserted text that is tracked but not yet accepted, content controls and links are read,
deleted text is not. A table inside a cell is text of that cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from docx.oxml.ns import qn

from docferry.document import RegionType
from docferry.errors import ImageTooLarge
from docferry.tables import Cell, Grid
from docferry_cloud.documents.block import MOST_COLUMNS, MOST_ROWS, Block, plain

_WRAPPERS = frozenset(
    map(qn, ("w:sdt", "w:sdtContent", "w:customXml", "w:ins", "w:moveTo", "w:smartTag", "w:AlternateContent"))
)
"""Elements that only hold others, at any level."""

_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_PARAGRAPH, _TABLE, _ROW, _CELL = map(qn, ("w:p", "w:tbl", "w:tr", "w:tc"))
_TEXT, _GONE = qn("w:t"), frozenset(map(qn, ("w:del", "w:moveFrom")))
_SPACES = frozenset(map(qn, ("w:tab", "w:br", "w:cr", "w:p")))
_VALUE = qn("w:val")


def word_blocks(document: Any) -> Iterator[Block]:
    """The blocks of a document that python-docx has opened.

    Raises:
        ImageTooLarge: A table has more rows or columns than anybody reads.
    """
    styles = {style.style_id: style.name or "" for style in document.styles}
    for element in _inside(document.element.body, {_PARAGRAPH, _TABLE}):
        if element.tag == _TABLE:
            grid = _grid(element)
            if grid.cells:
                yield Block(RegionType.TABLE, grid=grid)
        elif text := _text(element):
            style = element.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
            yield Block(_kind("" if style is None else styles.get(style.get(_VALUE, ""), "")), (text,))


def _kind(style: str) -> RegionType:
    if style.startswith(("Heading", "Title")):
        return RegionType.TITLE
    if style.startswith("List"):
        return RegionType.LIST_ITEM
    return RegionType.TABLE_CAPTION if style == "Caption" else RegionType.TEXT


def _inside(element: Any, wanted: set[str]) -> Iterator[Any]:
    """Children of these kinds, those in wrappers too."""
    # A stack, since wrappers may be nested more deeply than Python calls.
    waiting = list(element)[::-1]
    while waiting:
        child = waiting.pop()
        if child.tag in wanted:
            yield child
        elif child.tag in _WRAPPERS:
            waiting += list(child)[::-1]


def _text(element: Any) -> str:
    """All text under an element on one line, as it will be when every change is accepted."""
    pieces: list[str] = []
    waiting = [element]
    while waiting:
        child = waiting.pop()
        if child.tag == _TEXT:
            pieces.append(child.text or "")
        elif child.tag not in _GONE and child.tag != _FALLBACK:
            if child.tag in _SPACES:
                pieces.append(" ")
            waiting += list(child)[::-1]
    return plain("".join(pieces))


@dataclass(frozen=True, slots=True)
class _Merged:
    """The cell that a column's vertical merge has begun with, by its number, and the row it reaches so far."""

    cell: int
    row: int


def _grid(table: Any) -> Grid:
    cells: list[Cell] = []
    merging: dict[int, _Merged] = {}
    for number, row in enumerate(_inside(table, {_ROW})):
        if number >= MOST_ROWS:
            raise _too_large(f"more than {MOST_ROWS} rows")
        column = _number(row, "w:trPr", "w:gridBefore", 0)
        for cell in _inside(row, {_CELL}):
            wide = max(1, _number(cell, "w:tcPr", "w:gridSpan", 1))
            if column + wide > MOST_COLUMNS:
                raise _too_large(f"more than {MOST_COLUMNS} columns")
            merge = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
            above = merging.pop(column, None)
            if merge is not None and merge.get(_VALUE) != "restart" and above and above.row == number - 1:
                begun = cells[above.cell]
                cells[above.cell] = replace(begun, rows=number - begun.row + 1)
                merging[column] = _Merged(above.cell, number)
            else:
                if merge is not None:
                    merging[column] = _Merged(len(cells), number)
                cells.append(Cell(number, column, _text(cell), 1, wide))
            column += wide
    return Grid(tuple(cells))


def _number(element: Any, properties: str, name: str, default: int) -> int:
    found = element.find(f"{qn(properties)}/{qn(name)}")
    text = "" if found is None else found.get(_VALUE, "")
    return int(text[:6]) if text.isascii() and text.isdigit() else default


def _too_large(what: str) -> ImageTooLarge:
    return ImageTooLarge(
        f"a table of the Word document has {what}",
        remedy=f"at most {MOST_ROWS} rows of {MOST_COLUMNS} columns are read; split the table",
    )
