"""Tables that go on over pages, joined for whoever reads them; the pages keep their own parts. Pure.

A table goes on where it is the first of the next page and the one before was the last of its page, nothing but headers,
footers, page numbers and captions that say so stand between, widths agree within a tenth, and columns are as many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from docferry.document import Document, Page, Region, RegionType
from docferry.tables.columns import head_rows
from docferry.tables.grid import Grid, from_html

_BETWEEN = frozenset({RegionType.HEADER, RegionType.FOOTER, RegionType.PAGE_NUMBER})
_GOES_ON = re.compile(r"(?i)\(?\s*(continued|cont\.?|cont'd|fortsetzung|vervolg|续|續)\s*\)?|续表|續表")
_MOST_HEAD = 5


@dataclass(frozen=True, slots=True)
class Joined:
    """A table: its parts as `(page number, region id)`, from 0, and the grid that they make together."""

    parts: tuple[tuple[int, str], ...]
    grid: Grid


def all_tables(document: Document) -> tuple[Joined, ...]:
    """Every table, joined over pages, and then the values of every chart."""
    return (*joined_tables(document), *_charts_as_tables(document))


def _charts_as_tables(document: Document) -> tuple[Joined, ...]:
    """The measured values of every chart of a document, each as a table of its own."""
    return tuple(
        Joined(((number, region.id),), from_html(region.html))
        for number, page in enumerate(document.pages)
        for region in page.regions
        if region.type is RegionType.CHART and region.html
    )


def joined_tables(document: Document) -> tuple[Joined, ...]:
    """Every table of a document in reading order, those that go on over pages as one."""
    found: list[Joined] = []
    open_until: tuple[int, Region] | None = None
    for number, page in enumerate(document.pages):
        tables = [region for region in page.regions if region.type is RegionType.TABLE and region.html]
        for region in tables:
            grid = from_html(region.html or "")
            last = open_until
            if last is not None and last[0] == number - 1 and region is tables[0] and _continues(last, page, region):
                whole = _appended(found[-1].grid, grid)
                if whole is not None:
                    found[-1] = Joined((*found[-1].parts, (number, region.id)), whole)
                    continue
            found.append(Joined(((number, region.id),), grid))
        open_until = (number, tables[-1]) if tables and _is_last(page, tables[-1]) else None
    return tuple(found)


def _is_last(page: Page, table: Region) -> bool:
    after = page.regions[page.regions.index(table) + 1 :]
    return all(region.type in _BETWEEN for region in after)


def _continues(before: tuple[int, Region], page: Page, table: Region) -> bool:
    _, above = before
    for region in page.regions[: page.regions.index(table)]:
        text = " ".join(line.text for line in region.lines)
        says_so = region.type in {RegionType.TABLE_CAPTION, RegionType.TITLE, RegionType.TEXT} and len(text) < 120
        if region.type not in _BETWEEN and not (says_so and _GOES_ON.search(text)):
            return False
    one, other = above.box[2] - above.box[0], table.box[2] - table.box[0]
    return abs(one - other) <= 0.1 * min(one, other)


def _appended(first: Grid, second: Grid) -> Grid | None:
    """Both as one grid, the second one's repeated head dropped; None where their columns do not agree."""
    if first.width != second.width:
        return None
    repeated = _repeated(first, second)
    shift = first.height - repeated
    rest = [replace(cell, row=cell.row + shift, header=False) for cell in second.cells if cell.row >= repeated]
    return Grid((*first.cells, *rest))


def _repeated(first: Grid, second: Grid) -> int:
    """How many rows at the second one's top are the first one's head again."""
    one, other = first.texts(), second.texts()
    most = min(max(head_rows(first), 1), _MOST_HEAD, second.height - 1)
    for count in range(most, 0, -1):
        same = all(_folded(a) == _folded(b) for a, b in zip(one[:count], other[:count], strict=True))
        if same and all(cell.row + cell.rows <= count for cell in second.cells if cell.row < count):
            return count
    return 0


def _folded(row: Sequence[str]) -> list[str]:
    return ["".join(text.casefold().split()) for text in row]
