"""A sheet of paper lying on something darker: its four corners, or nothing where that is not beyond doubt.

The rule is that text is never cut: the corners always enclose all of the bright sheet, and when what lies outside
them looks like print, or the sheet's border does not fall off on its free sides, there is no sheet.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from docferry.vision.images import Pixels
from docferry_edge.preparation.geometry import Points, thumbnail

Grey = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.uint8]
"""0 or 255 for each pixel."""

_SIDE = 480
"""Long side at which the sheet is looked for."""

_LEAST_SHARE = 0.15
"""Of the frame; what is smaller may be one label among many."""

_MOST_SHARE = 0.93
"""Of the frame; beyond that there is nothing to gain."""

_LEAST_FILL = 0.88
"""How much of its four corners' area a sheet fills; curl costs some of it."""

_LEAST_STEP, _LEAST_RATIO = 18, 1.15
"""A sheet is brighter than what is just outside by so many grey levels, and by this factor."""

_LEAST_BORDER = 0.85
"""Share of the border in view along which that holds."""

_LEAST_VISIBLE = 0.6
"""Share of the border that must lie inside the frame."""

_MARGIN = 0.008
"""The corners are moved outwards by this share of the sheet's size."""

_MOST_PRINT = 0.02
"""Print outside the sheet, relative to that inside, above which the frame is the page."""


def find_sheet(pixels: Pixels) -> Points | None:
    """The corners of a sheet in a photo, or None.

    Returns:
        `(4, 2)` relative to the picture, clockwise from the corner nearest its top left; they may lie a little
        outside the picture where the sheet runs out of it.
    """
    height, width = pixels.shape[:2]
    scale = _SIDE / max(height, width)
    if scale * min(height, width) < 64 or scale > 1:
        return None
    small = thumbnail(pixels, _SIDE)
    # Wood and skin reflect little blue, paper reflects all colours: the least of the three sets it off best.
    least = np.asarray(small.min(axis=2), dtype=np.uint8)
    if _bright_all_round(least):
        return None
    closed = cv2.morphologyEx(least, cv2.MORPH_CLOSE, np.ones((13, 13), np.uint8))
    plain = np.asarray(cv2.medianBlur(closed, 5), dtype=np.uint8)
    for bound in _bounds(plain):
        hull = _brightest_part(plain, bound)
        corners = None if hull is None else _enclosing_corners(hull)
        if hull is not None and corners is not None and _convincing(corners, hull, plain, least):
            return np.asarray(_grown(corners) / small.shape[1::-1], dtype=np.float64)
    return None


def sheet_size(corners: Points, width: int, height: int) -> tuple[int, int]:
    """Width and height in pixels at which the sheet keeps the frame's resolution: the longer of opposite sides."""
    sides = np.linalg.norm((np.roll(corners, -1, axis=0) - corners) * (width, height), axis=1)
    return max(1, round(max(sides[0], sides[2]))), max(1, round(max(sides[1], sides[3])))


def lean(corners: Points, width: int, height: int) -> float:
    """Degrees by which a sheet in a picture of this size leans clockwise: the mean of its upper and lower side."""
    along = (corners[1] - corners[0] + corners[2] - corners[3]) * (width, height)
    return round(math.degrees(math.atan2(along[1], along[0])), 3)


def _bright_all_round(least: Grey) -> bool:
    """Whether the frame's border is as bright as the paper: a scan, or a page that fills the frame."""
    border = np.concatenate([least[:4].ravel(), least[-4:].ravel(), least[:, :4].ravel(), least[:, -4:].ravel()])
    return float(np.percentile(border, 25)) > 0.8 * float(np.percentile(least, 75))


