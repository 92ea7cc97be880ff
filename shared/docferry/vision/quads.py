"""Quadrilaterals around text, in pixels: corner order, growing, cutting out.

A quad is `(4, 2)` float32: x, y of four corners, clockwise on the screen from the text's top left.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from docferry.document import Polygon
from docferry.vision.images import Pixels

Quad = npt.NDArray[np.float32]

TALL = 1.5
"""A quad at least this many times higher than wide holds a line that runs downwards."""


def ordered(points: npt.NDArray[np.float32]) -> Quad:
    """Corners of a rectangle, clockwise, from the top left of the text inside.

    Lines run to the right, so the start is the corner whose next edge points most nearly rightwards; a quad more than
    `TALL` times higher than wide is taken to run from top to bottom, and starts at its top right.

    Args:
        points: Four corners in any order, `(4, 2)`; no three on one line.
    """
    centre = points.mean(axis=0)
    angles = np.arctan2(points[:, 1] - centre[1], points[:, 0] - centre[0])
    # With y downwards, growing angles go clockwise on the screen.
    quad = points[np.argsort(angles)]
    edges = np.roll(quad, -1, axis=0) - quad
    lengths = np.maximum(np.linalg.norm(edges, axis=1), 1e-6)
    start = int(np.argmax(edges[:, 0] / lengths))
    quad = np.roll(quad, -start, axis=0)
    width, height = size(quad)
    if height >= TALL * width:
        quad = np.roll(quad, -1, axis=0)
    return np.asarray(quad, dtype=np.float32)


def size(quad: Quad) -> tuple[float, float]:
    """Width along the text and height across it, in pixels: the longer of each pair of opposite edges."""
    width = max(float(np.linalg.norm(quad[1] - quad[0])), float(np.linalg.norm(quad[2] - quad[3])))
    height = max(float(np.linalg.norm(quad[3] - quad[0])), float(np.linalg.norm(quad[2] - quad[1])))
    return width, height


def turned_around(quad: Quad) -> Quad:
    """The same quad read from the opposite end (text upside down)."""
    return np.roll(quad, 2, axis=0)


def is_vertical(quad: Quad) -> bool:
    """Whether the line runs more down (or up) the page than across it."""
    direction = quad[1] - quad[0]
    return bool(abs(float(direction[1])) > abs(float(direction[0])))


def cut_out(image: Pixels, quad: Quad, height: int) -> Pixels:
    """The text inside a quad, straightened and scaled to `height` pixels.

    Returns:
        `(height, width, 3)`; the width keeps the quad's proportions, at least 1.
    """
    wide, high = size(quad)
    native_width, native_height = max(1, round(wide)), max(1, round(high))
    if _is_upright(quad):
        x0, y0 = np.floor(quad[0]).astype(int)
        x1, y1 = np.ceil(quad[2]).astype(int)
        rows, columns = image.shape[:2]
        crop = image[max(0, y0) : min(rows, max(y1, y0 + 1)), max(0, x0) : min(columns, max(x1, x0 + 1))]
        if crop.size == 0:
            crop = np.full((1, 1, 3), 255, dtype=np.uint8)
    else:
        target = np.array(
            [[0, 0], [native_width, 0], [native_width, native_height], [0, native_height]], dtype=np.float32
        )
        matrix = cv2.getPerspectiveTransform(np.asarray(quad, dtype=np.float32), target)
        crop = np.asarray(
            cv2.warpPerspective(
                image,
                matrix,
                (native_width, native_height),
                flags=cv2.INTER_CUBIC,
                borderMode=cv2.BORDER_REPLICATE,
            ),
            dtype=np.uint8,
        )
    width = max(1, round(crop.shape[1] * height / crop.shape[0]))
    # INTER_LINEAR skips pixels when shrinking by more than two; area averages keep thin strokes.
    how = cv2.INTER_AREA if crop.shape[0] > 2 * height else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(crop, (width, height), interpolation=how), dtype=np.uint8)


def relative(quad: Quad, width: int, height: int) -> Polygon:
    """Pixels to 0..1, clipped to the page."""
    scaled = np.clip(quad / np.array([width, height], dtype=np.float32), 0.0, 1.0)
    corners = [(float(x), float(y)) for x, y in scaled]
    return corners[0], corners[1], corners[2], corners[3]


def absolute(polygon: Polygon, width: int, height: int) -> Quad:
    """0..1 to pixels of a page of that size."""
    return np.array(polygon, dtype=np.float32) * np.array([width, height], dtype=np.float32)


def _is_upright(quad: Quad) -> bool:
    """Whether the edges follow the pixel grid to within half a pixel, so that slicing is exact enough."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = quad.tolist()
    level = abs(ay - by) <= 0.5 and abs(cy - dy) <= 0.5 and abs(ax - dx) <= 0.5 and abs(bx - cx) <= 0.5
    return bool(level and cx > ax and cy > ay)
