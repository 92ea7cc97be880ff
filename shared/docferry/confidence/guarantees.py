"""From a stated target to a threshold: which lines may be accepted so that at most this share of them is wrong.

Two kinds of claim, for lines of new documents like the labelled ones:

- *On average* (`confidence` None): conformal risk control in its selective form (Angelopoulos et al., "Conformal Risk
  Control", 2022; Angelopoulos' `get_lhat_selective`) with documents as the units. A document's loss is its wrong
  accepted lines less alpha times its accepted lines. Walking from strict to loose, the last threshold is taken at
  which the sum of all losses *and once more the largest of them* is at most 0: the next document may be as bad as the
  worst one seen. That it is worse still happens to one document in n + 1 at most, and is not covered; to cover it, a
  whole document must be allowed to be wrong at once, which takes 49 documents without any error for a risk of 2 %.
  Who wants that asks for an assured claim. Both take for granted that the risk rises as the threshold falls.
- *Assured* (`confidence` given): Learn then Test (Angelopoulos et al., 2021), documents as the units and nothing
  assumed within them. Thresholds are tested from strict to loose, in an order fixed without the labels, and the last
  one that passes is taken. A document with m lines has the loss (wrong accepted - alpha * accepted) / m, and its mean
  at most 0 is the claim. The test is a betting one (Waudby-Smith and Ramdas, "Estimating means of bounded random
  variables by betting", 2023): without any error it needs few more documents than the binomial test, and where
  documents are alike far fewer than a Hoeffding-Bentkus bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from docferry.errors import TooFewLabels

_BETS = ((1.0, 0.75), (0.5, 0.25))
"""Shares of the greatest fair stake, and the capital that is put on each: losses vary little from document to document,
so a high stake earns most, and the low one outlives a bad document."""

_STEPS = 200
"""Thresholds that are looked at."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One labelled document: for each of its lines the confidence, and whether it was right."""

    lines: tuple[tuple[float, bool], ...]


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a target costs.

    Attributes:
        target_risk: Of the accepted lines at most this share is wrong, 0..1.
        confidence: Probability that the claim holds, or None where it holds on average.
        least: Lines of at least this confidence are accepted.
        documents, lines: The sample it was found on.
        accepted, wrong: Lines of that sample that it accepts, and those of them that are wrong.
        worst: For a claim on average the loss of the document that was counted twice, in lines; else 0.
    """

    target_risk: float
    confidence: float | None
    least: float
    documents: int
    lines: int
    accepted: int
    wrong: int
    worst: float = 0.0

    @property
    def coverage(self) -> float:
        """Share of the sample's lines that is accepted, 0..1."""
        return self.accepted / self.lines if self.lines else 0.0

    @property
    def claim(self) -> str:
        """The claim in plain words."""
        sure = "on average" if self.confidence is None else f"with probability {self.confidence:.0%}"
        return (
            f"of the lines accepted at confidence {self.least:.3f} or more, {sure} at most {self.target_risk:.1%} are"
            f" wrong, on documents like the {self.documents} it was fitted on; there {self.coverage:.0%} of"
            f" {self.lines} lines were accepted and {self.wrong} of those {self.accepted} were wrong"
        )


def find_threshold(documents: Sequence[Judged], target_risk: float, confidence: float | None = None) -> Threshold:
    """The loosest threshold that the labels support.

    Args:
        documents: Labelled documents that the confidences were not fitted on, in an order that has nothing to do with
            their labels.
        target_risk: Between 0 and 1, both excluded.
        confidence: Probability with which the claim is to hold, 0..1 excluded; None bounds the expectation.

    Raises:
        TooFewLabels: Even the best threshold leaves more doubt than the claim allows.
    """
    held = [document for document in documents if document.lines]
    needed = documents_needed(target_risk, confidence)
    if len(held) < needed:
        raise _too_few(target_risk, confidence, len(held), f"at least {needed} are needed even if no line is wrong")
    least, worst = _expected(held, target_risk) if confidence is None else _assured(held, target_risk, confidence)
    if least is None:
        raise _too_few(target_risk, confidence, len(held), "too many of their surest lines are wrong")
    lines = [line for document in held for line in document.lines]
    accepted = [right for sure, right in lines if sure >= least]
    wrong = sum(not right for right in accepted)
    return Threshold(target_risk, confidence, least, len(held), len(lines), len(accepted), wrong, round(worst, 2))


