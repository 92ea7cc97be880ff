"""Ruled tables: columns of given shares, cells set left, middle or right, four ways of ruling."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.generator.canvas import BLACK, WHITE, Canvas, Colour, Style, rectangle
from docferry.document import RegionType


class Ruling(enum.Enum):
    """Which rules a table has."""

    GRID = "a box around every cell"
    BAR = "a dark bar behind the head, nothing else"
    LINES = "a rule under every row"
    BOOK = "three rules: above and below the head, and at the end"


@dataclass(frozen=True, slots=True)
class Column:
    """Its head, its share of the width, and how its cells are set (`l`, `m`, `r`)."""

    title: str
    share: float
    anchor: str = "l"


def draw_table(
    canvas: Canvas,
    style: Style,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    x0: float,
    x1: float,
    y: float,
    ruling: Ruling,
    colour: Colour = BLACK,
) -> float:
    """Draw a table and record it as one region; returns the y under it. Long cells wrap."""
    total = sum(column.share for column in columns)
    widths = [column.share / total * (x1 - x0) for column in columns]
    edges = [x0 + sum(widths[:index]) for index in range(len(widths) + 1)]
    pad, thick = style.size * 0.35, max(1, style.size // 14)
    head = replace(style, bold=True, colour=WHITE if ruling is Ruling.BAR else style.colour)
    top = y
    cells: list[list[str]] = []
    with canvas.region(RegionType.TABLE):
        for number, row in enumerate([[column.title for column in columns], *rows]):
            look = head if number == 0 else style
            wrapped = [look.wrap(text, width - 2 * pad) for text, width in zip(row, widths, strict=True)]
            height = max(1, *map(len, wrapped)) * look.line_height + 2 * pad
            if number == 0 and ruling is Ruling.BAR:
                canvas.pen.rectangle((round(x0), round(y), round(x1), round(y + height)), fill=colour)
            for index, lines in enumerate(wrapped):
                place = {
                    "l": edges[index] + pad,
                    "m": (edges[index] + edges[index + 1]) / 2,
                    "r": edges[index + 1] - pad,
                }
                anchor = columns[index].anchor
                for step, line in enumerate(lines):
                    canvas.text(line, place[anchor], y + pad + step * look.line_height, look, anchor)
            if _rule_above(ruling, number):
                canvas.rule(x0, x1, y, thickness=thick, colour=colour)
            cells.append(list(row))
            y += height
    if ruling is not Ruling.BAR:
        canvas.rule(x0, x1, y, thickness=thick, colour=colour)
    if ruling is Ruling.GRID:
        for edge in edges:
            canvas.upright(edge, top, y, thickness=thick, colour=colour)
    canvas.set_table(cells, box=rectangle(x0, top, x1, y))
    return y + thick


def _rule_above(ruling: Ruling, row: int) -> bool:
    return ruling in {Ruling.GRID, Ruling.LINES} or (ruling is Ruling.BOOK and row < 2)
