"""What a CTC path says beside its text: how sure each character is at its best, and whether a mark was passed over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BLANK = 0
"""The class of a column in which no character stands (PaddleOCR's convention)."""


class Doubts(NamedTuple):
    """Beside a text.

    Attributes:
        peaks: For each emitted character the best score of the columns it covers, 0..1. The first of them is where the
            glyph begins, seldom where it is seen best.
        gap: The largest doubt, 1 - score, among columns taken for blank that no character stands beside, 0..1: where
            a point or a colon was nearly seen. 0 without such columns.
    """

    peaks: tuple[float, ...]
    gap: float


def doubts_of(classes: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]) -> Doubts:
    """The doubts of one line's best path.

    Args:
        classes: `(columns,)`, the best class of every column.
        scores: `(columns,)`, its score, 0..1.
    """
    if not classes.size:
        return Doubts((), 0.0)
    starts = np.flatnonzero(np.concatenate([[True], classes[1:] != classes[:-1]]))
    best = np.maximum.reduceat(scores, starts)
    blank = classes == BLANK
    inside = blank.copy()
    inside[1:] &= blank[:-1]
    inside[:-1] &= blank[1:]
    gap = 1.0 - float(scores[inside].min()) if inside.any() else 0.0
    return Doubts(tuple(best[classes[starts] != BLANK].tolist()), max(0.0, gap))