def _bounds(plain: Grey) -> tuple[float, float]:
    """Grey levels to try as the border between table and sheet: Otsu's, and a higher one for a bright table."""
    otsu, _ = cv2.threshold(plain, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    return otsu, (otsu + float(np.percentile(plain, 90))) / 2


def _brightest_part(plain: Grey, bound: float) -> Points | None:
    """The convex hull of the largest part brighter than `bound`, if it is neither small nor nearly everything."""
    _, bright = cv2.threshold(plain, bound, 255, cv2.THRESH_BINARY)
    bright = cv2.morphologyEx(bright, cv2.MORPH_OPEN, np.ones((7, 7), np.uint8))
    outlines, _ = cv2.findContours(bright, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not outlines:
        return None
    largest = max(outlines, key=cv2.contourArea)
    if not _LEAST_SHARE <= cv2.contourArea(largest) / plain.size <= _MOST_SHARE:
        return None
    # OpenCV thinks with y upwards: its other way round is clockwise on the screen.
    hull = cv2.convexHull(largest, clockwise=False)
    if cv2.contourArea(largest) < _LEAST_FILL * cv2.contourArea(hull):
        return None
    return hull.reshape(-1, 2).astype(np.float64)


def _enclosing_corners(hull: Points) -> Points | None:
    """Four corners, clockwise from the top left, whose sides touch the hull and leave none of it outside."""
    outline = hull.astype(np.float32).reshape(-1, 1, 2)
    length = cv2.arcLength(outline, closed=True)
    for share in (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1):
        rough = cv2.approxPolyDP(outline, share * length, closed=True).reshape(-1, 2).astype(np.float64)
        if len(rough) <= 4:
            break
    if len(rough) != 4:
        return None
    normals, offsets = _sides(_clockwise(rough))
    # Each side goes out to the hull's furthest point in its direction.
    offsets = np.maximum(offsets, (hull @ normals.T).max(axis=0))
    return _crossings(normals, offsets)


def _clockwise(corners: Points) -> Points:
    """In screen order, from the corner nearest the top left."""
    centre = corners.mean(axis=0)
    corners = corners[np.argsort(np.arctan2(corners[:, 1] - centre[1], corners[:, 0] - centre[0]))]
    return np.roll(corners, -int(np.argmin(corners.sum(axis=1))), axis=0)


def _sides(corners: Points) -> tuple[Points, npt.NDArray[np.float64]]:
    """Each side from a corner to the next as an outward unit normal and its distance from the origin."""
    along = np.roll(corners, -1, axis=0) - corners
    normals = np.column_stack([along[:, 1], -along[:, 0]])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    return normals, (normals * corners).sum(axis=1)


def _crossings(normals: Points, offsets: npt.NDArray[np.float64]) -> Points | None:
    """The corners at which each side meets the one before it; None if two are nearly parallel."""
    corners = []
    for index in range(4):
        pair = np.stack([normals[index - 1], normals[index]])
        if abs(float(np.linalg.det(pair))) < math.sin(math.radians(50)):
            return None
        corners.append(np.linalg.solve(pair, offsets[[index - 1, index]]))
    return np.array(corners)


def _grown(corners: Points) -> Points:
    normals, offsets = _sides(corners)
    size = math.sqrt(cv2.contourArea(corners.astype(np.float32)))
    grown = _crossings(normals, offsets + _MARGIN * size)
    return corners if grown is None else grown


def _convincing(corners: Points, hull: Points, plain: Grey, least: Grey) -> bool:
    area = cv2.contourArea(corners.astype(np.float32))
    if cv2.contourArea(hull.astype(np.float32)) < _LEAST_FILL * area or area > _MOST_SHARE * plain.size:
        return False
    sides = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)
    opposite = [min(pair) / max(pair) for pair in ((sides[0], sides[2]), (sides[1], sides[3]))]
    if min(opposite) < 0.5:
        return False
    return _border_falls_off(hull, plain) and not _print_outside(corners, least)


def _border_falls_off(hull: Points, plain: Grey) -> bool:
    """Whether it is darker just outside the sheet than just inside, nearly all along the border in view."""
    height, width = plain.shape
    depth = 0.03 * math.sqrt(cv2.contourArea(hull.astype(np.float32))) + 4
    on_border, normals = _along(hull)
    inside, outside = on_border - depth * normals, on_border + depth * normals
    visible = ((outside >= 0) & (outside <= (width - 1, height - 1))).all(axis=1)
    if visible.mean() < _LEAST_VISIBLE:
        return False
    within, beyond = _at(plain, inside[visible]), _at(plain, outside[visible])
    falls = (within - beyond >= _LEAST_STEP) & (within >= _LEAST_RATIO * beyond)
    return bool(falls.mean() >= _LEAST_BORDER)


def _along(hull: Points) -> tuple[Points, Points]:
    """200 points evenly along a closed outline that goes clockwise, and the outward unit normals there."""
    closed = np.vstack([hull, hull[:1]])
    steps = np.linalg.norm(np.diff(closed, axis=0), axis=1)
    reached = np.concatenate([[0.0], np.cumsum(steps)])
    places = np.linspace(0, reached[-1], 200, endpoint=False)
    points = np.column_stack([np.interp(places, reached, closed[:, axis]) for axis in (0, 1)])
    ahead = np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0)
    normals = np.column_stack([ahead[:, 1], -ahead[:, 0]])
    return points, normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)


def _at(plain: Grey, points: Points) -> npt.NDArray[np.float64]:
    height, width = plain.shape
    columns = np.clip(np.rint(points[:, 0]), 0, width - 1).astype(np.intp)
    rows = np.clip(np.rint(points[:, 1]), 0, height - 1).astype(np.intp)
    return plain[rows, columns].astype(np.float64)


def _print_outside(corners: Points, least: Grey) -> bool:
    """Whether strokes like those of letters lie outside the sheet, densely enough to be print."""
    closed = cv2.morphologyEx(least, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    opened = cv2.morphologyEx(least, cv2.MORPH_OPEN, np.ones((9, 9), np.uint8))
    strokes = np.maximum(closed.astype(np.int16) - least, least.astype(np.int16) - opened) > np.maximum(
        24, closed.astype(np.int16) // 4
    )
    sheet = np.zeros_like(least)
    cv2.fillConvexPoly(sheet, np.rint(corners).astype(np.int32), (255,))
    # Along the sheet's own border there is always an edge.
    edge = 2 * max(3, round(0.02 * max(least.shape))) + 1
    outside = cv2.dilate(sheet, np.ones((edge, edge), np.uint8)) == 0
    inside = cv2.erode(sheet, np.ones((edge, edge), np.uint8)) > 0
    within = max(1, int(strokes[inside].sum()))
    return int(strokes[outside].sum()) > _MOST_PRINT * max(within, 0.02 * least.size)
