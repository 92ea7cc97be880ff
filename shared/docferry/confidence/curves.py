"""Monotone maps as lists of knots, and weighted sums: the plain numbers a fit leaves behind, and how to read them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Knots = tuple[tuple[float, float], ...]
"""Pairs (x, y), x rising; linear between them, constant beyond the first and the last."""


def read_off(knots: Knots, x: float) -> float:
    """The curve's value at `x`."""
    right = bisect_right(knots, x, key=lambda knot: knot[0])
    if right == 0:
        return knots[0][1]
    if right == len(knots):
        return knots[-1][1]
    (x0, y0), (x1, y1) = knots[right - 1], knots[right]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def rises(knots: Knots, *, falling: bool = False) -> bool:
    """Whether these are knots of a rising (or falling) curve."""
    sign = -1.0 if falling else 1.0
    return bool(knots) and all(a[0] < b[0] and sign * a[1] <= sign * b[1] for a, b in pairwise(knots))


@dataclass(frozen=True, slots=True)
class Sum:
    """A weighted sum of named signals: log-odds, if it was fitted as such."""

    signals: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float

    def value(self, values: Sequence[float]) -> float:
        """The sum for signals in the order of `signals`."""
        return self.bias + sum(map(_times, self.weights, values))


def _times(weight: float, value: float) -> float:
    return weight * value


def probability(log_odds: float) -> float:
    """0..1 from log-odds of any size."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1 + odds)


def odds_of(share: float) -> float:
    """Log-odds of a share, kept within one in a thousand of 0 and 1."""
    held = min(max(share, 1e-3), 1 - 1e-3)
    return math.log(held / (1 - held))
