"""Pie charts: a disc of flat colours, each worth its share of the turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from docferry.vision.images import Pixels
from docferry_cloud.charts.chart import Chart, ChartKind, Label, Series
from docferry_cloud.charts.colours import Mask, flat_colours
from docferry_cloud.charts.legend import legend_of

_ROUND = 0.12
"""Share that a disc's width and height differ by at most."""

_FULL = 0.8
"""Share of a circle that its colours fill; print stands on it, and lines part its pieces."""

_LEAST_RADIUS = 30
_RIM = (0.78, 0.94)
"""Where pieces are measured, in radii: outside of what is printed on them, inside of the edge."""

_REACH = 1.9
_LEAST_PIECE = 0.004
_STEP = 0.1
"""Points of a percent that a measured share is good for."""


@dataclass(frozen=True, slots=True)
class _Disc:
    x: float
    y: float
    radius: float


def pie(image: Pixels, labels: Sequence[Label]) -> Chart | None:
    """The shares of a pie chart in percent, clockwise from the top; None where there is no disc of several colours."""
    masks = flat_colours(image)
    disc = _disc(masks)
    if disc is None:
        return None
    turn = _turn(masks, disc)
    pieces = [(colour, found) for colour in range(len(masks)) if (found := np.flatnonzero(turn == colour)).size]
    whole = sum(found.size for _, found in pieces)
    pieces = [(colour, found) for colour, found in pieces if found.size >= _LEAST_PIECE * whole]
    if len(pieces) < 2:
        return None
    legend = legend_of(labels, masks)
    beside = [label for label in labels if disc.radius < _distance(disc.x, disc.y, label) < _REACH * disc.radius]
    keyed = {key.label for key in legend.values()}
    beside = [label for label in beside if label not in keyed]
    named: list[tuple[float, str, float]] = []
    for number, (colour, found) in enumerate(sorted(pieces, key=lambda piece: _middle(piece[1], len(turn))), 1):
        middle = _middle(found, len(turn))
        name = legend[colour].label.text if colour in legend else _nearest(disc, middle, beside)
        named.append((middle, name or str(number), 100 * found.size / whole))
    values = tuple(share for _, _, share in named)
    return Chart(ChartKind.PIE, tuple(name for _, name, _ in named), (Series("%", values),), _STEP)


def _disc(masks: Sequence[Mask]) -> _Disc | None:
    """The largest round thing that the colours make together."""
    if not masks:
        return None
    together = np.logical_or.reduce(masks).astype(np.uint8)
    closed = cv2.morphologyEx(together, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(closed, connectivity=4)
    if count < 2:
        return None
    x, y, wide, high, size = max(stats[1:].tolist(), key=lambda one: one[4])
    is_round = abs(wide - high) <= _ROUND * max(wide, high) and size <= 1.03 * math.pi / 4 * wide * high
    if not is_round or size < _FULL * math.pi / 4 * wide * high or min(wide, high) < 2 * _LEAST_RADIUS:
        return None
    return _Disc(x + wide / 2, y + high / 2, (wide + high) / 4)


def _turn(masks: Sequence[Mask], disc: _Disc) -> np.ndarray:
    """The colour at every tenth of a degree clockwise from the top; -1 where there is none of them."""
    angles = np.arange(3600) * (2 * math.pi / 3600)
    votes = np.zeros((len(masks), len(angles)))
    for share in np.linspace(*_RIM, 9):
        xs = np.clip(np.rint(disc.x + share * disc.radius * np.sin(angles)), 0, masks[0].shape[1] - 1).astype(int)
        ys = np.clip(np.rint(disc.y - share * disc.radius * np.cos(angles)), 0, masks[0].shape[0] - 1).astype(int)
        for colour, mask in enumerate(masks):
            votes[colour] += mask[ys, xs]
    return np.asarray(np.where(votes.max(axis=0) > 0, votes.argmax(axis=0), -1))


def _middle(found: np.ndarray, count: int) -> float:
    """The mean direction of a piece, radians clockwise from the top, 0 to a whole turn."""
    angles = found * (2 * math.pi / count)
    return float(math.atan2(np.sin(angles).mean(), np.cos(angles).mean()) % (2 * math.pi))


def _distance(x: float, y: float, label: Label) -> float:
    """From a point to the nearest one of a label."""
    across = max(label.box[0] - x, 0.0, x - label.box[2])
    down = max(label.box[1] - y, 0.0, y - label.box[3])
    return math.hypot(across, down)


def _nearest(disc: _Disc, angle: float, labels: Sequence[Label]) -> str:
    """The name beside a piece's middle; empty where none is near."""
    x, y = disc.x + 1.1 * disc.radius * math.sin(angle), disc.y - 1.1 * disc.radius * math.cos(angle)
    away, text = min(((_distance(x, y, label), label.text) for label in labels), default=(math.inf, ""))
    return text if away < 0.5 * disc.radius else ""
