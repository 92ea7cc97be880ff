"""Even light: shadows and dim light taken off a page, without ever deciding what is ink.

Two corrections are mixed in equal parts. One spreads the whole page's grey over the full range; the other divides by
the paper's brightness around each place. The first keeps tints and pictures, the second lifts shadows; half of each
read better on photos than either (docs/decisions/0009-preparing-pages.md). Grey stays grey: nothing is thresholded.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from docferry.vision.images import Pixels
from docferry_edge.preparation.geometry import thumbnail

_SIDE = 400
"""Long side at which the paper's brightness is estimated; it changes slowly."""

_BRIGHT, _EVEN = 215, 0.85
"""Paper at least this bright, and nowhere darker than this share of its brightest, is left as it is."""

_WHITE = 235
"""Grey level that paper is brought to."""

_LEAST_RANGE = 16
"""Grey levels between darkest and brightest below which a picture shows nothing that could be brought out."""


def brightened(pixels: Pixels) -> Pixels:
    """The page in even light; the very same array where the light was good, or where there is nothing to be seen."""
    small = thumbnail(pixels, _SIDE)
    if _is_even(small):
        return pixels
    darkest, brightest = (float(level) for level in np.percentile(small, (1, 99)))
    if brightest - darkest < _LEAST_RANGE:
        return pixels
    levels = (np.arange(256) - darkest) * (255 / (brightest - darkest))
    spread = cv2.LUT(pixels, np.clip(levels, 0, 255).astype(np.uint8))
    lifted = cv2.divide(pixels, _paper(small, pixels.shape[1], pixels.shape[0]), scale=_WHITE)
    return np.asarray(cv2.addWeighted(spread, 0.5, lifted, 0.5, 0), dtype=np.uint8)


def _is_even(small: Pixels) -> bool:
    """Whether nearly all of the page is bright paper, as on a scan."""
    grey = cv2.cvtColor(small, cv2.COLOR_BGR2GRAY)
    paper = cv2.morphologyEx(grey, cv2.MORPH_CLOSE, np.ones((11, 11), np.uint8))
    low, high = np.percentile(paper, (10, 90))
    return bool(high >= _BRIGHT and low >= _EVEN * high)


def _paper(small: Pixels, width: int, height: int) -> npt.NDArray[np.uint8]:
    """What the page would be without print: print closed, the rest smoothed; never black, since it divides."""
    closed = cv2.morphologyEx(small, cv2.MORPH_CLOSE, np.ones((11, 11), np.uint8))
    smooth = cv2.GaussianBlur(cv2.medianBlur(closed, 15), (0, 0), 5)
    return np.maximum(cv2.resize(smooth, (width, height), interpolation=cv2.INTER_LINEAR), 1).astype(np.uint8)
