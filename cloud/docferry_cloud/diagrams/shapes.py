"""The boxes of a diagram: closed even areas with a text in them, whatever their outline, filling or form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from docferry.document import Box
from docferry.vision.images import Pixels
from docferry_cloud.charts.chart import Label
from docferry_cloud.charts.colours import Mask

_STEP = 40
"""Levels between neighbouring pixels, in the channel that differs most, that are an edge and no noise."""

_CONVEX = 0.88
"""Share of its hull that a box fills; a diamond, a disc and rounded corners fill all of it."""

_MOST_OF_PICTURE = 0.5
_MOST_LINES_HIGH = 9.0
"""Height of a box in heights of its print: what is larger frames a part of the diagram."""

_ROW = 20
"""Pixels; boxes that begin less apart stand in one row, as a rule."""

_WIDEST_OUTLINE = 8
_OUTLINE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Shape:
    """A box of a diagram.

    Attributes:
        name: Its lines, joined by spaces.
        labels: Places of its lines among the labels.
        box: Around it, in pixels.
        area: Itself with its outline, as a mask of the picture.
    """

    name: str
    labels: tuple[int, ...]
    box: Box
    area: Mask


def shapes(image: Pixels, drawn: Mask, labels: Sequence[Label]) -> list[Shape]:
    """Boxes with a text in them, in the order of reading; what frames other boxes is none.

    Args:
        drawn: Where the picture is not paper.
    """
    edges = cv2.morphologyEx(image, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)).max(axis=2) > _STEP
    contours, tree = cv2.findContours((~edges).astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    # The rim of a hole in an area, a word for example, has a parent.
    contours = (
        [contour for contour, (*_, parent) in zip(contours, tree[0], strict=True) if parent < 0] if contours else []
    )
    found: list[Shape] = []
    # The smallest first: a frame around boxes finds its labels taken.
    taken: set[int] = set()
    for contour in sorted(contours, key=cv2.contourArea):
        area = cv2.contourArea(contour)
        held = _held(np.asarray(contour), labels)
        if not held or taken.intersection(held) or area > _MOST_OF_PICTURE * drawn.size:
            continue
        if not _is_box(np.asarray(contour), area, [labels[at] for at in held]):
            continue
        taken.update(held)
        mask = np.zeros(drawn.shape, np.uint8)
        cv2.drawContours(mask, [contour], -1, (1,), cv2.FILLED)
        x, y, wide, high = cv2.boundingRect(contour)
        name = " ".join(labels[at].text.strip() for at in sorted(held, key=lambda at: (labels[at].y, labels[at].x)))
        found.append(Shape(name, tuple(held), (x, y, x + wide, y + high), _with_outline(mask, drawn)))
    return sorted(found, key=lambda shape: (shape.box[1] // _ROW, shape.box[0]))


def _held(contour: NDArray[np.int32], labels: Sequence[Label]) -> list[int]:
    return [
        at
        for at, label in enumerate(labels)
        if label.text.strip() and cv2.pointPolygonTest(contour, (label.x, label.y), measureDist=False) >= 0
    ]


def _is_box(contour: NDArray[np.int32], area: float, labels: Sequence[Label]) -> bool:
    *_, high = cv2.boundingRect(contour)
    print_size = max(label.size for label in labels)
    printed = sum((label.box[2] - label.box[0]) * (label.box[3] - label.box[1]) for label in labels)
    # The hollow of a letter lies in its label's middle, too.
    if high < print_size or high > _MOST_LINES_HIGH * print_size * max(1, len(labels) / 3) or area < 0.8 * printed:
        return False
    hull = cv2.contourArea(cv2.convexHull(contour))
    return bool(hull > 0 and area >= _CONVEX * hull)


def _with_outline(mask: NDArray[np.uint8], drawn: Mask) -> Mask:
    """The area grown as long as most of its rim is drawn on."""
    inside = mask.astype(bool)
    # The edge takes one pixel of the inside.
    grown = cv2.dilate(mask, np.ones((3, 3), np.uint8))
    kernel = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    for _ in range(_WIDEST_OUTLINE):
        wider = cv2.dilate(grown, kernel)
        rim = wider.astype(bool) & ~grown.astype(bool)
        if not rim.any() or drawn[rim].mean() < _OUTLINE_SHARE:
            break
        grown = wider
    return np.asarray(inside | cv2.dilate(grown, kernel).astype(bool))
