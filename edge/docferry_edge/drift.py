"""Whether the calibration still holds: predicted against observed risk over the audit slice, watched as it comes.

An e-detector of Shiryaev-Roberts form (Shin, Ramdas and Rinaldo, "E-detectors", 2024): after every audited document
the capital is raised by one and staked on "more lines are wrong than predicted". As long as the predictions hold,
each stake is fair or worse, so the capital after n documents is at most n on average, and the mean number of
documents until it reaches `quiet` is at least `quiet`: one false alarm in that many documents. After a drift it grows
exponentially. Only risks higher than predicted raise it; a reader that has become better than predicted costs bytes,
not mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

QUIET = 1000
"""Audited documents between two false alarms, on average at least."""

_STAKES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Small stakes see small drifts late, large ones large drifts at once; the capital is the mean over them."""

_KEPT = 0.1
"""No stake risks more than what leaves this share of the capital."""


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """One audited document.

    Attributes:
        predicted: Mean risk that the edge gave its lines, 0..1.
        observed: Share of them that the cloud's deep reading does not confirm, 0..1.
        lines: How many there were.
    """

    predicted: float
    observed: float
    lines: int


@dataclass(frozen=True, slots=True)
class Drift:
    """Where the watch stands.

    Attributes:
        documents: Audited so far.
        predicted, observed: Mean over documents, 0..1.
        evidence: The capital now; at `quiet` it is an alarm.
        quiet: One false alarm in at least so many documents.
        alarm_at: Number of the document (from 1) at which the alarm was first raised; None without one.
    """

    documents: int
    predicted: float
    observed: float
    evidence: float
    quiet: int
    alarm_at: int | None

    @property
    def advice(self) -> str:
        """One plain sentence."""
        if not self.documents:
            return "nothing audited yet"
        rates = f"{self.observed:.1%} of lines wrong where {self.predicted:.1%} were predicted"
        if self.alarm_at is not None:
            return f"refit the calibration: {rates}, over {self.documents} audited documents (alarm at {self.alarm_at})"
        return f"the calibration holds: {rates}, over {self.documents} audited documents"


def watch_drift(outcomes: Iterable[AuditOutcome], quiet: int = QUIET) -> Drift:
    """Go through audited documents in the order they came; the same outcomes always give the same answer.

    Documents without lines say nothing and are skipped.
    """
    capitals = [0.0] * len(_STAKES)
    seen: list[AuditOutcome] = []
    alarm_at: int | None = None
    for outcome in outcomes:
        if outcome.lines == 0:
            continue
        seen.append(outcome)
        capitals = [(capital + 1.0) * _factor(stake, outcome) for capital, stake in zip(capitals, _STAKES, strict=True)]
        if alarm_at is None and _mean(capitals) >= quiet:
            alarm_at = len(seen)
    return Drift(
        documents=len(seen),
        predicted=_mean([outcome.predicted for outcome in seen]),
        observed=_mean([outcome.observed for outcome in seen]),
        evidence=_mean(capitals),
        quiet=quiet,
        alarm_at=alarm_at,
    )


def _factor(stake: float, outcome: AuditOutcome) -> float:
    """What a capital of 1 becomes; never negative, at most 1 on average while the prediction holds."""
    predicted = min(max(outcome.predicted, 0.0), 1.0)
    bounded = min(stake, (1 - _KEPT) / predicted) if predicted > 0 else stake
    return 1.0 + bounded * (outcome.observed - predicted)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
