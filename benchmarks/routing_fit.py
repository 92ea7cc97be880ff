"""Calibrations for the routing benchmark: fitted on one half of a data set, judged on the other.

`Fit` is the one place where a way to calibrate is plugged in; the benchmark asks nothing else of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.routing_data import Case
from docferry.calibration import Calibration
from docferry.confidence.signals import page_signals
from docferry.errors import TooFewLabels
from docferry_edge.calibrating.fit import fit
from docferry_edge.calibrating.labels import LabelledDocument, LabelledLine
from docferry_edge.examine import default_calibration

Fit = Callable[[Sequence[Case]], Calibration]
"""From labelled readings to a calibration."""


@dataclass(frozen=True, slots=True)
class Split:
    """One half to judge, and the calibration that has never seen it."""

    calibration: Calibration
    judged: tuple[Case, ...]


def splits(cases: Sequence[Case], fitted: Fit, count: int) -> Iterator[Split]:
    """Cases halved at random, by document, `count` times; each half is judged by the other's calibration."""
    for seed in range(count):
        order = list(cases)
        random.Random(seed).shuffle(order)
        half = len(order) // 2
        yield Split(fitted(order[:half]), tuple(order[half:]))


def by_signals(cases: Sequence[Case]) -> Calibration:
    """All signals, drawn towards the shipped weights; the shipped calibration where too few lines can be compared."""
    prior = default_calibration()
    documents = [document for case in cases if (document := _labelled(case)).lines]
    try:
        return fit(documents, (), data="one half of the data set that is judged", date="", prior=prior).calibration
    except TooFewLabels:
        return prior


def _labelled(case: Case) -> LabelledDocument:
    """The case's lines that can be compared, as labels; how many letters are wrong does not matter here."""
    signals = [row for page in case.reading.document.pages for row in page_signals(page)]
    lines = tuple(
        LabelledLine(row, line.score, case.labels[line.id], 0 if case.labels[line.id] else 1, max(1, len(line.text)))
        for row, line in zip(signals, case.reading.document.lines, strict=True)
        if line.id in case.labels
    )
    return LabelledDocument(case.name, case.reading.reader, lines, len(lines), sum(line.right for line in lines))


def shipped(cases: Sequence[Case]) -> Calibration:  # noqa: ARG001 - the shape of a fit
    """The calibration that ships with the package, whatever the documents."""
    return default_calibration()
