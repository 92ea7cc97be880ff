"""Choosing among candidates: a conditional logit over their traits, and what its probability is worth.

Each candidate's score is the weighted sum of its features; the probability of an answer is the softmax over all
candidates and "absent" (score 0), summed over candidates with the same key. The weights were fitted on labelled
transcriptions (`benchmarks.fields_fit`); a learned scorer can take their place through the `Scorer` port.
"""

from __future__ import annotations

import bisect
import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Protocol

from docferry.fields.candidates import Candidate


class Scorer(Protocol):
    """Port: judges the candidates of one field."""

    def scores(self, name: str, candidates: Sequence[Candidate]) -> Sequence[float]:
        """One log-odds against "absent" (0) for each candidate of field `name`."""
        ...

    def confidence(self, name: str, probability: float) -> float:
        """The share of answers that are right where the softmax said `probability`, 0..1."""
        ...


@dataclass(frozen=True)
class LinearScorer:
    """The built-in scorer.

    Attributes:
        weights: Field name to feature name to weight; an unknown feature weighs nothing.
        curves: Field name to points `(probability, share right)`, rising in both; linear between them.
        documents: How many labelled documents the curves rest on.
    """

    weights: Mapping[str, Mapping[str, float]]
    curves: Mapping[str, Sequence[tuple[float, float]]]
    documents: int

    def scores(self, name: str, candidates: Sequence[Candidate]) -> list[float]:
        """The weighted sums."""
        weights = self.weights[name]
        return [
            sum(weights.get(feature, 0.0) * strength for feature, strength in candidate.features.items())
            for candidate in candidates
        ]

    def confidence(self, name: str, probability: float) -> float:
        """Read off the field's curve; its ends hold beyond them."""
        curve = self.curves.get(name, ())
        if not curve:
            return probability
        at = bisect.bisect_left([x for x, _ in curve], probability)
        if at == 0:
            return curve[0][1]
        if at == len(curve):
            return curve[-1][1]
        (x0, y0), (x1, y1) = curve[at - 1], curve[at]
        return y0 + (y1 - y0) * (probability - x0) / (x1 - x0)


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen candidate, the softmax probability of its answer, and that probability calibrated."""

    candidate: Candidate
    probability: float
    confidence: float


@functools.cache
def default_scorer() -> LinearScorer:
    """The scorer that ships with the package, read from `learned.json` once."""
    table = json.loads(resources.files("docferry.fields").joinpath("learned.json").read_text(encoding="utf-8"))
    curves = {name: [(x, y) for x, y in points] for name, points in table["curves"].items()}
    return LinearScorer(table["weights"], curves, table["documents"])


def choose(name: str, candidates: Sequence[Candidate], scorer: Scorer) -> Choice | None:
    """The most probable answer for field `name`, or None where "absent" is more probable than any."""
    if not candidates:
        return None
    scores = scorer.scores(name, candidates)
    top = max(0.0, *scores)
    masses = [math.exp(score - top) for score in scores]
    whole = math.fsum(masses) + math.exp(-top)
    by_key: dict[str, float] = {}
    for candidate, mass in zip(candidates, masses, strict=True):
        by_key[candidate.key] = by_key.get(candidate.key, 0.0) + mass
    key = max(by_key, key=lambda key: by_key[key])
    if by_key[key] <= math.exp(-top):
        return None
    best = max((at for at, candidate in enumerate(candidates) if candidate.key == key), key=lambda at: masses[at])
    probability = min(by_key[key] / whole, 1.0)
    return Choice(candidates[best], probability, scorer.confidence(name, probability))
