"""A chart's values from its picture and its texts: the axis tells what a pixel is worth, the rest is geometry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

import numpy as np

from docferry.vision.images import Pixels
from docferry_cloud.charts.axes import ValueAxis, number_of, through, value_axis
from docferry_cloud.charts.chart import Chart, ChartKind, Label, Series
from docferry_cloud.charts.colours import Mask, flat_colours, stroke_colours
from docferry_cloud.charts.legend import Key, legend_of
from docferry_cloud.charts.marks import Bar, bars, line_places, ticks

_LEAST_AREA = 0.01
"""Share of the plot that bars fill together."""

_LEAST_SPAN = 0.5
"""Share of the way from the first category to the last that a line goes."""

_ON_ZERO = 0.6
_UNEVEN = 0.3
"""Heights of a line that a number of a row stands off its place."""

_TICK = re.compile(r"\s*[-–—_|]+$")
"""The mark beside a name, read as a part of it."""

_MOST_SERIES = 8


@dataclass(frozen=True, slots=True)
class _Plot:
    """A chart whose values rise upwards: its picture, its texts, its axis, and what lies in the axis's reach."""

    image: Pixels
    texts: tuple[Label, ...]
    axis: ValueAxis
    left: int
    right: int
    top: int
    bottom: int

    def inside(self, mask: Mask) -> Mask:
        """A mask without what lies outside of the plot."""
        kept = np.zeros_like(mask)
        area = slice(self.top, self.bottom), slice(self.left, self.right)
        kept[area] = mask[area]
        return kept


def measured(image: Pixels, labels: Sequence[Label]) -> Chart | None:
    """The chart in a picture; None where there is no axis of values, or nothing to measure along it.

    Args:
        image: `(height, width, 3)`, BGR, the chart and its texts.
        labels: What was read in it.
    """
    upright = _plot(image, labels)
    lying = _plot(*_turned(image, labels))
    standing = None if upright is None else _bars(upright)
    lain = None if lying is None else _bars(lying)
    if lain is not None and (standing is None or _count(lain) > _count(standing)):
        # Names along an axis that was turned run from its top; its origin is at the bottom.
        series = tuple(replace(one, values=one.values[::-1]) for one in lain.series)
        return replace(lain, categories=lain.categories[::-1], series=series)
    if standing is not None:
        return standing
    return None if upright is None else _lines(upright)


def _count(chart: Chart) -> int:
    return sum(value is not None for series in chart.series for value in series.values)


def _turned(image: Pixels, labels: Sequence[Label]) -> tuple[Pixels, list[Label]]:
    """A quarter turn against the clock: what rose to the right rises upwards."""
    wide = image.shape[1]
    turned = [
        replace(label, box=(label.box[1], wide - label.box[2], label.box[3], wide - label.box[0])) for label in labels
    ]
    return np.ascontiguousarray(np.rot90(image)), turned


def _plot(image: Pixels, labels: Sequence[Label]) -> _Plot | None:
    axis = value_axis(labels)
    if axis is None:
        return None
    high, wide = image.shape[:2]
    texts = tuple(part for label in labels if label not in axis.labels for part in _apart(label))
    axis = through(axis, ticks(image, axis.labels))
    places = sorted(label.y for label in axis.labels)
    gap = (places[-1] - places[0]) / max(1, len({round(place) for place in places}) - 1)
    on_left = median(label.x for label in axis.labels) < wide / 2
    left = round(max(label.box[2] for label in axis.labels)) + 1 if on_left else 0
    right = wide if on_left else round(min(label.box[0] for label in axis.labels))
    top, bottom = max(0, round(places[0] - 1.1 * gap)), min(high, round(places[-1] + 1.1 * gap))
    if right - left < 20 or bottom - top < 20:
        return None
    return _Plot(image, texts, axis, left, right, top, bottom)


def _bars(plot: _Plot) -> Chart | None:
    masks = flat_colours(plot.image)
    legend = legend_of(plot.texts, masks)
    found = bars([plot.inside(mask) for mask in masks], [key.box for key in legend.values()])
    area = sum((bar.box[2] - bar.box[0]) * (bar.box[3] - bar.box[1]) for bar in found)
    if len(found) < 2 or area < _LEAST_AREA * (plot.right - plot.left) * (plot.bottom - plot.top):
        return None
    ground = max(bar.box[3] for bar in found)
    groups, categories = _grouped(found, _names(plot, ground - 2, legend))
    colours = sorted({bar.colour for bar in found}, key=lambda colour: _place(found, colour))
    if len(colours) > _MOST_SERIES:
        return None
    size = median(label.size for label in plot.axis.labels)
    # Measured from the line they stand on, a place that is off for all numbers of the axis makes no difference.
    shift = -plot.axis.value(ground) if abs(plot.axis.place(0) - ground) <= _ON_ZERO * size else 0.0
    series = []
    for colour in colours:
        values: list[float | None] = []
        for group in groups:
            own = [bar for bar in group if bar.colour == colour]
            values.append(_height(own[0], ground, plot.axis, shift) if own else None)
        series.append(Series(_called(legend, colour), tuple(values)))
    return Chart(ChartKind.BARS, categories, tuple(series), abs(plot.axis.slope))


