"""Pictures that are no pages: a table or a few lines cut out of one, often with small print.

The layout network was trained on whole upright pages that are squeezed to its shape; what fills a wide picture looks
like nothing it has seen. Laid on a blank sheet it looks like what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import cv2
import numpy as np

from docferry.document import Box, Page, RegionType
from docferry.reading_order import LayoutBox
from docferry.rectangles import around
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad, size

MOST_SIDE = 900
"""A picture with a longer side is taken for a page; the lowest scans of A4 that can be read have 1,100."""

_WIDE = 1.3
_SHEET = 800 / 608
"""Height of the sheet for its width: the network's own proportions."""

_SHARE = 0.9
"""Of the sheet's width that the picture takes. Of 13 cut-out tables 5 were found without a sheet, 11 with this one."""

_READABLE = 16.0
_ENLARGED = 28.0
_MOST_ENLARGED = 4.0

TABLE_SCORE = 0.99
"""Score of a table's structure that is believed where the layout network saw no table."""


def is_excerpt(image: Pixels) -> bool:
    """Whether a picture is too small for a whole page."""
    return bool(max(image.shape[:2]) < MOST_SIDE)


def is_wide(image: Pixels) -> bool:
    """Whether an excerpt needs a sheet under it."""
    height, width = image.shape[:2]
    return bool(width > _WIDE * height)


def on_sheet(image: Pixels) -> tuple[Pixels, Box]:
    """The picture in the middle of a white sheet, and its box on it, relative."""
    height, width = image.shape[:2]
    wide = round(width / _SHARE)
    high = max(round(wide * _SHEET), height)
    sheet = np.full((high, wide, 3), 255, dtype=np.uint8)
    x, y = (wide - width) // 2, (high - height) // 2
    sheet[y : y + height, x : x + width] = image
    return sheet, (x / wide, y / high, (x + width) / wide, (y + height) / high)


def from_sheet(boxes: Sequence[LayoutBox], place: Box) -> tuple[LayoutBox, ...]:
    """Layout boxes of the sheet as those of the picture on it; what lies off the picture goes."""
    x0, y0, x1, y1 = place
    moved = (
        replace(
            box,
            box=(
                _clipped((box.box[0] - x0) / (x1 - x0)),
                _clipped((box.box[1] - y0) / (y1 - y0)),
                _clipped((box.box[2] - x0) / (x1 - x0)),
                _clipped((box.box[3] - y0) / (y1 - y0)),
            ),
        )
        for box in boxes
    )
    return tuple(box for box in moved if box.box[2] > box.box[0] and box.box[3] > box.box[1])


def legible(image: Pixels, quads: Sequence[Quad]) -> Pixels:
    """The picture, enlarged where its print is too low for the recognisers."""
    if not quads:
        return image
    height = median(size(quad)[1] for quad in quads)
    if height >= _READABLE:
        return image
    scale = min(_ENLARGED / height, _MOST_ENLARGED)
    return np.asarray(cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


def as_one_table(page: Page) -> Page | None:
    """The page as a single table region, where its rows have several pieces mostly; None where they do not."""
    lines = page.lines
    if len(lines) < 4 or any(region.type is RegionType.TABLE for region in page.regions):
        return None
    beside = sum(any(_beside(one.box, other.box) for other in lines if other is not one) for one in lines)
    if beside < 0.7 * len(lines):
        return None
    first = page.regions[0]
    ordered = tuple(replace(line, id=f"r1.l{place + 1}") for place, line in enumerate(lines))
    region = replace(
        first, id="r1", order=0, type=RegionType.TABLE, score=0.0, box=around(line.box for line in lines), lines=ordered
    )
    return replace(page, regions=(region,))


def _beside(one: Box, other: Box) -> bool:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    apart = one[2] < other[0] or other[2] < one[0]
    return apart and shared > 0.5 * min(one[3] - one[1], other[3] - other[1])


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))
