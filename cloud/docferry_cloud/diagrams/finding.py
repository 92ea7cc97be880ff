"""A diagram found in a picture: boxes first, then what is drawn between them, and which of its ends have heads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import cv2
import numpy as np
from numpy.typing import NDArray

from docferry.vision.images import Pixels
from docferry_cloud.charts.chart import Label
from docferry_cloud.charts.colours import Mask, drawn_on
from docferry_cloud.diagrams.diagram import Diagram, Edge
from docferry_cloud.diagrams.shapes import Shape, shapes

_LEAST_BOXES = 2
_LEAST_LETTERS = 2
_LEAST_REACH = 6.0
_REACH = 0.6
"""In heights of print: how far from its box an arrow may end."""

_DASHES = 0.25
"""In heights of print: half of the gap between dashes."""

_HEAD = 0.8
"""In heights of print: how much of a line's end is looked at for a head."""

_HEAD_INK = 1.8
"""Ink at a line's end, for one of what the line alone has there, from which on the end is a head."""

_LIKE = 0.8
"""Ink of the lesser of two heads for one of the greater."""

_NEAR_LABEL = 1.2
"""In heights of print: how far beside a line its label may stand."""

_SOFT = 0.9
"""The mean width counts the heads; a line's own is a little less."""

_HALVES = 2
_SAMPLES = 40
_ON_LINE = 3.0
"""Places along a straight way between two ends, and pixels from them in which a drawn line lies."""

_LEAST_TOLD = 0.6
"""Share of the lines of text that a diagram must account for, where it is to be the whole picture."""


@dataclass(frozen=True, slots=True)
class _End:
    """Where a line meets a box.

    Attributes:
        shape: Number of the box.
        along: Where the line leaves to, in radians.
        ink: Of the line's end, for one of what a plain line has there.
    """

    shape: int
    point: tuple[float, float]
    along: float
    ink: float


@dataclass(frozen=True, slots=True)
class _Stroke:
    """Something drawn between boxes; a line that its label interrupts is two, until they are joined."""

    points: NDArray[np.int32]
    ends: tuple[_End, ...]
    label: int | None = None


def find_diagram(image: Pixels, labels: Sequence[Label], *, whole: bool = False) -> Diagram | None:
    """Who is connected to whom in a picture; None without two named boxes and one arrow between them.

    Lines without any head are told only beside arrows: they may be anything. Where more than two boxes meet in
    one line, heads tell what comes from where; without them nothing is told.

    Args:
        labels: The lines of text, in the picture's pixels.
        whole: Whether nothing but the diagram may stand in the picture.
    """
    if len(labels) < _LEAST_BOXES:
        return None
    drawn = drawn_on(image)
    boxes = shapes(image, drawn, labels)
    if len(boxes) < _LEAST_BOXES:
        return None
    size = median(label.size for box in boxes for label in (labels[at] for at in box.labels))
    inside = {at for box in boxes for at in box.labels}
    # A head is often read as a letter: V, A, 4, >, 个.
    beside = [
        at for at in range(len(labels)) if at not in inside and sum(map(str.isalnum, labels[at].text)) >= _LEAST_LETTERS
    ]
    strokes = _joined(_strokes(drawn, boxes, [labels[at] for at in beside], size), beside, labels, size)
    edges: dict[tuple[str, str], Edge] = {}
    told = set(inside)
    for stroke in strokes:
        at = _label_of(stroke, beside, labels, size) if stroke.label is None else stroke.label
        made = _edges(stroke, boxes, "" if at is None else labels[at].text.strip())
        told |= {at} if made and at is not None else set()
        for edge in made:
            edges.setdefault((edge.start, edge.end), edge)
    if not any(edge.directed for edge in edges.values()):
        return None
    if whole and len(told) < _LEAST_TOLD * len(labels):
        return None
    return Diagram(tuple(box.name for box in boxes), tuple(edges.values()))


def _strokes(drawn: Mask, boxes: Sequence[Shape], beside: Sequence[Label], size: float) -> list[_Stroke]:
    rest = drawn.astype(np.uint8)
    for box in boxes:
        rest[box.area] = 0
    for label in beside:
        x0, y0, x1, y1 = (round(side) for side in label.box)
        rest[max(0, y0) : y1, max(0, x0) : x1] = 0
    # Dashes grow together.
    side = 2 * round(max(3.0, _DASHES * size)) + 1
    rest = np.asarray(cv2.morphologyEx(rest, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8)), np.uint8)
    for box in boxes:
        rest[box.area] = 0
    reach = max(_LEAST_REACH, _REACH * size)
    far = [np.asarray(cv2.distanceTransform((~box.area).astype(np.uint8), cv2.DIST_L2, 5), np.float32) for box in boxes]
    count, marks, stats, _ = cv2.connectedComponentsWithStats(rest, connectivity=8)
    strokes = []
    for mark in range(1, count):
        wide, high = stats[mark, cv2.CC_STAT_WIDTH], stats[mark, cv2.CC_STAT_HEIGHT]
        if max(wide, high) < 0.5 * size:
            continue
        ys, xs = np.nonzero(marks == mark)
        ends = _ends(xs, ys, far, reach, size)
        if ends:
            strokes.append(_Stroke(np.stack([xs, ys], axis=1).astype(np.int32), tuple(ends)))
    return strokes


