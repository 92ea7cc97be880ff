"""What a calibration is worth on labelled documents: ranking, honesty of its numbers, and what its thresholds keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from docferry.calibration import Calibration
from docferry.confidence.curves import odds_of, probability, read_off
from docferry.confidence.estimates import odds_and_weak
from docferry.confidence.guarantees import Judged, Threshold
from docferry_edge.calibrating.labels import LabelledDocument, LabelledField

Numbers = npt.NDArray[np.float64]

_RESAMPLES = 500


def judged_by(calibration: Calibration, documents: Sequence[LabelledDocument]) -> list[Judged]:
    """Every line's confidence beside whether it was right."""
    head = calibration.line
    if head is None:
        return [
            Judged(tuple((calibration.confidence(line.score), line.right) for line in one.lines)) for one in documents
        ]
    return [
        Judged(tuple((read_off(head.right, head.sum.value(line.signals)), line.right) for line in one.lines))
        for one in documents
    ]


def worth(documents: Sequence[Judged], thresholds: Sequence[Threshold]) -> dict[str, Any]:
    """The numbers that judge a calibration; risks and coverages with 95 % intervals, documents resampled."""
    sure, right = columns(documents)
    report: dict[str, Any] = {
        "right": round(float(right.mean()), 4),
        "auroc": round(auroc(sure, right), 4),
        "ece": round(expected_error(sure, right), 4),
    }
    for threshold in thresholds:
        name = f"{threshold.target_risk:g}" + ("" if threshold.confidence is None else f"@{threshold.confidence:g}")
        report[name] = kept(documents, threshold.least)
    return report


def heads_worth(
    calibration: Calibration, documents: Sequence[LabelledDocument], judged: Sequence[Judged]
) -> dict[str, Any]:
    """What the heads over fields, pages and layout boxes are worth; one without a truth to judge it by is left out."""
    found: dict[str, Any] = {}
    fields = [
        (_field_confidence(calibration, one, known), float(one.right))
        for document, known in zip(documents, judged, strict=True)
        for one in document.fields
    ]
    if fields:
        found["fields"] = _pairs(fields)
    boxes = [box for one in documents for box in one.layout]
    if boxes and calibration.layout:
        found["layout"] = _pairs([(read_off(calibration.layout, score), float(right)) for score, right in boxes])
    pages = [
        (probability(calibration.page.value(_page_signals(document, known))), document.found / document.printed)
        for document, known in zip(documents, judged, strict=True)
        if calibration.page is not None and document.printed and document.quality and document.lines
    ]
    if pages:
        sure, share = np.array(pages).T
        found["pages"] = {
            "count": len(pages),
            "read_right": round(float(share.mean()), 4),
            "expected": round(float(sure.mean()), 4),
            "mean_error": round(float(np.abs(sure - share).mean()), 4),
        }
    return found


def _pairs(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    sure, right = np.array(pairs).T
    return {
        "count": len(pairs),
        "right": round(float(right.mean()), 4),
        "auroc": round(auroc(sure, right), 4),
        "ece": round(expected_error(sure, right), 4),
    }


def _field_confidence(calibration: Calibration, one: LabelledField, known: Judged) -> float:
    evidence = math.prod(known.lines[number][0] for number in one.evidence)
    head = calibration.fields.get(one.name) or calibration.fields.get("")
    if head is None:
        return one.choice * evidence
    return probability(head.value((odds_of(one.choice), odds_of(evidence), float(one.ill_formed), float(one.backed))))


def _page_signals(document: LabelledDocument, known: Judged) -> tuple[float, ...]:
    return (*odds_and_weak([sure for sure, _ in known.lines]), *document.quality)


def kept(documents: Sequence[Judged], least: float) -> dict[str, Any]:
    """Share of wrong lines among those accepted, and share accepted, each with its interval."""
    counts = np.array([_counts(document, least) for document in documents], dtype=np.float64)
    generator = np.random.default_rng(0)
    draws = counts[generator.integers(0, len(counts), (_RESAMPLES, len(counts)))].sum(axis=1)
    risks, shares = draws[:, 1] / np.maximum(1, draws[:, 0]), draws[:, 0] / np.maximum(1, draws[:, 2])
    accepted, wrong, lines = counts.sum(axis=0)
    return {
        "least": round(least, 4),
        "risk": round(float(wrong / max(1, accepted)), 4),
        "risk_95": [round(float(bound), 4) for bound in np.quantile(risks, (0.025, 0.975))],
        "coverage": round(float(accepted / max(1, lines)), 4),
        "coverage_95": [round(float(bound), 4) for bound in np.quantile(shares, (0.025, 0.975))],
    }


def _counts(document: Judged, least: float) -> tuple[int, int, int]:
    accepted = [right for sure, right in document.lines if sure >= least]
    return len(accepted), sum(not right for right in accepted), len(document.lines)


def columns(documents: Sequence[Judged]) -> tuple[Numbers, Numbers]:
    """All lines' confidences, and 1 for each that is right."""
    lines = [line for document in documents for line in document.lines]
    return np.array([sure for sure, _ in lines]), np.array([float(right) for _, right in lines])


def auroc(sure: Numbers, right: Numbers) -> float:
    """Probability that a right line is surer than a wrong one, ties counted half (Mann and Whitney, 1947)."""
    _, place, count = np.unique(sure, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    rights = float(right.sum())
    wrongs = len(right) - rights
    return float((ranks @ right - rights * (rights + 1) / 2) / max(1.0, rights * wrongs))


def expected_error(sure: Numbers, right: Numbers, bins: int = 10) -> float:
    """Expected calibration error over bins of equal size."""
    order = np.argsort(sure, kind="stable")
    return float(sum(abs(sure[part].sum() - right[part].sum()) for part in np.array_split(order, bins)) / len(sure))


def reliability(sure: Numbers, right: Numbers, bins: int = 10) -> list[tuple[float, float, int]]:
    """For each bin of equal size the mean confidence, the share right, and the lines in it."""
    order = np.argsort(sure, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return [(float(sure[part].mean()), float(right[part].mean()), len(part)) for part in parts]


def risk_at_coverage(sure: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Coverage and the share of wrong lines among the surest ones, for every number of accepted lines."""
    order = np.argsort(-sure, kind="stable")
    accepted = np.arange(1, len(order) + 1)
    return accepted / len(order), np.cumsum(1 - right[order]) / accepted
