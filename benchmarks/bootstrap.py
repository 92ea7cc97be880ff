"""Is one reader better than another, or was it these documents? Paired resampling, by document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.metrics import WordCounts


@dataclass(frozen=True, slots=True)
class Gain:
    """How much larger one word F1 is than another: the difference, and the interval that holds 95 % of resamples."""

    difference: float
    low: float
    high: float

    def rounded(self) -> list[float]:
        """`[difference, low, high]`, four decimals, for a JSON line."""
        return [round(self.difference, 4), round(self.low, 4), round(self.high, 4)]


def word_f1_gain(
    ours: Sequence[WordCounts], theirs: Sequence[WordCounts], resamples: int = 4000, seed: int = 0
) -> Gain:
    """Paired bootstrap of the difference in word F1 (Efron and Tibshirani, 1993, percentile interval).

    Args:
        ours, theirs: Counts of the same documents, in the same order.
        resamples: How many times documents are drawn with replacement.
        seed: Of the draws.
    """
    tables = [np.array([[c.common, c.truth, c.read] for c in counts], dtype=np.float64) for counts in (ours, theirs)]
    drawn = np.random.default_rng(seed).integers(len(ours), size=(resamples, len(ours)))
    first, second = (_f1(table[drawn].sum(axis=1)) for table in tables)
    low, high = np.percentile(first - second, [2.5, 97.5])
    whole = [_f1(table.sum(axis=0, keepdims=True))[0] for table in tables]
    return Gain(float(whole[0] - whole[1]), float(low), float(high))


def _f1(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1), dtype=np.float64)
