"""Bringing a corrected line into the table that was read of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from docferry.tables.grid import Grid


def put_right(grid: Grid, lines: Sequence[str], changes: Mapping[int, str]) -> Grid | None:
    """The table with what stands in its corrected lines; None if a line cannot be told from the cells.

    A line's cell has its text; of several alike the cells stand in the order of the lines. A line that is only part of
    a cell's text is replaced where there is one such place in the whole table.

    Args:
        lines: The region's lines as they read before, in reading order.
        changes: New texts, by the line's place in `lines`.
    """
    cells = list(grid.cells)
    for number, text in changes.items():
        alike = [at for at, line in enumerate(lines) if _bare(line) == _bare(lines[number])]
        whole = [at for at, cell in enumerate(grid.cells) if _bare(cell.text) == _bare(lines[number])]
        if not _bare(lines[number]):
            return None
        if len(whole) == len(alike):
            at = whole[alike.index(number)]
            cells[at] = replace(cells[at], text=text)
            continue
        holding = [at for at, cell in enumerate(cells) if lines[number] in cell.text]
        if whole or len(alike) != 1 or len(holding) != 1 or cells[holding[0]].text.count(lines[number]) != 1:
            return None
        cells[holding[0]] = replace(cells[holding[0]], text=cells[holding[0]].text.replace(lines[number], text))
    return Grid(tuple(cells))


def _bare(text: str) -> str:
    return "".join(text.split())
