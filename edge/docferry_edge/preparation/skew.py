"""How far a page's lines of text lean, from where their letters stand.

Letters stand on base lines. Seen along the right angle, the feet of all letters fall into few narrow bands; along any
other they spread (Baird, "The skew angle of printed documents", 1987). The angle whose histogram of feet has the
greatest sum of squares is the skew, nearly; the feet are then strung up to lines, and the lines' own slopes give it
exactly. Feet are few, so this costs a few milliseconds.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from docferry.vision.images import Pixels
from docferry_edge.preparation.quality import grey_at

Grey = npt.NDArray[np.uint8]
Ink = npt.NDArray[np.uint8]
"""0 or 255 for each pixel."""

Numbers = npt.NDArray[np.float64]
Feet = npt.NDArray[np.float64]
"""`(n, 2)`: the middle of the lower edge of each letter, in pixels."""

_SIDE = 1200
"""Long side at which letters are looked for; a line of A4 at 10 point has 13 pixels then."""

_WIDEST = 15.0
"""Degrees; a page that leans more was not laid down as a page."""

_STEP = 0.25
_FEWEST_FEET, _MOST_FEET = 40, 1200
"""Below the one there is no telling; above the other the lines in the page's middle are enough."""

_CLEAREST = 1.25
"""The best angle's score must exceed that of the typical angle by this factor."""

_SHORTEST_LINE = 8.0
"""Lines shorter than this many letters are high say nothing of their slope."""

_FEWEST_LINES = 3
_RULE_SPREAD = 1.0
_SPREAD = 0.6
"""Degrees between the quartiles of the slopes; beyond it the page is curled or seen from the side, not turned."""


def skew(pixels: Pixels) -> float | None:
    """Degrees by which the lines of text lean clockwise, -15..15; None when the evidence is doubtful.

    Turning the picture counter-clockwise by the answer makes it straight.
    """
    small = grey_at(pixels, _SIDE)
    if min(small.shape[:2]) < 32:
        return None
    ink = _ink(small)
    found = _by_letters(ink)
    return _by_rules(ink) if found is None else found


def count_letters(pixels: Pixels) -> int:
    """How many marks of a letter's size stand out from the paper; grain and noise have some too."""
    small = grey_at(pixels, _SIDE)
    return len(_feet(_ink(small))[0]) if min(small.shape[:2]) >= 32 else 0


def _by_letters(ink: Ink) -> float | None:
    feet, height = _feet(ink)
    if len(feet) < _FEWEST_FEET:
        return None
    angles = np.arange(-_WIDEST, _WIDEST + _STEP / 2, _STEP, dtype=np.float64)
    scores = _scores(feet, angles, height)
    best = float(angles[int(np.argmax(scores))])
    if scores.max() < _CLEAREST * float(np.median(scores)) or abs(best) > _WIDEST - 1:
        return None
    return _along_lines(feet, best, height)


