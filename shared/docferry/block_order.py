"""The order in which a page's blocks are read (Breuel, "High Performance Document Layout Analysis", 2003)."""

from __future__ import annotations

from collections.abc import Sequence

from docferry.document import Box
from docferry.rectangles import middle, spans

_MOST_BLOCKS = 80
"""With more blocks than this the cubic ordering is left for plain rows."""


def in_reading_order(boxes: Sequence[Box]) -> list[int]:
    """Breuel's order; where it is contradictory (blocks that overlap) the topmost free block goes first."""
    count = len(boxes)
    if count > _MOST_BLOCKS:
        return sorted(range(count), key=lambda i: (boxes[i][1], boxes[i][0]))
    before = [[_precedes(a, b, boxes) for b in range(count)] for a in range(count)]
    waiting = list(range(count))
    done: list[int] = []
    while waiting:
        obstructed = {b: sum(before[a][b] for a in waiting if a != b) for b in waiting}
        least = min(obstructed.values())
        free = [b for b in waiting if obstructed[b] == least]
        chosen = min(free, key=lambda i: (boxes[i][1], boxes[i][0]))
        done.append(chosen)
        waiting.remove(chosen)
    return done


def _precedes(first: int, second: int, boxes: Sequence[Box]) -> bool:
    if first == second:
        return False
    a, b = boxes[first], boxes[second]
    if spans(a, b):
        return middle(a) < middle(b) or (middle(a) == middle(b) and first < second)
    if (a[0] + a[2]) >= (b[0] + b[2]):
        return False
    low, high = sorted((middle(a), middle(b)))
    return not any(
        low < middle(c) < high and spans(c, a) and spans(c, b)
        for number, c in enumerate(boxes)
        if number not in (first, second)
    )
