"""Which lines of two detectors are the same print, and which way of cutting it into lines to believe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from docferry.vision.quads import Quad, size

SAME_PRINT = 0.5
"""Two quads show the same print when they share this much of the smaller one's area."""

_GIANT = 2.0
"""A quad this many times higher than the lines it covers is a stamp, a logo or a frame laid over them."""

_LONGER = 1.5
"""A quad that reaches further than another one by so many heights of the line holds print which the other cut off."""


@dataclass(frozen=True, slots=True)
class Group:
    """Quads of the first and of the second detector (by number) that show the same print; one side may be empty."""

    first: tuple[int, ...]
    second: tuple[int, ...]

    @property
    def paired(self) -> bool:
        """Whether both detectors saw exactly one line."""
        return len(self.first) == len(self.second) == 1


def group(first: Sequence[Quad], second: Sequence[Quad]) -> tuple[Group, ...]:
    """Connected groups of quads that cover one another, every quad in one group; giants are in none."""
    shared = overlaps(first, second)
    for_first = ~_giants(first, second, shared)
    for_second = ~_giants(second, first, shared.T)
    links = (shared >= SAME_PRINT) & for_first[:, None] & for_second[None, :]
    left = set(np.flatnonzero(for_first).tolist())
    groups: list[Group] = []
    while left:
        ones, others = _connected(links, left.pop())
        left -= ones
        groups.append(Group(tuple(sorted(ones)), tuple(sorted(others))))
    taken = {number for each in groups for number in each.second}
    rest = [number for number in np.flatnonzero(for_second).tolist() if number not in taken]
    return (*sorted(groups, key=lambda each: each.first), *(Group((), (number,)) for number in rest))


def reaches_further(one: Quad, other: Quad) -> bool:
    """Whether the first quad is so much longer that the second one must have cut print off."""
    (wide, high), (width, height) = size(one), size(other)
    return wide - width > _LONGER * min(high, height)


def overlaps(first: Sequence[Quad], second: Sequence[Quad]) -> npt.NDArray[np.float64]:
    """Shared area of every pair as a share of the smaller one, `(len(first), len(second))`.

    Each quad counts as a level strip along its own middle line, so that slanted neighbours do not touch.
    """
    if not first or not second:
        return np.zeros((len(first), len(second)))
    one, other = _strips(first)[:, None, :], _strips(second)[None, :, :]
    x0, x1 = np.maximum(one[..., 0], other[..., 0]), np.minimum(one[..., 1], other[..., 1])
    middle = (x0 + x1) / 2
    apart = np.abs(_height_at(one, middle) - _height_at(other, middle))
    high, width = np.minimum(one[..., 4], other[..., 4]), np.maximum(x1 - x0, 0)
    tall = np.clip((one[..., 4] + other[..., 4]) / 2 - apart, 0, high)
    areas = np.minimum((one[..., 1] - one[..., 0]) * one[..., 4], (other[..., 1] - other[..., 0]) * other[..., 4])
    return np.asarray(width * tall / np.maximum(areas, 1e-6), dtype=np.float64)


def _strips(quads: Sequence[Quad]) -> npt.NDArray[np.float64]:
    """x0, x1, the middle line's y at both, and the height across, one row a quad."""
    corners = np.asarray(quads, dtype=np.float64)
    steep = np.abs(corners[:, 1, 1] - corners[:, 0, 1]) > np.abs(corners[:, 1, 0] - corners[:, 0, 0])
    # A line that runs up or down the page has its ends where its long sides are.
    corners[steep] = np.roll(corners[steep], 1, axis=1)
    left, right = (corners[:, 0] + corners[:, 3]) / 2, (corners[:, 1] + corners[:, 2]) / 2
    height = (np.abs(corners[:, 3, 1] - corners[:, 0, 1]) + np.abs(corners[:, 2, 1] - corners[:, 1, 1])) / 2
    swapped = left[:, 0] > right[:, 0]
    left[swapped], right[swapped] = right[swapped], left[swapped]
    return np.stack([left[:, 0], right[:, 0], left[:, 1], right[:, 1], np.maximum(height, 1.0)], axis=1)


def _height_at(strip: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    wide = np.maximum(strip[..., 1] - strip[..., 0], 1e-6)
    along = np.clip((x - strip[..., 0]) / wide, 0, 1)
    return np.asarray(strip[..., 2] + along * (strip[..., 3] - strip[..., 2]))


def _giants(quads: Sequence[Quad], others: Sequence[Quad], shared: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Those that lie over two or more lines of the other detector which are much lower than they are."""
    heights = np.array([size(quad)[1] for quad in quads]).reshape(-1, 1)
    lower = np.array([size(quad)[1] for quad in others]).reshape(1, -1) * _GIANT < heights
    return np.asarray(((shared >= SAME_PRINT) & lower).sum(axis=1) >= 2)


def _connected(links: npt.NDArray[np.bool_], start: int) -> tuple[set[int], set[int]]:
    ones, others = {start}, set[int]()
    fresh = [start]
    while fresh:
        found = set(np.flatnonzero(links[fresh].any(axis=0)).tolist()) - others
        others |= found
        back = set(np.flatnonzero(links[:, sorted(found)].any(axis=1)).tolist()) - ones if found else set()
        ones |= back
        fresh = sorted(back)
    return ones, others
