"""Homographies between relative coordinates, and warping pixels by them.

A homography here is a `(3, 3)` float64 matrix over column vectors `(x, y, 1)`, relative 0..1 on both sides, so it
holds at any resolution: crops of the captured frame can be cut at its full size.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from docferry.vision.images import Pixels

Homography = npt.NDArray[np.float64]
Points = npt.NDArray[np.float64]
"""`(n, 2)`: x, y."""

_UNIT = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def identity() -> Homography:
    """The map that moves nothing."""
    return np.eye(3)


def apply(homography: Homography, points: Points) -> Points:
    """Map points `(n, 2)`; those on the map's horizon come out infinite."""
    mapped = np.column_stack([points, np.ones(len(points))]) @ homography.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(mapped[:, :2] / mapped[:, 2:], dtype=np.float64)


def from_corners(corners: Points) -> Homography:
    """The map of the unit square onto four relative points, clockwise from the top left."""
    matrix = cv2.getPerspectiveTransform(_UNIT.astype(np.float32), corners.astype(np.float32))
    return np.asarray(matrix, dtype=np.float64)


def quarter_turns(degrees: int) -> Homography:
    """From a picture that was turned clockwise by 0, 90, 180 or 270 degrees back to where its points were before."""
    turned = np.roll(_UNIT, degrees // 90, axis=0)
    return from_corners(turned) if degrees else identity()


def straightened(degrees: float, width: int, height: int) -> tuple[Homography, int, int]:
    """Turning a picture counter-clockwise on a canvas that holds all of it.

    Returns:
        The map from the new canvas to the old picture, and the new canvas's width and height in pixels.
    """
    angle = math.radians(degrees)
    cosine, sine = math.cos(angle), math.sin(angle)
    new_width = max(1, math.ceil(abs(width * cosine) + abs(height * sine) - 1e-6))
    new_height = max(1, math.ceil(abs(width * sine) + abs(height * cosine) - 1e-6))
    centred = _UNIT * (new_width, new_height) - (new_width / 2, new_height / 2)
    back = centred @ np.array([[cosine, sine], [-sine, cosine]]) + (width / 2, height / 2)
    return from_corners(back / (width, height)), new_width, new_height


def warp(pixels: Pixels, to_old: Homography, width: int, height: int) -> Pixels:
    """The picture seen through a map from the new canvas to the old one.

    What lies outside the old picture is filled with its middle colour, which on a page is paper.
    """
    old_height, old_width = pixels.shape[:2]
    # Relative coordinates speak of pixel edges, OpenCV's of pixel centres: half a pixel each way.
    to_pixels = _scaling(old_width, old_height) @ to_old @ np.linalg.inv(_scaling(width, height))
    paper = [float(value) for value in np.median(pixels[:: _stride(old_height), :: _stride(old_width)], axis=(0, 1))]
    warped = cv2.warpPerspective(
        pixels,
        to_pixels,
        (width, height),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=paper,
    )
    return np.asarray(warped, dtype=np.uint8)


def thumbnail(pixels: Pixels, longest: int) -> Pixels:
    """A small copy whose long side is at most `longest`, for estimates that need no fine detail."""
    height, width = pixels.shape[:2]
    scale = longest / max(height, width)
    if scale >= 1:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if scale < 0.4:
        # Every n-th pixel, then averages of those: averaging all of a scan would cost more than what it is for.
        pixels = np.asarray(cv2.resize(pixels, (2 * size[0], 2 * size[1]), interpolation=cv2.INTER_NEAREST))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _scaling(width: int, height: int) -> Homography:
    """Relative coordinates to the indices of pixels, whose centres are whole numbers."""
    return np.array([[width, 0, -0.5], [0, height, -0.5], [0, 0, 1.0]])


def _stride(length: int) -> int:
    return max(1, length // 200)
