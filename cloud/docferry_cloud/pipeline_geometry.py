"""Polygons and boxes relative to a page, in plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docferry.document import Box, Point, Polygon


def centre(polygon: Polygon) -> Point:
    """The mean of the corners."""
    return sum(x for x, _ in polygon) / 4, sum(y for _, y in polygon) / 4


def inside(point: Point, box: Box) -> bool:
    """Whether a point lies in a box, borders included."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def within(box: Box, outer: Box, slack: float) -> bool:
    """Whether a box lies in another one, up to `slack` on each side."""
    return (
        box[0] >= outer[0] - slack
        and box[1] >= outer[1] - slack
        and box[2] <= outer[2] + slack
        and box[3] <= outer[3] + slack
    )


def touches(one: Box, other: Box) -> bool:
    """Whether two boxes share a point, borders included."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def box_around(boxes: Iterable[Box]) -> Box:
    """The smallest box that holds all of them; there must be at least one."""
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return min(x0s), min(y0s), max(x1s), max(y1s)


def from_crop(polygon: Polygon, crop: Box) -> Polygon:
    """A polygon relative to a crop, as one relative to the page."""
    return _mapped(polygon, crop[0], crop[1], crop[2] - crop[0], crop[3] - crop[1])


def to_crop(polygon: Polygon, crop: Box) -> Polygon:
    """A polygon relative to the page, as one relative to a crop of it that has an area."""
    wide, high = crop[2] - crop[0], crop[3] - crop[1]
    return _mapped(polygon, -crop[0] / wide, -crop[1] / high, 1 / wide, 1 / high)


def overlap(one: Polygon, other: Polygon) -> float:
    """The area that two convex polygons share, as a share of the smaller one's area; 0 where that has none."""
    smaller = min(abs(_area(one)), abs(_area(other)))
    if smaller <= 0.0:
        return 0.0
    return min(1.0, abs(_area(_clipped(one, other))) / smaller)


def reach(line: Polygon, other: Polygon) -> tuple[float, float]:
    """Where another polygon starts and ends along a line's text: 0 is the line's start, 1 its end."""
    start, end = _middle(line[0], line[3]), _middle(line[1], line[2])
    along = (end[0] - start[0], end[1] - start[1])
    length = along[0] ** 2 + along[1] ** 2
    if length <= 0.0:
        return 0.0, 0.0
    places = [((x - start[0]) * along[0] + (y - start[1]) * along[1]) / length for x, y in other]
    return min(places), max(places)


def _mapped(polygon: Polygon, left: float, top: float, wide: float, high: float) -> Polygon:
    a, b, c, d = ((min(1.0, max(0.0, left + x * wide)), min(1.0, max(0.0, top + y * high))) for x, y in polygon)
    return a, b, c, d


def _middle(one: Point, other: Point) -> Point:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def _area(polygon: Sequence[Point]) -> float:
    """Signed area by the shoelace formula; positive for clockwise corners with y downwards."""
    following = [*polygon[1:], *polygon[:1]]
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(polygon, following, strict=True)) / 2


def _clipped(subject: Sequence[Point], window: Sequence[Point]) -> list[Point]:
    """The part of a convex polygon inside another one (Sutherland and Hodgman, 1974)."""
    turn = 1.0 if _area(window) >= 0 else -1.0
    points = list(subject)
    for start, end in zip(window, [*window[1:], *window[:1]], strict=True):
        depths = [turn * _side(start, end, point) for point in points]
        kept: list[Point] = []
        for at, point in enumerate(points):
            depth, before = depths[at], depths[at - 1]
            if (depth >= 0) != (before >= 0):
                share = before / (before - depth)
                last = points[at - 1]
                kept.append((last[0] + share * (point[0] - last[0]), last[1] + share * (point[1] - last[1])))
            if depth >= 0:
                kept.append(point)
        points = kept
    return points


def _side(start: Point, end: Point, point: Point) -> float:
    """Positive where a point lies to the right of a directed edge (y downwards)."""
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])
