"""The order in which a page's blocks are read (Breuel, "High Performance Document Layout Analysis", 2003)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from docferry.document import Box
from docferry.rectangles import middle, spans

_MOST_BLOCKS = 400
"""With more blocks than this the ordering costs too much, and plain rows must do."""


def in_reading_order(boxes: Sequence[Box]) -> list[int]:
    """Breuel's order; where it is contradictory (blocks that overlap) the topmost free block goes first."""
    count = len(boxes)
    if count > _MOST_BLOCKS:
        return sorted(range(count), key=lambda i: (boxes[i][1], boxes[i][0]))
    before = _before(boxes)
    waiting, left = set(range(count)), (1 << count) - 1
    done: list[int] = []
    while waiting:
        obstructed = {b: (before[b] & left).bit_count() for b in waiting}
        least = min(obstructed.values())
        chosen = min((b for b in waiting if obstructed[b] == least), key=lambda i: (boxes[i][1], boxes[i][0]))
        done.append(chosen)
        waiting.remove(chosen)
        left &= ~(1 << chosen)
    return done


def _before(boxes: Sequence[Box]) -> list[int]:
    """For each block the set of those that come before it, as the bits of a number.

    Of two that share columns it is the upper one; of two that do not, the left one, unless a block that shares columns
    with both stands between them.
    """
    count = len(boxes)
    ranked = sorted(range(count), key=lambda i: (middle(boxes[i]), i))
    heights = [middle(boxes[i]) for i in ranked]
    # Bit `rank` of a set says whether the block of that rank is in it: those between two heights are a run of bits.
    beside = [
        sum(1 << rank for rank, i in enumerate(ranked) if i != b and spans(boxes[i], boxes[b])) for b in range(count)
    ]
    place = {i: rank for rank, i in enumerate(ranked)}
    before = [0] * count
    for b in range(count):
        for a in range(count):
            if a == b:
                continue
            if beside[b] >> place[a] & 1:
                if place[a] < place[b]:
                    before[b] |= 1 << a
                continue
            if boxes[a][0] + boxes[a][2] >= boxes[b][0] + boxes[b][2]:
                continue
            low, high = sorted((middle(boxes[a]), middle(boxes[b])))
            first, last = bisect_right(heights, low), bisect_left(heights, high)
            between = (1 << max(first, last)) - (1 << first)
            if not beside[a] & beside[b] & between:
                before[b] |= 1 << a
    return before
