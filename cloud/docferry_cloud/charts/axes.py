"""The axis of values, found among a chart's texts: numbers in a row whose places and values go together. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import linear_regression

from docferry_cloud.charts.chart import Label

_NUMBER = re.compile(r"([-−–]?)\s*[$€£¥]?\s*(\d[\d,.\s]{0,16}\d|\d)\s*(%|[kKmMbB]|bn|mn)?")
_TIMES = {"k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}
_LEAST_TICKS = 3
_SAME_COLUMN = 0.8
"""Edges of labels of one axis differ by no more than this, in heights of a line; centres of centred ones likewise."""

_OFF = 0.35
"""A label stands this far from its tick at most, in heights of a line."""

_OFF_MARK = 1.5
"""Pixels that a mark stands off the line through all of them at most."""


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """Where values stand: `value = slope * place + start`, the place in pixels along the axis.

    Attributes:
        labels, values: The printed numbers that agree with it.
    """

    slope: float
    start: float
    labels: tuple[Label, ...]
    values: tuple[float, ...]

    def value(self, place: float) -> float:
        """The value at a place."""
        return self.slope * place + self.start

    def place(self, value: float) -> float:
        """The place of a value."""
        return (value - self.start) / self.slope


def number_of(text: str) -> float | None:
    """A tick's number; None where it is none.

    A recogniser that loses the point of 0.5 leaves 05, and nobody prints that.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    digits = found[2].replace(" ", "")
    if re.fullmatch(r"\d{1,3}(?:[,.]\d{3})+", digits) and not digits.startswith("0"):
        # 1.000 may be one as well: both fit an axis by themselves, but not one that goes on with 2.500.
        digits = digits.replace(",", "") if "," in digits or digits.count(".") > 1 else digits
    elif re.fullmatch(r"0\d+", digits):
        digits = f"0.{digits[1:]}"
    digits = digits.replace(",", ".")
    if digits.count(".") > 1:
        return None
    value = float(digits) * _TIMES.get((found[3] or "").lower(), 1.0)
    return -value if found[1] else value


def value_axis(labels: Sequence[Label]) -> ValueAxis | None:
    """The upright axis of values: the most numbers above each other that rise evenly; None where there are too few.

    For a lying axis give the labels of the picture turned around its diagonal.
    """
    numbers = [(label, value) for label in labels if (value := number_of(label.text)) is not None]
    best: ValueAxis | None = None
    for column in _columns(numbers):
        found = _fitted(column)
        if found is not None and (best is None or len(found.labels) > len(best.labels)):
            best = found
    return best


_Numbers = list[tuple[Label, float]]


def _columns(numbers: _Numbers) -> list[_Numbers]:
    """Numbers that are flush left, flush right or centred over each other."""
    columns = []
    for edge in (0, 1, 2):
        for label, _ in numbers:
            place, near = _edges(label)[edge], _SAME_COLUMN * label.size
            columns.append([one for one in numbers if abs(_edges(one[0])[edge] - place) <= near])
    return [column for column in columns if len(column) >= _LEAST_TICKS]


def _edges(label: Label) -> tuple[float, float, float]:
    return label.box[0], label.box[2], label.x


def _fitted(column: _Numbers) -> ValueAxis | None:
    """The line through most of the numbers, each of which may have been misread."""
    best: _Numbers = []
    for (one, low), (other, high) in combinations(column, 2):
        if abs(one.y - other.y) < 1 or low == high:
            continue
        slope = (high - low) / (other.y - one.y)
        # Values rise upwards, and a row of equal steps does not stand still.
        if slope >= 0:
            continue
        agree = [
            (label, value)
            for label, value in column
            if abs(one.y + (value - low) / slope - label.y) <= _OFF * min(label.size, one.size)
        ]
        if len(agree) > len(best):
            best = agree
    if len({value for _, value in best}) < _LEAST_TICKS:
        return None
    slope, start = linear_regression([label.y for label, _ in best], [value for _, value in best])
    return ValueAxis(slope, start, tuple(label for label, _ in best), tuple(value for _, value in best))


def through(axis: ValueAxis, places: Sequence[float | None]) -> ValueAxis:
    """The axis through the marks beside its labels, where those were found.

    Args:
        places: One for each label; None where no mark was seen.
    """
    seen = [(place, value) for place, value in zip(places, axis.values, strict=True) if place is not None]
    if len({value for _, value in seen}) < _LEAST_TICKS:
        return axis
    slope, start = linear_regression(*zip(*seen, strict=True))
    off = max(abs((value - start) / slope - place) for place, value in seen)
    return axis if off > _OFF_MARK else ValueAxis(slope, start, axis.labels, axis.values)
