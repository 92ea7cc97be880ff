"""The words of a line for formats that want each by itself, and text as XML takes it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from docferry.document import Box, Line, Page
from docferry.rectangles import in_pixels

Place = tuple[int, int, int, int]
"""Left, top, right, bottom in the page's pixels."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Word:
    """A word and where it stands if all letters of its line are equally wide: nobody measured it."""

    text: str
    place: Place


def words(page: Page, line: Line) -> Iterator[Word]:
    """A line's words from left to right."""
    x0, y0, x1, y1 = place(page, line.box)
    step = (x1 - x0) / max(1, len(line.text))
    for found in _WORD.finditer(line.text):
        yield Word(found[0], (x0 + round(step * found.start()), y0, x0 + round(step * found.end()), y1))


def place(page: Page, box: Box) -> Place:
    """A relative box in the page's pixels."""
    x0, y0, x1, y1 = map(round, in_pixels(box, page.width, page.height))
    return x0, y0, x1, y1


def sure(line: Line) -> float:
    """How sure a line is, 0..1."""
    return min(1.0, max(0.0, line.score if line.confidence is None else line.confidence))


def xml(text: str) -> str:
    """Text as it may stand in an element or an attribute: escaped, without what no XML may hold."""
    return html.escape(_NOT_XML.sub(" ", text))
