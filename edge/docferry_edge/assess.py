"""How sure the edge is: calibrated confidence for every line, and the rules that always escalate."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from docferry.calibration import Calibration
from docferry.confidence.estimates import page_confidence, with_confidence, with_field_confidence
from docferry.confidence.guarantees import Threshold
from docferry.document import DOUBTFUL_ORIENTATION, Document, Line, Reading, iter_lines, with_fields
from docferry.fields import DocumentType, classify, extract_fields, find_rows
from docferry.route import Reason

KEY_FIELDS: dict[DocumentType, tuple[str, ...]] = {
    DocumentType.RECEIPT: ("date", "total"),
    DocumentType.INVOICE: ("date", "total"),
}
"""A document of this type without these fields is never taken for read."""

# The same short piece of letters or digits six times and more: what a recogniser does when it loops. Rules of
# dashes, dots and stars are printed like that and do not count.
_LOOP = re.compile(r"([^\W_]{1,8}?)\1{5,}")


@dataclass(frozen=True, slots=True)
class LineRisk:
    """One line in doubt: where it is, the probability that it is wrong, and how many characters are expected to be."""

    page: int
    line: Line
    risk: float
    wrong_characters: float = 0.0


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the edge thinks of its own reading.

    Attributes:
        reading: The reading, every line with its confidence.
        lines: Every line's risk, the riskiest first.
        page_reasons: Why a page must be seen whole; not empty means it must.
        line_reasons: Why single lines must be seen, whatever their score; by line, in `must_see`.
        must_see: Page number and id of those lines.
        pages: For each page the expected share of its printed lines that were read right, 0..1.
        acceptance: For each target risk that the calibration was fitted for, the confidence from which lines may stay
            unseen; empty where the readings are not those it was fitted on.
    """

    reading: Reading
    lines: tuple[LineRisk, ...]
    page_reasons: tuple[Reason, ...]
    line_reasons: tuple[Reason, ...]
    must_see: frozenset[tuple[int, str]]
    pages: tuple[float, ...] = ()
    acceptance: tuple[Threshold, ...] = ()

    @property
    def risk(self) -> float:
        """Expected share of wrong lines, 0..1; 1 if nothing was read."""
        return sum(line.risk for line in self.lines) / len(self.lines) if self.lines else 1.0


def assess(reading: Reading, calibration: Calibration) -> Assessment:
    """Assess a reading: give every line and region its confidence, find the fields, and say what is in doubt."""
    document, estimates = with_confidence(reading.document, calibration)
    document = with_fields(document, extract_fields(document))
    document = with_field_confidence(document, calibration)
    risks = sorted(
        (
            LineRisk(number, line, 1.0 - estimate.right, estimate.wrong_characters)
            for (number, _, line), estimate in zip(iter_lines(document), estimates, strict=True)
        ),
        key=lambda doubt: -doubt.risk,
    )
    line_reasons, must_see = _line_reasons(document)
    return Assessment(
        reading=replace(reading, document=document),
        lines=tuple(risks),
        page_reasons=_page_reasons(document),
        line_reasons=line_reasons,
        must_see=must_see,
        pages=tuple(page_confidence(page, calibration) for page in document.pages),
        acceptance=calibration.thresholds if calibration.reader == reading.reader else (),
    )


def _page_reasons(document: Document) -> tuple[Reason, ...]:
    reasons: list[Reason] = []
    for number, page in enumerate(document.pages):
        if not page.lines:
            reasons.append(Reason("NOTHING_READ", f"page {number + 1}: no text was read"))
        score = page.quality.orientation_score
        if not score >= DOUBTFUL_ORIENTATION:
            reasons.append(Reason("DOUBTFUL_ORIENTATION", f"page {number + 1}: which way is up is not certain", score))
    found = {field.name for field in document.fields}
    kind = classify(find_rows(document))
    reasons += [
        Reason("MISSING_FIELD", f"a {kind.value} without a {name}")
        for name in KEY_FIELDS.get(kind, ())
        if name not in found
    ]
    return tuple(reasons)


def _line_reasons(document: Document) -> tuple[tuple[Reason, ...], frozenset[tuple[int, str]]]:
    loops, impossible = set(), set()
    for number, _, line in iter_lines(document):
        if _LOOP.search(line.text):
            loops.add((number, line.id))
        if math.isnan(line.score) or not 0.0 <= line.score <= 1.0:
            impossible.add((number, line.id))
    reasons: list[Reason] = []
    if loops:
        reasons.append(Reason("REPETITION", f"{len(loops)} lines repeat themselves", float(len(loops))))
    if impossible:
        reasons.append(
            Reason("IMPOSSIBLE_SCORE", f"{len(impossible)} lines have a score outside 0..1", float(len(impossible)))
        )
    return tuple(reasons), frozenset(loops | impossible)