def documents_needed(target_risk: float, confidence: float | None = None) -> int:
    """The fewest documents with which the claim can be made at all.

    For an assured claim as many as show it when all are accepted whole and without error; else 20, for fewer have
    hardly a worst one among them.
    """
    if confidence is None:
        return _LEAST_DOCUMENTS
    gains = [(capital, 1 + bet * target_risk / (1 - target_risk)) for bet, capital in _BETS]
    count = math.floor(math.log(1 / (1 - confidence)) / math.log(max(gain for _, gain in gains)))
    while math.fsum(capital * gain**count for capital, gain in gains) < 1 / (1 - confidence):
        count += 1
    return count


_LEAST_DOCUMENTS = 20


def _too_few(target_risk: float, confidence: float | None, documents: int, why: str) -> TooFewLabels:
    claim = f"a risk of {target_risk:g}" + ("" if confidence is None else f" with probability {confidence:g}")
    return TooFewLabels(
        f"{claim} cannot be claimed from {documents} labelled documents: {why}",
        remedy="label more documents, or ask for a higher risk or a lower probability",
        documents=str(documents),
        target_risk=str(target_risk),
    )


def _losses(documents: Sequence[Judged], least: float, target: float) -> list[float]:
    """Of each document, in lines."""
    return [
        sum((0.0 if right else 1.0) - target for sure, right in document.lines if sure >= least)
        for document in documents
    ]


def _expected(documents: Sequence[Judged], target: float) -> tuple[float | None, float]:
    """Walk from strict to loose; once the bound is met, stop where it is broken again."""
    best: float | None = None
    worst = 0.0
    for least in _steps(documents, math.inf):
        losses = _losses(documents, least, target)
        largest = max(1 - target, *losses)
        if math.fsum(losses) + largest <= 0.0:
            best, worst = least, largest
        elif best is not None:
            break
    return best, worst


def _assured(documents: Sequence[Judged], target: float, confidence: float) -> tuple[float | None, float]:
    """Fixed-sequence testing; where the sequence begins depends on the confidences alone, never on the labels."""
    best: float | None = None
    # The start needs no label: every line that promises a risk below the target adds to what there is to spare.
    surest = max(sure for document in documents for sure, _ in document.lines)
    start = min((sure for document in documents for sure, _ in document.lines if sure >= 1 - target), default=surest)
    for least in _steps(documents, start):
        losses = _losses(documents, least, target)
        shares = [loss / len(document.lines) for loss, document in zip(losses, documents, strict=True)]
        if _wealth(shares, target) < 1 / (1 - confidence):
            break
        best = least
    return best, 0.0


def _steps(documents: Sequence[Judged], start: float) -> list[float]:
    """Thresholds from the start downwards, evenly thinned: each costs a pass over all lines."""
    steps = sorted({sure for document in documents for sure, _ in document.lines if sure <= start}, reverse=True)
    return steps[:: max(1, len(steps) // _STEPS)]


def _wealth(losses: Sequence[float], target: float) -> float:
    """The most that betting against "the mean loss is above 0" has earned at any time; 1 is the stake.

    Under that hypothesis it exceeds 1/d with probability d at most (Ville). Losses lie in -target..1-target, so a
    stake of up to 1/(1-target) can never lose more than it has.
    """
    stakes = [bet / (1 - target) for bet, _ in _BETS]
    wealths = [capital for _, capital in _BETS]
    most = 1.0
    for loss in losses:
        wealths = [wealth * max(0.0, 1 - stake * loss) for wealth, stake in zip(wealths, stakes, strict=True)]
        most = max(most, math.fsum(wealths))
    return most
