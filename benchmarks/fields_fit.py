"""Fits the field rules' weights and confidence curves on labelled transcriptions and writes `learned.json`.

    python -m benchmarks.fields_fit --data DIR [--write FILE] [--errors FIELD]

Documents are split in two halves by a hash of their id. Each half is judged by weights fitted on the other one: those
are the held-out rates printed, and the curves (softmax probability to share right) rest on the same held-out answers.
The weights written are fitted on all documents. Weights start from hand-set priors (`PRIORS`) and are pulled back to
them, so that traits which the data never shows keep a sensible weight. `--errors` shows the fit half only.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fields_priors import PRIORS
from benchmarks.fields_text import TRUTH_NAMES, Labelled, half, is_right, load
from docferry.fields.candidates import Candidate, labelled_amounts
from docferry.fields.extract import field_candidates
from docferry.fields.rows import find_rows
from docferry.fields.scoring import LinearScorer, choose

PULL = 0.02
"""How strongly a weight is drawn to its prior: the precision of the Gaussian prior, per document."""


@dataclass(frozen=True)
class Example:
    """One field of one document: its candidates, which of them are right, and what the document counts for."""

    record: Labelled
    candidates: tuple[Candidate, ...]
    right: tuple[bool, ...]
    weight: float


def examples(records: list[Labelled]) -> dict[str, list[Example]]:
    """The examples of all scored fields; documents of one merchant share a weight, so that chains do not rule."""
    merchants = Counter(record.truth["company"] for record in records)
    found: dict[str, list[Example]] = {name: [] for name in TRUTH_NAMES}
    for record in records:
        rows = find_rows(record.document)
        for name, candidates in field_candidates(rows, labelled_amounts(rows)).items():
            truth = record.truth.get(TRUTH_NAMES[name])
            if truth:
                right = tuple(is_right(TRUTH_NAMES[name], truth, candidate) for candidate in candidates)
                found[name].append(Example(record, candidates, right, merchants[record.truth["company"]] ** -0.5))
    return found


def fit(name: str, data: list[Example]) -> dict[str, float]:
    """Weights that make the right candidates likely: gradient ascent (Adam) on the conditional log-likelihood."""
    usable = [example for example in data if any(example.right)]
    names = sorted(
        {f for example in usable for candidate in example.candidates for f in candidate.features} | set(PRIORS[name])
    )
    place = {feature: number for number, feature in enumerate(names)}
    prior = np.array([PRIORS[name].get(feature, 0.0) for feature in names])
    blocks = [_matrix(example, place) for example in usable]
    weights, first, second = prior.copy(), np.zeros_like(prior), np.zeros_like(prior)
    total = sum(example.weight for example in usable)
    for step in range(1, 401):
        gradient = -PULL * (weights - prior)
        for matrix, right, share in blocks:
            scores = np.append(matrix @ weights, 0.0)
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            wanted = np.where(np.append(right, False), chances, 0.0)
            wanted /= max(wanted.sum(), 1e-300)
            gradient += share / total * ((wanted - chances)[:-1] @ matrix)
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        weights += 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return {
        feature: round(float(weight), 3)
        for feature, weight in zip(names, weights, strict=True)
        if abs(weight) >= 0.0005
    }


def _matrix(example: Example, place: dict[str, int]) -> tuple[Any, Any, float]:
    matrix = np.zeros((len(example.candidates), len(place)))
    for row, candidate in enumerate(example.candidates):
        for feature, strength in candidate.features.items():
            matrix[row, place[feature]] = strength
    return matrix, np.array(example.right), example.weight


def judge(name: str, data: list[Example], weights: dict[str, float]) -> list[tuple[float, bool, Example]]:
    """`(probability, right, example)` for each document; probability 0 where the answer is "absent"."""
    scorer = LinearScorer({name: weights}, {}, 0)
    answers = []
    for example in data:
        choice = choose(name, example.candidates, scorer)
        right = choice is not None and example.right[example.candidates.index(choice.candidate)]
        answers.append((choice.probability if choice else 0.0, right, example))
    return answers


def curve(answers: list[tuple[float, bool]]) -> list[list[float]]:
    """Isotonic regression of right on probability, in about eight bins of at least twelve, each by Laplace's rule."""
    ordered = sorted(answers)
    size = max(len(ordered) // 8, 12)
    bins = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    if len(bins) > 1 and len(bins[-1]) < size // 2:
        bins[-2:] = [bins[-2] + bins[-1]]
    pooled = [[sum(p for p, _ in b), float(sum(r for _, r in b)), float(len(b))] for b in bins]
    at = 0
    while at + 1 < len(pooled):
        if _rate(pooled[at]) > _rate(pooled[at + 1]):
            pooled[at : at + 2] = [[a + b for a, b in zip(pooled[at], pooled[at + 1], strict=True)]]
            at = max(at - 1, 0)
        else:
            at += 1
    return [[round(block[0] / block[2], 4), round(_rate(block), 4)] for block in pooled]


def _rate(block: list[float]) -> float:
    return (block[1] + 1) / (block[2] + 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--errors", help="print the held-out errors of this field in the fit half")
    options = parser.parse_args()
    records = list(load(options.data))
    table: dict[str, Any] = {"documents": len(records), "curves": {}, "weights": {}}
    summary: dict[str, Any] = {}
    for name, data in examples(records).items():
        halves = [[example for example in data if half(example.record) == side] for side in (0, 1)]
        fitted = [fit(name, part) for part in halves]
        answers = [judge(name, halves[1 - side], fitted[side]) for side in (0, 1)]
        table["curves"][name] = curve([(p, right) for part in answers for p, right, _ in part if p > 0])
        table["weights"][name] = fit(name, data)
        summary[TRUTH_NAMES[name]] = rates = _rates(data, answers)
        print(f"{name:9}", "  ".join(f"{key} {value:.3f}" for key, value in rates.items()))
        if options.errors == name:
            _print_errors(name, answers[1], fitted[1])
    if options.write:
        options.write.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(json.dumps(summary, separators=(",", ":")))


def _rates(data: list[Example], answers: list[list[tuple[float, bool, Example]]]) -> dict[str, float]:
    """Shares right: held out, there on merchants new to the fit, with the halves swapped; and the reachable share."""
    seen = {example.record.truth["company"] for example in data if half(example.record) == 0}
    new = [right for _, right, example in answers[0] if example.record.truth["company"] not in seen]
    held_out, swapped = (sum(right for _, right, _ in part) / len(part) for part in answers)
    return {
        "held_out": held_out,
        "new_merchants": sum(new) / max(len(new), 1),
        "swapped": swapped,
        "reachable": sum(any(example.right) for example in data) / len(data),
    }


def _print_errors(name: str, answers: list[tuple[float, bool, Example]], weights: dict[str, float]) -> None:
    scorer = LinearScorer({name: weights}, {}, 0)
    for probability, right, example in answers:
        if right:
            continue
        choice = choose(name, example.candidates, scorer)
        print(f"  {example.record.id} p={probability:.2f} reachable={any(example.right)}")
        print(f"     truth {example.record.truth[TRUTH_NAMES[name]]}")
        print(f"     ours  {choice.candidate.value if choice else None}")


if __name__ == "__main__":
    main()
