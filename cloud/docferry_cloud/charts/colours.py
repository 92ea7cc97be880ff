"""The colours that a chart draws its series in, each as a mask of the picture."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from docferry.vision.images import Pixels

Mask = NDArray[np.bool_]

_INK = 30
"""Levels from the paper, in the channel that differs most, from which on a pixel is drawn on."""

_FLAT = 14
_SAME = 34
_LEAST_SHARE = 0.0015
_MOST_COLOURS = 8
_SATURATED = 60
_HUES = 180
_HUE_APART = 6


def paper(image: Pixels) -> NDArray[np.int16]:
    """The colour that most of a picture has, BGR."""
    small = (image.reshape(-1, 3) >> 3).astype(np.int32)
    codes = small[:, 0] << 10 | small[:, 1] << 5 | small[:, 2]
    most = np.bincount(codes).argmax()
    return np.asarray(np.median(image.reshape(-1, 3)[codes == most], axis=0), dtype=np.int16)


def drawn_on(image: Pixels) -> Mask:
    """Where a picture is not paper."""
    return np.asarray(np.abs(image.astype(np.int16) - paper(image)).max(axis=2) > _INK)


def flat_colours(image: Pixels) -> list[Mask]:
    """The colours of filled areas, the largest first."""
    kernel = np.ones((3, 3), np.uint8)
    edges = cv2.morphologyEx(image, cv2.MORPH_GRADIENT, kernel).max(axis=2)
    drawn = drawn_on(image)
    inside = drawn & (edges < _FLAT)
    masks: list[Mask] = []
    wide = image.astype(np.int16)
    while inside.sum() > _LEAST_SHARE * inside.size and len(masks) < _MOST_COLOURS:
        colour = paper(image[inside][None])
        near = np.abs(wide - colour).max(axis=2) <= _SAME
        masks.append(near & drawn)
        inside &= ~near
    return masks


def stroke_colours(image: Pixels) -> list[Mask]:
    """The colours of thin lines, the longest first: by hue, which the soft edge of a line keeps.

    A black or grey line has none: axes and print are black too.
    """
    hue, saturation, _ = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2HSV))
    drawn = drawn_on(image)
    coloured = drawn & (saturation > _SATURATED)
    counts = np.bincount(hue[coloured], minlength=_HUES).astype(np.float64)
    smooth = sum(
        np.roll(counts, shift) * weight for shift, weight in zip(range(-3, 4), (1, 2, 3, 4, 3, 2, 1), strict=True)
    )
    smooth = np.asarray(smooth) / 16
    masks: list[Mask] = []
    left = smooth.copy()
    while len(masks) < _MOST_COLOURS and left[peak := int(left.argmax())] * 8 > _least_stroke(image):
        away = np.abs((hue.astype(np.int16) - peak + _HUES // 2) % _HUES - _HUES // 2)
        masks.append(coloured & (away <= _HUE_APART))
        for shift in range(-2 * _HUE_APART, 2 * _HUE_APART + 1):
            left[(peak + shift) % _HUES] = 0
    return masks


def _least_stroke(image: Pixels) -> float:
    """Pixels of a line across half the picture."""
    return float(image.shape[1]) / 2
