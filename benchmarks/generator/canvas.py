"""A page to draw on that remembers every run of text, with its exact place, as it is drawn."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.generator.fonts import Font, load
from benchmarks.generator.truth import Points, TruthLine, TruthRegion
from docferry.document import RegionType

BLACK = (16, 16, 18)
WHITE = (255, 255, 255)
Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Style:
    """How text looks.

    Attributes:
        size: Pixels per em before stretching.
        narrow, tall: Horizontal and vertical stretch, as printers with tall character cells do it.
        leading: Distance of base lines in multiples of the line's own height.
    """

    font: Font
    size: int
    bold: bool = False
    narrow: float = 1.0
    tall: float = 1.0
    leading: float = 1.15
    colour: Colour = BLACK

    @property
    def ascent(self) -> float:
        """Pixels from the top of the line to its base line."""
        return load(self.font.path(bold=self.bold), self.size).getmetrics()[0] * self.tall

    @property
    def line_height(self) -> float:
        """Pixels from one base line to the next."""
        return sum(load(self.font.path(bold=self.bold), self.size).getmetrics()) * self.tall * self.leading

    def scaled(self, factor: float, *, bold: bool | None = None) -> Style:
        """The same, larger or smaller."""
        return replace(self, size=max(6, round(self.size * factor)), bold=self.bold if bold is None else bold)

    def width(self, text: str) -> float:
        """Pixels that `text` advances."""
        return load(self.font.path(bold=self.bold), self.size).getlength(text) * self.narrow

    def fit(self, text: str, width: float) -> str:
        """`text`, cut off where it would be wider than `width`, as tills do."""
        while text and self.width(text) > width:
            text = text[:-1].rstrip()
        return text

    def wrap(self, text: str, width: float) -> list[str]:
        """`text` broken into lines no wider than `width`: at spaces, and anywhere in Chinese."""
        tokens = text.split(" ") if " " in text or text.isascii() else list(text)
        joint = " " if len(tokens) != len(text) or text.isascii() else ""
        lines: list[str] = []
        for token in tokens:
            longer = f"{lines[-1]}{joint}{token}" if lines else token
            closing = token in {"。", "，", "、", "；", "：", "）"}
            if lines and (closing or self.width(longer) <= width):
                lines[-1] = longer
            else:
                lines.append(token)
        return lines


class Canvas:
    """White paper of a fixed width and ample height; `finished` cuts it to what was used."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.image = Image.new("RGB", (width, height), WHITE)
        self.pen = ImageDraw.Draw(self.image)
        self.lines: list[TruthLine] = []
        self.regions: list[TruthRegion] = []
        self._region = -1

    @contextmanager
    def region(self, kind: RegionType) -> Iterator[None]:
        """Text drawn inside belongs to one region, whose box is that of its text."""
        first, self._region = len(self.lines), len(self.regions)
        self.regions.append(TruthRegion(kind, np.zeros((4, 2))))
        yield
        if len(self.lines) == first:
            self.regions.pop()
        else:
            corners = np.concatenate([line.polygon for line in self.lines[first:]])
            self.regions[self._region] = TruthRegion(kind, rectangle(*corners.min(axis=0), *corners.max(axis=0)))
        self._region = -1

    def add_region(self, kind: RegionType, box: Points) -> None:
        """A region without text, such as a picture."""
        self.regions.append(TruthRegion(kind, box))

    def set_table(self, rows: Sequence[Sequence[str]], *, head: bool = True, box: Points | None = None) -> None:
        """Give the latest region its cells as HTML, and its box if rules reach beyond the text."""
        latest = self.regions[-1]
        self.regions[-1] = replace(
            latest, html=table_html(rows, head=head), polygon=latest.polygon if box is None else box
        )

    def text(self, text: str, x: float, y: float, style: Style, anchor: str = "l") -> None:
        """Print `text` with the top of its line at `y` and its left, middle or right (`l`, `m`, `r`) at `x`."""
        if not text.strip():
            return
        left = x - {"l": 0.0, "m": 0.5, "r": 1.0}[anchor] * style.width(text)
        font = load(style.font.path(bold=style.bold), style.size)
        x0, y0, x1, y1 = (round(value) for value in font.getbbox(text, anchor="ls"))
        mask = Image.new("L", (x1 - x0 + 2, y1 - y0 + 2))
        ImageDraw.Draw(mask).text((1 - x0, 1 - y0), text, font=font, fill=255, anchor="ls")
        if style.narrow != 1.0 or style.tall != 1.0:
            size = max(1, round(mask.width * style.narrow)), max(1, round(mask.height * style.tall))
            mask = mask.resize(size, Image.Resampling.BILINEAR)
        at = round(left + (x0 - 1) * style.narrow), round(y + style.ascent + (y0 - 1) * style.tall)
        self.image.paste(style.colour, at, mask)
        inked = mask.getbbox()
        if inked is not None:
            box = rectangle(at[0] + inked[0], at[1] + inked[1], at[0] + inked[2], at[1] + inked[3])
            self.lines.append(TruthLine(box, text, self._region))

    def rule(
        self, x0: float, x1: float, y: float, *, thickness: int = 1, dash: int = 0, colour: Colour = BLACK
    ) -> None:
        """A horizontal rule; `dash` pixels on and off, 0 for a solid one."""
        step = 2 * dash or max(1, round(x1 - x0))
        for start in range(round(x0), round(x1), step):
            end = min(round(x1), start + (dash or step))
            self.pen.rectangle((start, round(y), end, round(y) + thickness - 1), fill=colour)

    def upright(self, x: float, y0: float, y1: float, *, thickness: int = 1, colour: Colour = BLACK) -> None:
        """A vertical rule."""
        self.pen.rectangle((round(x), round(y0), round(x) + thickness - 1, round(y1)), fill=colour)

    def finished(self, height: float) -> np.ndarray:
        """The page cut to `height`: H x W x 3, BGR, uint8."""
        pixels = np.asarray(self.image.crop((0, 0, self.width, round(height))))
        return np.ascontiguousarray(pixels[:, :, ::-1])


def rectangle(x0: float, y0: float, x1: float, y1: float) -> Points:
    """The four corners of an upright box, clockwise from the top left."""
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float64)


def table_html(rows: Sequence[Sequence[str]], *, head: bool = True) -> str:
    """A plain HTML table of the cells."""
    parts = []
    for number, row in enumerate(rows):
        tag = "th" if head and number == 0 else "td"
        parts.append("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>")
    return f"<table>{''.join(parts)}</table>"
