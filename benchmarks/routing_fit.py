"""Calibrations for the routing benchmark: fitted on one half of a data set, judged on the other.

`Fit` is the one place where a way to calibrate is plugged in; the benchmark asks nothing else of it.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.fit_calibration import isotonic
from benchmarks.routing_data import Case
from docferry.calibration import Calibration
from docferry_edge.examine import default_calibration

Fit = Callable[[Sequence[Case]], Calibration]
"""From labelled readings to a calibration."""


@dataclass(frozen=True, slots=True)
class Split:
    """One half to judge, and the calibration that has never seen it."""

    calibration: Calibration
    judged: tuple[Case, ...]


def splits(cases: Sequence[Case], fit: Fit, count: int) -> Iterator[Split]:
    """Cases halved at random, by document, `count` times; each half is judged by the other's calibration."""
    for seed in range(count):
        order = list(cases)
        random.Random(seed).shuffle(order)
        half = len(order) // 2
        yield Split(fit(order[:half]), tuple(order[half:]))


def by_score(cases: Sequence[Case]) -> Calibration:
    """Isotonic over the recogniser's score; the shipped calibration where no line can be compared."""
    labels = [
        (line.score, case.labels[line.id])
        for case in cases
        for line in case.reading.document.lines
        if line.id in case.labels
    ]
    if not labels:
        return default_calibration()
    return Calibration(
        knots=isotonic(labels),
        reader=cases[0].reading.reader,
        documents=len(cases),
        lines=len(labels),
        data="one half of the data set that is judged",
        data_sha256=hashlib.sha256(json.dumps(labels).encode()).hexdigest(),
        date="",
    )


def shipped(cases: Sequence[Case]) -> Calibration:  # noqa: ARG001 - the shape of a fit
    """The calibration that ships with the package, whatever the documents."""
    return default_calibration()
