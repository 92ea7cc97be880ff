"""Upright boxes `(x0, y0, x1, y1)` in one unit, pixels or shares: areas, overlaps, frames. Pure, no numpy."""

from __future__ import annotations

from collections.abc import Iterable

from docferry.document import Box


def middle(box: Box) -> float:
    """Half way between top and bottom."""
    return (box[1] + box[3]) / 2


def spans(one: Box, other: Box) -> bool:
    """Whether two boxes share columns: their x ranges overlap by more than a tenth of the narrower one."""
    overlap = min(one[2], other[2]) - max(one[0], other[0])
    return overlap > 0.1 * min(one[2] - one[0], other[2] - other[0])


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of them; at least one."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def overlap_area(one: Box, other: Box) -> float:
    """Area that both cover."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def area(box: Box) -> float:
    """Width times height."""
    return (box[2] - box[0]) * (box[3] - box[1])


def in_pixels(box: Box, width: float, height: float) -> Box:
    """Shares of a page to its pixels, or to points."""
    return box[0] * width, box[1] * height, box[2] * width, box[3] * height


def in_shares(box: Box, width: float, height: float) -> Box:
    """Pixels, or points, of a page to shares, clipped to it."""
    return (
        min(max(box[0] / width, 0.0), 1.0),
        min(max(box[1] / height, 0.0), 1.0),
        min(max(box[2] / width, 0.0), 1.0),
        min(max(box[3] / height, 0.0), 1.0),
    )
