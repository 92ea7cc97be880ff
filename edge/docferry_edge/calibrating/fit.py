"""From labelled documents to a `Calibration`: every head cross-fitted by document, thresholds last."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from docferry.calibration import VERSION, Calibration, LineHead
from docferry.confidence.curves import Knots, Sum, odds_of, read_off
from docferry.confidence.estimates import FIELD_SIGNALS, PAGE_SIGNALS, odds_and_weak
from docferry.confidence.guarantees import Judged, Threshold, find_threshold
from docferry.confidence.signals import DIRECTIONS, NAMES
from docferry.errors import TooFewLabels
from docferry_edge.calibrating.labels import LabelledDocument, LabelledField, labels_sha256
from docferry_edge.calibrating.regression import Linear, Matrix, fit_logistic, isotonic

FOLDS = 5
"""Each document is judged by a fit on the other four fifths."""

LEAST_DOCUMENTS = 10
"""Fewer cannot even be cross-fitted."""

_STRENGTH = 100.0
_STRENGTH_AROUND_PRIOR = 300.0
_PAGE_DIRECTIONS = (1, -1, -1, -1, -1, -1, -1, -1)
_FIELD_DIRECTIONS = (1, 1, -1, 1)
_LEAST_PAGES = 40
_LEAST_FIELDS = 60
_LEAST_BOXES = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """A risk to fit a threshold for, and the probability with which it is to hold; None bounds the expectation."""

    target_risk: float
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibration, and what it thinks of each document when it has not seen it.

    Attributes:
        judged: In the order in which thresholds were sought, which depends on nothing but the documents' ids.
        refused: Claims that the labels cannot bear, with the reason.
    """

    calibration: Calibration
    judged: tuple[Judged, ...]
    refused: tuple[tuple[Claim, TooFewLabels], ...]


def fit(
    documents: Sequence[LabelledDocument],
    claims: Sequence[Claim],
    *,
    data: str,
    date: str,
    prior: Calibration | None = None,
) -> Fitted:
    """Fit everything that the labels allow; what they do not is taken from `prior`.

    The weights are drawn towards the prior's, so that a few labelled documents adapt them and do not replace them.
    Thresholds are found on confidences of fits that had not seen the document, and hold for the fit on all documents,
    which has seen a quarter more: not exactly the claim's setting, and as a rule the better fit.

    Args:
        documents: Labels of one reader.
        claims: The thresholds wanted. One that the labels cannot bear is left out of the calibration and named.
        data: What the documents are, in words.
        date: ISO 8601.

    Raises:
        TooFewLabels: There are fewer documents than can be cross-fitted, or only right (or only wrong) lines.
    """
    ordered = sorted(documents, key=lambda document: hashlib.sha256(document.id.encode()).digest())
    held = [document for document in ordered if document.lines]
    rights = sum(line.right for document in held for line in document.lines)
    lines = sum(len(document.lines) for document in held)
    if len(held) < LEAST_DOCUMENTS or rights in {0, lines}:
        raise TooFewLabels(
            f"{len(held)} documents with {rights} right and {lines - rights} wrong lines are too few to fit on",
            remedy=f"label at least {LEAST_DOCUMENTS} documents, some of them with mistakes",
            documents=str(len(held)),
        )
    head, judged = _line_head(held, None if prior is None else prior.line)
    found: list[Threshold] = []
    refused: list[tuple[Claim, TooFewLabels]] = []
    for claim in claims:
        try:
            found.append(find_threshold(judged, claim.target_risk, claim.confidence))
        except TooFewLabels as error:
            refused.append((claim, error))
    calibration = Calibration(
        knots=isotonic((line.score, float(line.right)) for document in held for line in document.lines),
        reader=held[0].reader,
        documents=len(held),
        lines=lines,
        data=data,
        data_sha256=labels_sha256(held),
        date=date,
        line=head,
        layout=_layout(held) or (() if prior is None else prior.layout),
        page=_page(held, judged) or (None if prior is None else prior.page),
        fields=_fields(held, judged) or ({} if prior is None else prior.fields),
        thresholds=tuple(found),
        version=VERSION,
    )
    return Fitted(calibration, tuple(judged), tuple(refused))