def _height(bar: Bar, ground: int, axis: ValueAxis, shift: float) -> float:
    if ground - bar.box[3] <= 3:
        return axis.value(bar.box[1]) + shift
    return axis.value(bar.box[1]) - axis.value(bar.box[3])


def _place(found: Sequence[Bar], colour: int) -> tuple[float, float]:
    """Where bars of a colour come in a group: from left to right, from the ground up."""
    own = [bar for bar in found if bar.colour == colour]
    return min(bar.x for bar in own), -max(bar.box[3] for bar in own)


def _names(plot: _Plot, ground: float, legend: Mapping[int, Key]) -> list[Label]:
    """The names along the axis at the bottom, from left to right: the fullest row below the ground."""
    keyed = {key.label for key in legend.values()}
    below = [
        label
        for label in plot.texts
        if label not in keyed and label.y > ground and plot.left - label.size <= label.x <= plot.right
    ]
    rows = [[one for one in below if abs(one.box[1] - label.box[1]) <= 0.7 * label.size] for label in below]
    if not rows:
        return []
    row = max(rows, key=lambda row: (len(row), -row[0].box[1]))
    return _in_step(sorted(row, key=lambda label: label.x))


def _in_step(names: list[Label]) -> list[Label]:
    """Years and other numbers that go on evenly, without what was read among them by mistake."""
    numbers = [(label, value) for label in names if (value := number_of(label.text)) is not None]
    best: list[Label] = []
    for (one, low), (other, high) in combinations(numbers, 2):
        if other.x - one.x < 1:
            continue
        slope = (high - low) / (other.x - one.x)
        if slope > 0:
            even = [
                label
                for label, value in numbers
                if abs(low + slope * (label.x - one.x) - value) <= 0.2 * slope * one.size
            ]
            best = max(best, even, key=len)
    return best if len(best) >= 3 and len(best) > 0.6 * len(names) else names


def _grouped(found: Sequence[Bar], names: Sequence[Label]) -> tuple[list[list[Bar]], tuple[str, ...]]:
    """The bars of each category and its name: by the name that stands nearest, or else by the gaps between bars."""
    apart = _by_gaps(found)
    if len(names) < len(apart):
        # Names that touch were read as one.
        names = [part for name in names for part in _split(name)]
    if len(names) >= len(apart):
        groups: list[list[Bar]] = [[] for _ in names]
        for bar in found:
            groups[min(range(len(names)), key=lambda at: abs(names[at].x - bar.x))].append(bar)
        return groups, tuple(_TICK.sub("", name.text) for name in names)
    under = []
    for number, group in enumerate(apart, 1):
        left, right = min(bar.box[0] for bar in group), max(bar.box[2] for bar in group)
        fits = [name for name in names if left <= name.x <= right and name.box[2] - name.box[0] < 2 * (right - left)]
        under.append(_TICK.sub("", fits[0].text) if fits else str(number))
    return apart, tuple(under)


def _by_gaps(found: Sequence[Bar]) -> list[list[Bar]]:
    groups: list[list[Bar]] = []
    for bar in sorted(found, key=lambda bar: bar.box[0]):
        if groups and bar.box[0] - max(one.box[2] for one in groups[-1]) <= 3:
            groups[-1].append(bar)
        else:
            groups.append([bar])
    return groups


def _lines(plot: _Plot) -> Chart | None:
    lowest = max(label.y for label in plot.axis.labels)
    masks = stroke_colours(plot.image)
    legend = legend_of(plot.texts, masks)
    names = _names(plot, lowest - 0.2 * plot.axis.labels[0].size, legend)
    if len(names) < 2:
        return None
    # Names are set at equal distances: together they say better than each alone where they stand.
    pitch, start = np.polyfit(range(len(names)), [name.x for name in names], 1)
    xs = [float(start + pitch * number) for number in range(len(names))]
    first, last = xs[0], xs[-1]
    series = []
    for colour, mask in enumerate(masks[:_MOST_SERIES]):
        own = plot.inside(mask)
        if colour in legend:
            x0, y0, x1, y1 = (round(side) for side in legend[colour].box)
            own = own.copy()
            own[max(0, y0) : y1, max(0, x0) : x1] = False
        across = np.flatnonzero(own[:, round(first) : round(last) + 1].any(axis=0))
        if len(across) < _LEAST_SPAN * (last - first):
            continue
        places = line_places(own, xs)
        values = tuple(None if place is None else plot.axis.value(place + 0.5) for place in places)
        series.append(Series(_called(legend, colour), values))
    if not series:
        return None
    return Chart(ChartKind.LINES, tuple(name.text for name in names), tuple(series), abs(plot.axis.slope))


def _called(legend: Mapping[int, Key], colour: int) -> str:
    return legend[colour].label.text if colour in legend else ""


def _apart(label: Label) -> list[Label]:
    """Numbers that were read as one line, each by itself: small ones along an axis stand close together."""
    words = label.text.split()
    return _split(label) if all(number_of(word) is not None for word in words) else [label]


def _split(label: Label) -> list[Label]:
    """The words of a line, each where it stands if all letters are equally wide."""
    x0, y0, x1, y1 = label.box
    step, at, parts = (x1 - x0) / max(1, len(label.text)), 0, []
    for word in label.text.split():
        at = label.text.index(word, at)
        parts.append(replace(label, text=word, box=(x0 + step * at, y0, x0 + step * (at + len(word)), y1)))
        at += len(word)
    return parts