def _by_rules(ink: Ink) -> float | None:
    """The slope of long rules, for tables and staves that hold few letters."""
    # Rules are long: half the size shows them as well, at a quarter of the cost.
    half = cv2.threshold(
        cv2.resize(ink, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), 60, 255, cv2.THRESH_BINARY
    )[1]
    longest = max(half.shape)
    found: Any = cv2.HoughLinesP(half, 1, np.pi / 1440, longest // 10, minLineLength=longest / 10, maxLineGap=4)
    if found is None:
        return None
    x0, y0, x1, y1 = found.reshape(-1, 4).T.astype(np.float64)
    degrees = np.degrees(np.arctan2(y1 - y0, x1 - x0))
    flat = np.abs(degrees) <= _WIDEST - 1
    lengths = np.hypot(x1 - x0, y1 - y0)[flat]
    if len(lengths) < _FEWEST_LINES or lengths.sum() < 2 * longest:
        return None
    low, middle, high = _weighted_quantiles(degrees[flat], np.square(lengths), (0.25, 0.5, 0.75))
    return round(middle, 3) if high - low <= _RULE_SPREAD else None


def _ink(grey: Grey) -> Ink:
    """What is darker than the paper around it, so that a shadow is not ink. Only the estimate ever sees this mask."""
    around = cv2.blur(grey, (31, 31))
    darker = cv2.compare(grey, cv2.addWeighted(around, 0.9, around, 0.0, -10), cv2.CMP_LT)
    return np.asarray(darker, dtype=np.uint8)


def _feet(ink: Ink) -> tuple[Feet, float]:
    """Feet of what has the size of a letter or a short word, and the median height of those."""
    _, _, parts, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    x, y, width, height, area = parts[1:].T.astype(np.float64)
    letters = (height >= 4) & (height <= 80) & (width >= 2) & (width <= 8 * height) & (area >= 8)
    if not letters.any():
        return np.empty((0, 2)), 0.0
    usual = float(np.median(height[letters]))
    letters &= (height >= 0.5 * usual) & (height <= 2.5 * usual)
    feet = np.column_stack([x + width / 2, y + height])[letters]
    if len(feet) > _MOST_FEET:
        middle = np.abs(feet[:, 1] - np.median(feet[:, 1]))
        feet = feet[np.argpartition(middle, _MOST_FEET)[:_MOST_FEET]]
    return feet, usual


def _scores(feet: Feet, degrees: Numbers, height: float) -> Numbers:
    """Sum of squares of the histogram of feet across each direction, in bins of a fifth of a letter."""
    radians = np.radians(degrees)
    across = feet[:, 1, None] * np.cos(radians) - feet[:, 0, None] * np.sin(radians)
    bins = np.floor((across - across.min()) / max(1.0, height / 5)).astype(np.int64)
    count = int(bins.max()) + 2
    flat = bins + np.arange(len(degrees)) * count
    histogram = (
        np.bincount(flat.ravel(), minlength=count * len(degrees)).reshape(len(degrees), count).astype(np.float64)
    )
    # Neighbouring bins are added up: a base line that falls on the border of two bins counts like any other.
    return np.asarray(((histogram[:, 1:] + histogram[:, :-1]) ** 2).sum(axis=1), dtype=np.float64)


def _along_lines(feet: Feet, near: float, height: float) -> float | None:
    """The slope of the lines that the feet form, near a coarse one; lines count by their length.

    Columns whose lines do not meet pull the histogram's peak towards an angle at which they would; single lines
    know nothing of one another.
    """
    radians = np.radians(near)
    along = feet[:, 0] * np.cos(radians) + feet[:, 1] * np.sin(radians)
    across = feet[:, 1] * np.cos(radians) - feet[:, 0] * np.sin(radians)
    slopes: list[float] = []
    lengths: list[float] = []
    for chain in _chains(along, across, height):
        length = float(along[chain[-1]] - along[chain[0]])
        if length >= _SHORTEST_LINE * height:
            from_middle = along[chain] - along[chain].mean()
            slopes.append(float(from_middle @ across[chain] / (from_middle @ from_middle)))
            lengths.append(length)
    if len(slopes) < _FEWEST_LINES:
        return None
    degrees = near + np.degrees(np.arctan(slopes))
    low, middle, high = _weighted_quantiles(degrees, np.square(lengths), (0.25, 0.5, 0.75))
    return round(middle, 3) if high - low <= _SPREAD else None


def _chains(along: Numbers, across: Numbers, height: float) -> list[npt.NDArray[np.int64]]:
    """Feet that follow one another on one line, as their indices, left to right; at least five each."""
    reach, tolerance = 4.0 * height, 0.35 * height
    order = np.argsort(along)
    xs, ys = along[order].tolist(), across[order].tolist()
    numbers = np.rint(across[order] / (0.5 * height)).astype(np.int64).tolist()
    rows: dict[int, list[int]] = {}
    chains: list[list[int]] = []
    # Plain lists and dictionaries: this loop over thousands of feet is ten times slower over arrays.
    for place, (x, y, row) in enumerate(zip(xs, ys, numbers, strict=True)):
        best: list[int] | None = None
        nearest = tolerance
        for key in (row, row - 1, row + 1):
            chain = rows.get(key)
            if chain and x - xs[chain[-1]] <= reach and abs(y - ys[chain[-1]]) <= nearest:
                best, nearest = chain, abs(y - ys[chain[-1]])
        if best is None:
            best = []
            chains.append(best)
        best.append(place)
        rows[row] = best
    return [order[chain] for chain in chains if len(chain) >= 5]


def _weighted_quantiles(values: Numbers, weights: Numbers, shares: tuple[float, ...]) -> list[float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return [float(value) for value in values[order][places]]
