"""What a chart draws its values with: bars that stand on one line, and lines that go across."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np

from docferry.document import Box
from docferry.vision.images import Pixels
from docferry_cloud.charts.chart import Label
from docferry_cloud.charts.colours import Mask
from docferry_cloud.pipeline_geometry import inside

_FULL = 0.9
"""A bar fills this much of the box around it."""

_LEAST_SIDE = 4
_NEAR = 3
_STEM = 3
"""Columns on both sides of a place that a line is measured in."""

_LEAST_MARK = 12.0
"""Levels of ink on average over a label's mark and what is beside it."""

_ENDS = 0.12
"""Share of the way between two categories that is left to the marks at both of its ends."""

_SEEN = 0.25
_STRAIGHT = 2.0
"""Pixels that the middle of a line wavers."""

_BEND = 0.15
_MEET = 4.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A filled box; `colour` is the place of its colour in the list of masks."""

    colour: int
    box: tuple[int, int, int, int]

    @property
    def x(self) -> float:
        """Half way between left and right."""
        return (self.box[0] + self.box[2]) / 2


def bars(masks: Sequence[Mask], legend: Sequence[Box]) -> list[Bar]:
    """All bars that stand on the line that most boxes stand on, or on another bar.

    Args:
        legend: Where keys of a legend are: they are boxes too.
    """
    found: list[Bar] = []
    for colour, mask in enumerate(masks):
        closed = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
        count, _, stats, _ = cv2.connectedComponentsWithStats(closed, connectivity=4)
        for x, y, wide, high, size in stats[1:count].tolist():
            box = (x, y, x + wide, y + high)
            full = size >= _FULL * wide * high and wide >= _LEAST_SIDE and high >= 2
            if full and not any(inside((x + wide / 2, y + high / 2), key) for key in legend):
                found.append(Bar(colour, box))
    return _standing(found)


def _standing(found: Sequence[Bar]) -> list[Bar]:
    if not found:
        return []
    feet = Counter(bar.box[3] for bar in found)
    ground = max(feet, key=lambda foot: (sum(n for other, n in feet.items() if abs(other - foot) <= _NEAR), foot))
    chosen = [bar for bar in found if abs(bar.box[3] - ground) <= _NEAR]
    wide = float(np.median([bar.box[2] - bar.box[0] for bar in chosen])) if chosen else 0.0
    chosen = [bar for bar in chosen if 0.6 * wide <= bar.box[2] - bar.box[0] <= 1.7 * wide]
    grown = True
    while grown:
        more = [
            bar
            for bar in found
            if bar not in chosen
            and any(abs(bar.box[3] - one.box[1]) <= _NEAR and abs(bar.x - one.x) <= _NEAR for one in chosen)
        ]
        chosen += more
        grown = bool(more)
    return chosen


def ticks(image: Pixels, labels: Sequence[Label]) -> list[float | None]:
    """How far down the mark right of each label is, in pixels: a tick on the axis, or a line of the grid."""
    grey = image.min(axis=2).astype(np.float64)
    ink = np.abs(grey - np.median(grey))
    right = max(label.box[2] for label in labels)
    places: list[float | None] = []
    for label in labels:
        first, last = round(right) + 1, round(right + 1.5 * label.size) + 1
        top, bottom = max(0, round(label.y - 0.7 * label.size)), round(label.y + 0.7 * label.size) + 1
        rows = ink[top:bottom, first:last]
        if not rows.size:
            places.append(None)
            continue
        # The axis itself runs through all rows alike.
        profile = rows.mean(axis=1)
        profile = profile - np.median(profile)
        peak = int(profile.argmax())
        near = slice(max(0, peak - 1), peak + 2)
        weights = np.maximum(profile[near], 0)
        if profile[peak] < _LEAST_MARK:
            places.append(None)
        else:
            places.append(float(top + np.average(np.arange(*near.indices(len(profile))), weights=weights) + 0.5))
    return places


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A straight piece of a line: how far down it is at a column, `slope * x + start`."""

    slope: float
    start: float

    def at(self, x: float) -> float:
        """The place at a column."""
        return self.slope * x + self.start


def line_places(mask: Mask, xs: Sequence[float]) -> list[float | None]:
    """How far down a line is at the columns that it bends at, in pixels; None where it is not drawn near there.

    Between two of them it runs straight: that is measured on the whole way, and where two ways meet is the place.
    """
    pieces = [_stretch(mask, left, right) for left, right in pairwise(xs)]
    places: list[float | None] = []
    for number, x in enumerate(xs):
        before = pieces[number - 1] if number else None
        after = pieces[number] if number < len(pieces) else None
        if before is None or after is None:
            one = before or after
            places.append(_beside(mask, x) if one is None else one.at(x))
            continue
        bend = before.slope - after.slope
        meeting = (after.start - before.start) / bend if abs(bend) > _BEND else x
        # The column is known to a few pixels, and on a steep way that is much.
        meeting = meeting if abs(meeting - x) <= _MEET else x
        places.append((before.at(meeting) + after.at(meeting)) / 2)
    return places


def _stretch(mask: Mask, left: float, right: float) -> _Stretch | None:
    """The straight way between two columns; None where there is none, or it is not straight."""
    edge = max(2.0, _ENDS * (right - left))
    first, last = max(0, round(left + edge)), min(mask.shape[1], round(right - edge) + 1)
    own = mask[:, first:last]
    columns = np.flatnonzero(own.any(axis=0))
    if len(columns) < max(4, _SEEN * (last - first)):
        return None
    middles = np.array([np.flatnonzero(own[:, x]).mean() for x in columns])
    xs = columns + first
    kept = np.ones(len(xs), dtype=bool)
    for _ in range(3):
        slope, start = np.polyfit(xs[kept], middles[kept], 1)
        off = np.abs(slope * xs + start - middles)
        allowed = max(_STRAIGHT, 2 * float(np.median(off)))
        kept = off <= allowed
        if kept.sum() < 4:
            return None
    if float(np.median(off)) > _STRAIGHT:
        return None
    return _Stretch(float(slope), float(start))


def _beside(mask: Mask, x: float) -> float | None:
    middle = round(x)
    at = _column(mask, middle - 1, middle + 2)
    if at is not None:
        return at
    # Hidden under another line, or between two dashes: it goes on from both sides.
    before, after = _column(mask, middle - 3 * _STEM, middle - 1), _column(mask, middle + 2, middle + 3 * _STEM + 1)
    if before is not None and after is not None:
        return (before + after) / 2
    return before if before is not None else after


def _column(mask: Mask, first: int, last: int) -> float | None:
    first, last = max(0, first), min(mask.shape[1], last)
    middles = [float(np.flatnonzero(mask[:, x]).mean()) for x in range(first, last) if mask[:, x].any()]
    return float(np.median(middles)) if middles else None
