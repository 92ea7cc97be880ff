"""A PDF page's own text as data: `text_layer` takes it from the file, in the file's own process.

Coordinates are points of the page as it is shown (turned by its /Rotate, cut to its crop box), origin top left.
"""

from __future__ import annotations

from dataclasses import dataclass

from docferry.document import Box


@dataclass(frozen=True, slots=True)
class Word:
    """A run of letters without a space. `box` is as high as the font's line, whatever the letters."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class TextLayer:
    """One page.

    Attributes:
        width, height: Points.
        words: In the order of the file.
        rules: Horizontal and vertical lines as boxes without, or almost without, one extension.
        pictures: Where images stand.
        unmapped: Share of letters that the file gives no character for, 0..1.
    """

    width: float
    height: float
    words: tuple[Word, ...]
    rules: tuple[Box, ...]
    pictures: tuple[Box, ...]
    unmapped: float
