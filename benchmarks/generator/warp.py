"""Where a point of the flat page lands in the photograph, and back: closed forms, so the truth moves exactly."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.generator.truth import Points


@dataclass(frozen=True, slots=True)
class Curl:
    """Paper that does not lie flat, as two shears and an uneven foreshortening, each invertible.

    Attributes:
        width, height: The page, pixels.
        bow: How far lines bend up or down across the width, pixels.
        sway: How far the page leans left and right down its height, pixels.
        roll: Relative change of line spacing along the height, below 1.
        phases: Where on the page the three waves start, radians.
    """

    width: float
    height: float
    bow: float = 0.0
    sway: float = 0.0
    roll: float = 0.0
    phases: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def forward(self, points: Points) -> Points:
        """Flat page to curled page, N x 2 to N x 2."""
        x, y = points[:, 0], points[:, 1]
        y = self._rolled(y)
        y = y + self._bow(x)
        x = x + self._sway(y)
        return np.stack([x, y], axis=1)

    def backward(self, points: Points) -> Points:
        """Curled page to flat page; the foreshortening by Newton's method, to 1e-6 pixels."""
        x, y = points[:, 0], points[:, 1]
        x = x - self._sway(y)
        target = y - self._bow(x)
        y = target
        if self.roll:
            turn = 2 * np.pi / self.height
            for _ in range(8):
                slope = 1 + self.roll * np.cos(turn * y + self.phases[2])
                y = y - (self._rolled(y) - target) / slope
        return np.stack([x, y], axis=1)

    def shade(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """How steeply the paper bends at `x`, -1..1: what lights and darkens it."""
        return np.asarray(np.cos(np.pi * x / self.width + self.phases[0]), dtype=np.float32)

    def _rolled(self, y: Points) -> Points:
        turn = 2 * np.pi / self.height
        return y + self.roll / turn * np.sin(turn * y + self.phases[2])

    def _bow(self, x: Points) -> Points:
        return self.bow * np.sin(np.pi * x / self.width + self.phases[0])

    def _sway(self, y: Points) -> Points:
        return self.sway * np.sin(np.pi * y / self.height + self.phases[1])


@dataclass(frozen=True, slots=True)
class Warp:
    """Curl, then a camera's perspective; `matrix` is a 3 x 3 homography from curled page to photograph."""

    curl: Curl
    matrix: Points

    def forward(self, points: Points) -> Points:
        """Flat page to photograph, N x 2 pixels."""
        return project(self.matrix, self.curl.forward(np.asarray(points, dtype=np.float64)))

    def backward(self, points: Points) -> Points:
        """Photograph to flat page, N x 2 pixels."""
        return self.curl.backward(
            project(np.asarray(np.linalg.inv(self.matrix), dtype=np.float64), np.asarray(points, dtype=np.float64))
        )

    def maps(self, width: int, height: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """For every pixel of a `width` x `height` photograph the page's x and y, as `cv2.remap` wants them.

        Computed at every eighth pixel and interpolated: the warp is so smooth that this is off by far less than
        a hundredth of a pixel.
        """
        columns, rows = np.arange(0, width + _STEP, _STEP), np.arange(0, height + _STEP, _STEP)
        grid = np.stack([axis.ravel() for axis in np.meshgrid(columns, rows)], axis=1).astype(np.float64)
        # Pixel centres lie at +0.5 in the truth's coordinates and at 0 in OpenCV's.
        source = (self.backward(grid + 0.5) - 0.5).reshape(len(rows), len(columns), 2)
        across = _between(_between(source[:, :, 0], height, 0), width, 1)
        down = _between(_between(source[:, :, 1], height, 0), width, 1)
        return across.astype(np.float32), down.astype(np.float32)


_STEP = 8


def _between(coarse: Points, size: int, axis: int) -> Points:
    """Linear interpolation of values `_STEP` apart to every position from 0 to `size` - 1 along `axis`."""
    position = np.arange(size)
    shape = (-1, 1) if axis == 0 else (1, -1)
    share = ((position % _STEP) / _STEP).reshape(shape)
    first = np.take(coarse, position // _STEP, axis=axis)
    second = np.take(coarse, position // _STEP + 1, axis=axis)
    blended: Points = first * (1 - share) + second * share
    return blended


def project(matrix: Points, points: Points) -> Points:
    """Send N x 2 points through a homography."""
    x, y = points[:, 0], points[:, 1]
    across, down, scale = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return np.stack([across / scale, down / scale], axis=1)


def to_quad(width: float, height: float, quad: Points) -> Points:
    """The homography that sends the corners of a `width` x `height` page to `quad` (4 x 2, clockwise)."""
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    return np.asarray(cv2.getPerspectiveTransform(corners, quad.astype(np.float32)), dtype=np.float64)
