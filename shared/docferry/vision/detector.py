"""Finding text lines: a DB network (Liao et al., "Real-time Scene Text Detection with Differentiable Binarization").

The network gives, for every pixel, the probability that it belongs to the shrunken core of a text line. Cores are
thresholded, wrapped in the smallest rotated rectangle and grown back to the line's full height.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import cv2
import numpy as np
import numpy.typing as npt

from docferry.vision.images import Pixels
from docferry.vision.quads import Quad, ordered, size
from docferry.vision.sessions import Network, Tensor

_STRIDE = 32
_OVERLAP = 64
"""Pixels the network sees beyond a strip's own, above and below: more than two lines of small print."""

_Rectangle = tuple[Sequence[float], Sequence[float], float]
"""OpenCV's rotated rectangle: centre, width and height, degrees."""

_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """How lines are found; the defaults were measured on receipts (benchmarks/reading.py).

    Attributes:
        area: Pixels the network sees of a page, about; a long receipt and a sheet of A4 then cost the same.
        long_side: Bound on the long side after scaling; it wins over `area`.
        enlarge: Greatest enlargement of small pages.
        threshold: A pixel belongs to a core above this probability.
        box_threshold: A core is kept when its mean probability is at least this.
        unclip: Growth of a core, as DB's ratio: distance = area * unclip / perimeter.
        most: No more cores than this are looked at.
        small: Lines lower than this in the network's pixels are small print: where the median line is, and the page
            has more pixels, it is looked at again, closer. On drawn pages word F1 was 0.97 to 1.00 above it and fell
            to 0.81 and 0.30 below.
        closer: How much larger the second look shows the page.
    """

    area: int = 800_000
    long_side: int = 2560
    enlarge: float = 1.0
    threshold: float = 0.3
    box_threshold: float = 0.4
    unclip: float = 2.0
    most: int = 2000
    small: float = 10.0
    closer: float = 2.0


@dataclass(frozen=True, slots=True)
class Detection:
    """Lines found on one page.

    Attributes:
        quads: One per line, in the page's pixels, clockwise from the text's top left; in no particular order.
        scores: The mean core probability of each, 0..1.
        scale: Pixels the network saw per pixel of the page, horizontally and vertically.
    """

    quads: tuple[Quad, ...]
    scores: tuple[float, ...]
    scale: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Detector:
    """The text line detector. Safe to use from several threads at once."""

    network: Network
    settings: DetectorSettings = field(default_factory=DetectorSettings)

    def detect(self, image: Pixels) -> Detection:
        """Find the text lines on a page `(height, width, 3)`, BGR."""
        height, width = image.shape[:2]
        found = self._look(image, input_size(width, height, self.settings))
        if not self._is_small(found):
            return found
        return self._look_closer(image, min(1.0, found.scale[1] * self.settings.closer))

    def _look(self, image: Pixels, seen: tuple[int, int]) -> Detection:
        height, width = image.shape[:2]
        probability = self.network.run(_tensor(image, *seen))[0][0, 0]
        scale = (seen[0] / width, seen[1] / height)
        quads, scores = _quads(probability, scale, (width, height), self.settings)
        return Detection(tuple(quads), tuple(scores), scale)

    def _is_small(self, found: Detection) -> bool:
        if not found.quads or found.scale[1] >= 1:
            return False
        return median(size(quad)[1] for quad in found.quads) * found.scale[1] < self.settings.small

    def _look_closer(self, image: Pixels, scale: float) -> Detection:
        """The page in strips as wide as itself, each as large to the network as a page: memory stays what it was.

        Strips overlap, and a line belongs to the strip that its middle lies in, so every line is seen whole once.
        """
        height, width = image.shape[:2]
        seen_width = min(_multiple(width * scale), self.settings.long_side)
        scale = seen_width / width
        own = max(_STRIDE, round(self.settings.area / seen_width) - 2 * _OVERLAP)
        quads: list[Quad] = []
        scores: list[float] = []
        for start in range(0, math.ceil(height * scale), own):
            top = max(0, round((start - _OVERLAP) / scale))
            bottom = min(height, round((start + own + _OVERLAP) / scale))
            strip = self._look(image[top:bottom], (seen_width, _multiple((bottom - top) * scale)))
            for quad, score in zip(strip.quads, strip.scores, strict=True):
                moved = quad + np.array([0, top], dtype=np.float32)
                if start <= float(moved[:, 1].mean()) * scale < start + own:
                    quads.append(moved)
                    scores.append(score)
        return Detection(tuple(quads), tuple(scores), (scale, scale))


