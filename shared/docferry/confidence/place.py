"""What a line's place and size say, compared with its page: cut off, squeezed, leaning, crossed by another line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from docferry.document import Line, Page

NAMES = ("stretched", "squeezed", "tall", "flat", "small_print", "at_edge", "leaning", "crossed", "upended")
"""The signals of `place_signals`, in its order."""

_EDGE = 0.004
"""Of the page's side: a line that ends nearer to the edge may go on outside."""

_READABLE = 32.0
"""Pixels; print lower than this is read worse the lower it is. Boxes are about 1.5 times as high as the print."""

_NARROW = frozenset("iIljtfr.,:;'|!()[]1 -`\"")
_WIDE = frozenset("mMwW@%&")


@dataclass(frozen=True, slots=True)
class Placed:
    """One line in pixels of its page.

    Attributes:
        width: Along the text.
        height: Across it.
        angle: Of the text against the horizontal, radians.
        box: The upright box: x0, y0, x1, y1.
        stretch: Width in heights per unit of text, as a logarithm; a unit is a letter of middling width.
    """

    width: float
    height: float
    angle: float
    box: tuple[float, float, float, float]
    stretch: float


def placed(line: Line, page: Page) -> Placed:
    """A line's measures in pixels."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = ((x * page.width, y * page.height) for x, y in line.polygon)
    width = max(math.hypot(bx - ax, by - ay), math.hypot(cx - dx, cy - dy), 1.0)
    height = max(math.hypot(dx - ax, dy - ay), math.hypot(cx - bx, cy - by), 1.0)
    box = (min(ax, bx, cx, dx), min(ay, by, cy, dy), max(ax, bx, cx, dx), max(ay, by, cy, dy))
    # Half a height of paper is part of every box, whatever the text's length.
    stretch = math.log(width / height / (_units(line.text) + 0.5))
    return Placed(width, height, math.atan2(by - ay, bx - ax), box, stretch)


def place_signals(places: Sequence[Placed], page: Page) -> list[tuple[float, ...]]:
    """The signals named in `NAMES` for every line of a page, each >= 0."""
    if not places:
        return []
    stretch = median(place.stretch for place in places)
    height = median(place.height for place in places)
    angle = median(place.angle for place in places)
    crossed = _crossed(places)
    signals: list[tuple[float, ...]] = []
    for place, cross in zip(places, crossed, strict=True):
        wider = place.stretch - stretch
        taller = math.log(place.height / height)
        x0, y0, x1, y1 = place.box
        margin = min(x0 / page.width, y0 / page.height, 1 - x1 / page.width, 1 - y1 / page.height)
        signals.append(
            (
                max(0.0, wider),
                max(0.0, -wider),
                max(0.0, taller),
                max(0.0, -taller),
                max(0.0, math.log(_READABLE / place.height)),
                float(margin < _EDGE),
                min(abs(place.angle - angle), 0.5),
                cross,
                float(place.height > 1.5 * place.width),
            )
        )
    return signals


def _units(text: str) -> float:
    """The width of a text in letters of middling width."""
    narrow = sum(glyph in _NARROW for glyph in text)
    wide = sum(glyph in _WIDE for glyph in text)
    full = 0 if text.isascii() else sum("\u2e80" <= glyph <= "\uffef" for glyph in text)
    return len(text) - 0.45 * narrow + 0.4 * wide + 0.9 * full


def _crossed(places: Sequence[Placed]) -> list[float]:
    """For each line the largest share of its upright box that another one covers, 0..1."""
    covered = [0.0] * len(places)
    order = sorted(range(len(places)), key=lambda n: places[n].box[1])
    for at, first in enumerate(order):
        ax0, ay0, ax1, ay1 = places[first].box
        for second in order[at + 1 :]:
            bx0, by0, bx1, by1 = places[second].box
            if by0 >= ay1:
                break
            wide = min(ax1, bx1) - max(ax0, bx0)
            if wide <= 0:
                continue
            common = wide * (min(ay1, by1) - by0)
            covered[first] = max(covered[first], common / max(1.0, (ax1 - ax0) * (ay1 - ay0)))
            covered[second] = max(covered[second], common / max(1.0, (bx1 - bx0) * (by1 - by0)))
    return covered
