"""Which read line stands where which true line stands. The two are cut differently at wide gaps, hence groups."""

from __future__ import annotations

from collections.abc import Sequence

Polygon = Sequence[tuple[float, float]]
"""Points x, y in pixels, in order around the shape."""

TextLine = tuple[Polygon, str]
"""Where a line stands and what it says."""


def line_groups(truth: Sequence[TextLine], read: Sequence[TextLine]) -> list[tuple[list[TextLine], list[TextLine]]]:
    """Truth and read lines that cover one another, as connected groups; a group may lack one side.

    Two lines belong together when their overlap holds at least half of the smaller one's area. Areas are those
    of the upright boxes, narrowed to the shape's own height where a line slopes.
    """
    parent = list(range(len(truth) + len(read)))

    def root(index: int) -> int:
        while parent[index] != index:
            index = parent[index]
        return index

    boxes = [_slab(polygon) for polygon, _ in read]
    for i, (polygon, _) in enumerate(truth):
        mine = _slab(polygon)
        for j, other in enumerate(boxes):
            if _overlap(mine, other) >= 0.5:
                parent[root(i)] = root(len(truth) + j)
    groups: dict[int, tuple[list[TextLine], list[TextLine]]] = {}
    for index in range(len(parent)):
        pair = groups.setdefault(root(index), ([], []))
        if index < len(truth):
            pair[0].append(truth[index])
        else:
            pair[1].append(read[index - len(truth)])
    return list(groups.values())


_Slab = tuple[float, float, float, float, float]
"""x0, x1, the middle's y at each, and the height."""


def _slab(polygon: Polygon) -> _Slab:
    """A line of text as a middle line with a height; the first point is the text's top left."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = polygon
    left, right = ((ax + dx) / 2, (ay + dy) / 2), ((bx + cx) / 2, (by + cy) / 2)
    height = (abs(dy - ay) + abs(cy - by)) / 2
    if left[0] > right[0]:
        left, right = right, left
    return left[0], right[0], left[1], right[1], max(height, 1.0)


def _middle(slab: _Slab, x: float) -> float:
    x0, x1, y0, y1, _ = slab
    return y0 if x1 - x0 < 1 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def _overlap(a: _Slab, b: _Slab) -> float:
    """Share of the smaller one that the other covers, 0..1."""
    x0, x1 = max(a[0], b[0]), min(a[1], b[1])
    if x1 <= x0:
        return 0.0
    middle = (x0 + x1) / 2
    ya, yb = _middle(a, middle), _middle(b, middle)
    common = min(ya + a[4] / 2, yb + b[4] / 2) - max(ya - a[4] / 2, yb - b[4] / 2)
    area = (x1 - x0) * max(0.0, common)
    return area / max(1.0, min((a[1] - a[0]) * a[4], (b[1] - b[0]) * b[4]))