def input_size(width: int, height: int, settings: DetectorSettings) -> tuple[int, int]:
    """Width and height the page is scaled to: multiples of 32, within the settings' bounds."""
    scale = min(math.sqrt(settings.area / (width * height)), settings.enlarge)
    scale = min(scale, settings.long_side / max(width, height))
    return _multiple(width * scale), _multiple(height * scale)


def _multiple(side: float) -> int:
    return max(_STRIDE, round(side / _STRIDE) * _STRIDE)


def _tensor(image: Pixels, width: int, height: int) -> Tensor:
    """`(1, 3, height, width)`, normalised channel by channel."""
    shrinking = width < image.shape[1]
    scaled = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrinking else cv2.INTER_LINEAR)
    tensor = np.empty((1, 3, height, width), dtype=np.float32)
    for channel in range(3):
        np.subtract(scaled[:, :, channel], _MEAN[channel], out=tensor[0, channel])
        tensor[0, channel] *= 1 / _DEVIATION[channel]
    return tensor


def _quads(
    probability: Tensor, scale: tuple[float, float], page: tuple[int, int], settings: DetectorSettings
) -> tuple[list[Quad], list[float]]:
    cores = (probability > settings.threshold).astype(np.uint8)
    # Two levels: outlines, and the holes in them. A hole in a core is no line of its own.
    contours, hierarchy = cv2.findContours(cores, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    outlines = [
        contour for contour, links in zip(contours, hierarchy[0] if contours else (), strict=True) if links[3] < 0
    ]
    quads: list[Quad] = []
    scores: list[float] = []
    for contour in outlines[: settings.most]:
        rectangle = cv2.minAreaRect(contour)
        if min(rectangle[1]) < 2:
            continue
        score = _mean_inside(probability, _corners(rectangle))
        if score < settings.box_threshold:
            continue
        corners = _corners(_grown(rectangle, settings.unclip)) / np.array(scale, dtype=np.float32)
        corners = np.clip(corners, 0, np.array(page, dtype=np.float32))
        if np.ptp(corners[:, 0]) < 3 or np.ptp(corners[:, 1]) < 3:
            continue
        quads.append(ordered(corners.astype(np.float32)))
        scores.append(score)
    return quads, scores


def _corners(rectangle: _Rectangle) -> npt.NDArray[np.float32]:
    return np.asarray(cv2.boxPoints(rectangle), dtype=np.float32)


def _grown(rectangle: _Rectangle, ratio: float) -> _Rectangle:
    """A rotated rectangle pushed outwards on all sides by DB's distance: area * ratio / perimeter."""
    centre, (width, height), angle = rectangle
    distance = width * height * ratio / (2 * (width + height))
    return centre, (width + 2 * distance, height + 2 * distance), angle


def _mean_inside(probability: Tensor, corners: npt.NDArray[np.float32]) -> float:
    """Mean probability inside a quad, over its bounding box only."""
    height, width = probability.shape
    x0, y0 = np.clip(np.floor(corners.min(axis=0)).astype(int), 0, [width - 1, height - 1])
    x1, y1 = np.clip(np.ceil(corners.max(axis=0)).astype(int), 0, [width - 1, height - 1])
    mask = np.zeros((y1 - y0 + 1, x1 - x0 + 1), dtype=np.uint8)
    cv2.fillPoly(mask, [(corners - [x0, y0]).astype(np.int32)], (1,))
    return float(cv2.mean(probability[y0 : y1 + 1, x0 : x1 + 1], mask)[0])
