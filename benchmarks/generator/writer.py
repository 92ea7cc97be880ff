"""Prints a document from top to bottom: centred lines, rows of cells, rules, bar codes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from benchmarks.generator.canvas import BLACK, Canvas, Colour, Style

Cell = tuple[str, float, str]
"""Text, place as a fraction of the column's width, anchor `l`, `m` or `r`."""


class Writer:
    """A cursor `y` that moves down a column of the canvas between `x0` and `x1`."""

    def __init__(self, canvas: Canvas, style: Style, x0: float, x1: float, y: float) -> None:
        self.canvas = canvas
        self.style = style
        self.x0 = x0
        self.x1 = x1
        self.y = y

    @property
    def width(self) -> float:
        """Pixels from edge to edge."""
        return self.x1 - self.x0

    def centre(self, text: str, style: Style | None = None) -> list[str]:
        """Centred, wrapped where it does not fit; returns the lines."""
        return self.paragraph(text, style, place=0.5, anchor="m")

    def paragraph(self, text: str, style: Style | None = None, *, place: float = 0.0, anchor: str = "l") -> list[str]:
        """Wrapped text; returns its lines as printed."""
        style = style or self.style
        lines = style.wrap(text, self.width * (1 - place if anchor == "l" else 1))
        lines = [style.fit(line, self.width) for line in lines]
        for line in lines:
            self.row([(line, place, anchor)], style)
        return lines

    def row(self, cells: Sequence[Cell], style: Style | None = None) -> None:
        """One line of cells; a left cell is cut off before it runs into the next one."""
        style = style or self.style
        for text, place, anchor in self.fitted(cells, style):
            self.canvas.text(text, self.x0 + place * self.width, self.y, style, anchor)
        self.y += style.line_height

    def fitted(self, cells: Sequence[Cell], style: Style | None = None) -> list[Cell]:
        """The cells as they will be printed."""
        style = style or self.style
        fitted: list[Cell] = []
        for number, (text, place, anchor) in enumerate(cells):
            if anchor == "l":
                limit = 1.0
                if number + 1 < len(cells):
                    after, at, side = cells[number + 1]
                    share = {"l": 0.0, "m": 0.5, "r": 1.0}[side]
                    limit = at - share * style.width(after) / self.width - style.width("n") / self.width
                fitted.append((style.fit(text, (limit - place) * self.width), place, anchor))
            else:
                fitted.append((text, place, anchor))
        return fitted

    def gap(self, lines: float = 0.5) -> None:
        """Empty space, in line heights."""
        self.y += lines * self.style.line_height

    def rule(self, character: str = "", *, colour: Colour = BLACK) -> None:
        """A rule: drawn solid (``), drawn dashed (`.`), or printed from a character such as `-`, `=` or `*`.

        A printed rule is text to a printer but not to a reader, so it is not part of the truth.
        """
        step = self.style.line_height * 0.5
        if character in {"", "."}:
            dash = max(2, round(self.style.size / 5)) if character else 0
            self.canvas.rule(
                self.x0, self.x1, self.y + step * 0.5, thickness=max(1, self.style.size // 14), dash=dash, colour=colour
            )
            self.y += step
            return
        count = int(self.width // self.style.width(character))
        known = len(self.canvas.lines)
        self.canvas.text(character * count, self.x0, self.y, self.style)
        del self.canvas.lines[known:]
        self.y += self.style.line_height

    def barcode(self, rng: random.Random, text: str) -> None:
        """Bars, and their number under them."""
        unit = max(1, round(self.width / 190))
        total = 95 * unit
        x = self.x0 + (self.width - total) / 2
        end, height = x + total, self.style.line_height * 2
        while x < end:
            bar, space = rng.randint(1, 3) * unit, rng.randint(1, 3) * unit
            self.canvas.pen.rectangle(
                (round(x), round(self.y), round(min(x + bar, end)) - 1, round(self.y + height)), fill=BLACK
            )
            x += bar + space
        self.y += height + self.style.line_height * 0.3
        self.centre(text)