def _line_head(held: Sequence[LabelledDocument], prior: LineHead | None) -> tuple[LineHead, list[Judged]]:
    start = None if prior is None else Linear(prior.sum.bias, prior.sum.weights)
    strength = _STRENGTH if prior is None else _STRENGTH_AROUND_PRIOR

    def fitted(documents: Sequence[LabelledDocument]) -> Linear:
        signals, right = _matrix(documents)
        return fit_logistic(signals, right, DIRECTIONS, strength=strength, prior=start)

    odds = _cross_fitted(held, lambda others: fitted(others).log_odds)
    judged: list[Judged | None] = [None] * len(held)
    for fold in range(FOLDS):
        others = [n for n in range(len(held)) if n % FOLDS != fold]
        right = _right_map(held, odds, others)
        for n in range(fold, len(held), FOLDS):
            sure = [read_off(right, value) for value in odds[n]]
            judged[n] = Judged(tuple((p, line.right) for p, line in zip(sure, held[n].lines, strict=True)))
    every = range(len(held))
    linear = fitted(held)
    shares = (
        (-value, min(1.0, line.wrong / max(1, line.characters)))
        for n in every
        for value, line in zip(odds[n], held[n].lines, strict=True)
    )
    wrong = tuple((-x, y) for x, y in reversed(isotonic(shares, caution=0.0)))
    head = LineHead(Sum(NAMES, _short(linear.weights), round(linear.bias, 6)), _right_map(held, odds, every), wrong)
    return head, [document for document in judged if document is not None]


def _cross_fitted(
    held: Sequence[LabelledDocument], fitted: Callable[[Sequence[LabelledDocument]], Callable[[Matrix], Matrix]]
) -> list[list[float]]:
    """The log-odds of every document's lines, by a fit that has not seen the document."""
    odds: list[list[float]] = [[] for _ in held]
    for fold in range(FOLDS):
        log_odds = fitted([document for n, document in enumerate(held) if n % FOLDS != fold])
        for n in range(fold, len(held), FOLDS):
            odds[n] = log_odds(_matrix([held[n]])[0]).tolist()
    return odds


def _right_map(held: Sequence[LabelledDocument], odds: Sequence[Sequence[float]], chosen: Sequence[int]) -> Knots:
    return isotonic(
        (value, float(line.right)) for n in chosen for value, line in zip(odds[n], held[n].lines, strict=True)
    )


def _matrix(documents: Sequence[LabelledDocument]) -> tuple[Matrix, Matrix]:
    lines = [line for document in documents for line in document.lines]
    return (
        np.array([line.signals for line in lines], dtype=np.float64),
        np.array([line.right for line in lines], dtype=np.float64),
    )


def _layout(held: Sequence[LabelledDocument]) -> Knots:
    boxes = [(score, float(right)) for document in held for score, right in document.layout]
    return isotonic(boxes, least=30) if len(boxes) >= _LEAST_BOXES else ()


def _page(held: Sequence[LabelledDocument], judged: Sequence[Judged]) -> Sum | None:
    """Over whole pages: the lines' confidences and the picture against the share of printed lines read right."""
    rows = [
        ((*odds_and_weak([sure for sure, _ in one.lines]), *document.quality), document.found / document.printed)
        for document, one in zip(held, judged, strict=True)
        if document.printed and len(document.quality) == len(PAGE_SIGNALS) - 2
    ]
    if len(rows) < _LEAST_PAGES:
        return None
    linear = fit_logistic(
        np.array([signals for signals, _ in rows]),
        np.array([share for _, share in rows]),
        _PAGE_DIRECTIONS,
        strength=1.0,
    )
    return Sum(PAGE_SIGNALS, _short(linear.weights), round(linear.bias, 6))


def _fields(held: Sequence[LabelledDocument], judged: Sequence[Judged]) -> Mapping[str, Sum]:
    """One sum for each field seen often enough, and one over all of them for the others."""
    rows = [
        (one.name, _field_signals(one, known), float(one.right))
        for document, known in zip(held, judged, strict=True)
        for one in document.fields
    ]
    names = sorted({name for name, _, _ in rows})
    sums: dict[str, Sum] = {}
    for name in (*names, ""):
        group = [row for row in rows if name in {"", row[0]}]
        if len(group) < _LEAST_FIELDS or len({right for _, _, right in group}) < 2:
            continue
        signals, right = np.array([row[1] for row in group]), np.array([row[2] for row in group])
        linear = fit_logistic(signals, right, _FIELD_DIRECTIONS, strength=3.0)
        sums[name] = Sum(FIELD_SIGNALS, _short(linear.weights), round(linear.bias, 6))
    return sums


def _field_signals(one: LabelledField, known: Judged) -> tuple[float, ...]:
    evidence = math.prod(known.lines[number][0] for number in one.evidence)
    return odds_of(one.choice), odds_of(evidence), float(one.ill_formed), float(one.backed)


def _short(weights: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(weight, 6) + 0.0 for weight in weights)
