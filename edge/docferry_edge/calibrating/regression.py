"""Fitting: a logistic regression whose weights keep their sign, and isotonic maps. numpy; evaluation needs none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
"""Lines by signals, or a vector of as many numbers as there are lines or signals."""

Block = tuple[float, float, float]
"""Of one step of an isotonic map: sum of scores, sum of values, number of pairs."""

Knots = tuple[tuple[float, float], ...]
"""Pairs (score, value), both rising."""

_STEPS = 2000
_SETTLED = 1e-9
_LEAST_BLOCK = 100
"""Pairs in the smallest step of a map: fewer say little about a probability."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Log-odds = `bias` + sum of `weights` times signals."""

    bias: float
    weights: tuple[float, ...]

    def log_odds(self, signals: Matrix) -> Matrix:
        """For every row of `signals`."""
        return np.asarray(self.bias + signals @ np.asarray(self.weights), dtype=np.float64)


def fit_logistic(
    signals: Matrix,
    right: Matrix,
    directions: Sequence[int],
    *,
    strength: float,
    prior: Linear | None = None,
) -> Linear:
    """The weights of most likely odds, drawn towards `prior` (towards no weight at all without one).

    Minimises the logistic loss plus strength / 2 times the squared distance of each weight to the prior's, counted in
    standard deviations of its signal; weights keep the sign their signal's direction asks for. Solved by projected
    gradients with momentum (Beck and Teboulle, "A fast iterative shrinkage-thresholding algorithm", 2009).

    Args:
        signals: `(lines, signals)`.
        right: 0 or 1 for each line, or a share between.
        directions: 1 where more of a signal means more likely right, -1 where less likely, 0 where either may be.
        strength: The penalty, worth about as many lines.
    """
    lines, count = signals.shape
    mean, deviation = signals.mean(axis=0), signals.std(axis=0)
    deviation = np.where(deviation < 1e-6, 1.0, deviation)
    # Standardising with a scale that is 0 in this sample would let the prior's weight explode elsewhere.
    columns = np.hstack([np.ones((lines, 1)), (signals - mean) / deviation])
    centre = np.zeros(count + 1)
    if prior is not None:
        centre[1:] = np.asarray(prior.weights) * deviation
        centre[0] = prior.bias + float(np.asarray(prior.weights) @ mean)
    penalty = np.full(count + 1, strength)
    penalty[0] = 1e-3
    least = np.array([-np.inf, *(0.0 if direction > 0 else -np.inf for direction in directions)])
    most = np.array([np.inf, *(0.0 if direction < 0 else np.inf for direction in directions)])
    # The logistic loss curves by at most a quarter of the columns' largest squared singular value.
    step = 1.0 / (0.25 * float(np.linalg.norm(columns.T @ columns, 2)) + strength)
    found = looked = np.clip(centre, least, most)
    momentum = 1.0
    for _ in range(_STEPS):
        odds = np.clip(columns @ looked, -40, 40)
        slope = columns.T @ (1 / (1 + np.exp(-odds)) - right) + penalty * (looked - centre)
        moved = np.clip(looked - step * slope, least, most)
        following = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
        change = moved - found
        if float(slope @ change) > 0:
            # Overshot: forget the momentum (O'Donoghue and Candès, 2015).
            following = 1.0
        looked = moved + (momentum - 1) / following * change if following > 1 else moved
        found, momentum = moved, following
        if float(np.abs(change).max()) < _SETTLED:
            break
    weights = found[1:] / deviation
    return Linear(float(found[0] - weights @ mean), tuple(float(weight) for weight in weights))


def isotonic(pairs: Iterable[tuple[float, float]], *, caution: float = 1.0, least: int = _LEAST_BLOCK) -> Knots:
    """A rising map from score to mean value: pool adjacent violators, one knot a block (Zadrozny and Elkan, 2002).

    Args:
        pairs: Score and value, 0..1 each value.
        caution: Each block's rate counts so many 1s and so many 0s more: no finite sample shows that nothing can go
            wrong.
        least: Pairs in the smallest block.
    """
    blocks: list[Block] = []
    for score, value in sorted(pairs):
        _append(blocks, (score, value, 1.0), least, lambda block: block[1] / block[2])
    settled: list[Block] = []
    for block in blocks:
        _append(settled, block, least, lambda block: (block[1] + caution) / (block[2] + 2 * caution))
    return tuple(
        (round(block[0] / block[2], 6), round((block[1] + caution) / (block[2] + 2 * caution), 5)) for block in settled
    )


def _append(blocks: list[Block], block: Block, least: int, rate: Callable[[Block], float]) -> None:
    """Add a block at the top and pool it downwards until every block is large enough and rates and scores rise."""
    blocks.append(block)
    while len(blocks) > 1:
        lower, upper = blocks[-2], blocks[-1]
        apart = upper[0] / upper[2] - lower[0] / lower[2] > 1e-6
        if lower[2] >= least and apart and rate(lower) < rate(upper):
            return
        blocks[-2:] = [(lower[0] + upper[0], lower[1] + upper[1], lower[2] + upper[2])]