def _ends(
    xs: NDArray[np.int64], ys: NDArray[np.int64], far: Sequence[NDArray[np.float32]], reach: float, size: float
) -> list[_End]:
    """Where one stroke meets boxes, with how much ink is there."""
    ends = []
    tip = max(8.0, _HEAD * size)
    width = _width(xs, ys)
    for number, distances in enumerate(far):
        away = distances[ys, xs]
        if away.min() > reach:
            continue
        nearest = int(away.argmin())
        close = away <= away[nearest] + 1
        x, y = float(xs[close].mean()), float(ys[close].mean())
        near = np.hypot(xs - x, ys - y)
        around = near <= tip
        ring = (near > tip) & (near <= 2 * tip)
        onward = ring if ring.any() else around
        along = math.atan2(float(ys[onward].mean()) - y, float(xs[onward].mean()) - x)
        ends.append(_End(number, (x, y), along, float(around.sum()) / (tip * width)))
    return ends


def _width(xs: NDArray[np.int64], ys: NDArray[np.int64]) -> float:
    """Of a stroke, in pixels: its ink for half of its outline."""
    left, top = int(xs.min()), int(ys.min())
    mask = np.zeros((int(ys.max()) - top + 3, int(xs.max()) - left + 3), np.uint8)
    mask[ys - top + 1, xs - left + 1] = 1
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    around = sum(cv2.arcLength(outline, closed=True) for outline in outlines)
    return max(1.0, 2 * len(xs) / max(around, 1.0) * _SOFT)


def _joined(strokes: list[_Stroke], beside: Sequence[int], labels: Sequence[Label], size: float) -> list[_Stroke]:
    """Two pieces that end at the same label and meet an odd number of boxes, one mostly, belong together."""
    left = list(strokes)
    for at in beside:
        halves = [stroke for stroke in left if len(stroke.ends) % 2 and _apart(stroke.points, labels[at]) <= 0.7 * size]
        if len(halves) == _HALVES:
            one, other = halves
            left = [stroke for stroke in left if stroke is not one and stroke is not other]
            left.append(_Stroke(np.concatenate([one.points, other.points]), one.ends + other.ends, at))
    return left


def _apart(points: NDArray[np.int32], label: Label) -> float:
    """Pixels between a stroke and a label's box."""
    x0, y0, x1, y1 = label.box
    across = np.maximum(np.maximum(x0 - points[:, 0], points[:, 0] - x1), 0)
    down = np.maximum(np.maximum(y0 - points[:, 1], points[:, 1] - y1), 0)
    return float(np.hypot(across, down).min())


def _label_of(stroke: _Stroke, beside: Sequence[int], labels: Sequence[Label], size: float) -> int | None:
    near = [(_apart(stroke.points, labels[at]), at) for at in beside]
    close = min(near, default=(math.inf, -1))
    return close[1] if close[0] <= _NEAR_LABEL * size else None


def _edges(stroke: _Stroke, boxes: Sequence[Shape], label: str) -> list[Edge]:
    ends = stroke.ends
    heads = [end for end in ends if end.ink >= _HEAD_INK]
    if len(ends) == _LEAST_BOXES:
        # Two heads of one line look alike; what is much less is another line that begins close by.
        heads = [end for end in heads if end.ink >= _LIKE * max(other.ink for other in heads)]
    tails = [end for end in ends if end not in heads]
    if len(ends) == _LEAST_BOXES and len(heads) != 1:
        first, second = (boxes[end.shape].name for end in ends)
        if heads:
            return [Edge(first, second, label), Edge(second, first, label)]
        return [Edge(first, second, label, directed=False)]
    if not heads or not tails:
        return []
    if len(heads) == 1 or len(tails) == 1:
        pairs = [(tail, head) for tail in tails for head in heads]
    else:
        pairs = _crossing(stroke.points, tails, heads)
    return [Edge(boxes[tail.shape].name, boxes[head.shape].name, label) for tail, head in pairs]


def _crossing(points: NDArray[np.int32], tails: Sequence[_End], heads: Sequence[_End]) -> list[tuple[_End, _End]]:
    """Lines that cross go straight on: each tail with the head that it points at, the surest first."""
    choices = sorted((_doubt(points, tail, head), t, h) for t, tail in enumerate(tails) for h, head in enumerate(heads))
    pairs: list[tuple[_End, _End]] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for _, t, h in choices:
        if t not in used[0] and h not in used[1]:
            used[0].add(t)
            used[1].add(h)
            pairs.append((tails[t], heads[h]))
    return pairs


def _doubt(points: NDArray[np.int32], tail: _End, head: _End) -> float:
    """How far the way between two ends is from a straight drawn line: its bends, in radians, and what is not drawn."""
    (x0, y0), (x1, y1) = tail.point, head.point
    way = math.atan2(y1 - y0, x1 - x0)
    bend = abs(_turn(way - tail.along)) + abs(_turn(way + math.pi - head.along))
    along = np.linspace(0, 1, _SAMPLES)
    gaps = np.hypot(points[:, 0, None] - (x0 + along * (x1 - x0)), points[:, 1, None] - (y0 + along * (y1 - y0))).min(
        axis=0
    )
    return bend + math.pi * float((gaps > _ON_LINE).mean())


def _turn(angle: float) -> float:
    return (angle + math.pi) % (2 * math.pi) - math.pi
