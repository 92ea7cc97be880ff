"""Confidence of lines, regions, pages and fields: signals through the fitted numbers of a `Calibration`. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from docferry.calibration import Calibration
from docferry.confidence.curves import odds_of, probability, read_off
from docferry.confidence.signals import page_signals
from docferry.document import Document, Field, Page, Quality, Region, iter_lines
from docferry.fields import find_amounts
from docferry.fields.checks import adds_up

PAGE_SIGNALS = ("mean_odds", "weak_lines", "blur", "glare", "faint", "cropped", "orientation", "small_print")
"""What a page's confidence is made of, in the order of `whole_page_signals`."""

FIELD_SIGNALS = ("choice_odds", "evidence_odds", "ill_formed", "backed")
"""What a field's confidence is made of, in the order of `field_signals`."""

_AMOUNTS = frozenset({"total", "subtotal", "tax"})

_WEAK = 0.8


@dataclass(frozen=True, slots=True)
class LineEstimate:
    """What is expected of one line.

    Attributes:
        right: Probability that its text is exactly right, 0..1.
        wrong_characters: Expected number of characters that are wrong, missing or too many.
        log_odds: The weighted sum of its signals, before the monotone map.
    """

    right: float
    wrong_characters: float
    log_odds: float


def estimate_lines(page: Page, calibration: Calibration) -> list[LineEstimate]:
    """An estimate for every line of `page.lines`, in that order.

    A score that no network should give (NaN, outside 0..1) makes an estimate of 0 whatever else is known.
    """
    model = calibration.line
    if model is None:
        # A score alone says nothing of how wrong a line is: a quarter of its characters is a guess.
        return [
            LineEstimate(sure, (1 - sure) * max(1, len(line.text)) / 4, odds_of(sure))
            for line in page.lines
            for sure in (calibration.confidence(line.score),)
        ]
    estimates: list[LineEstimate] = []
    for line, signals in zip(page.lines, page_signals(page), strict=True):
        log_odds = model.sum.value(signals)
        if math.isnan(log_odds) or not 0.0 <= line.score <= 1.0:
            estimates.append(LineEstimate(0.0, float(len(line.text)), -math.inf))
            continue
        share = read_off(model.wrong, log_odds)
        estimates.append(LineEstimate(read_off(model.right, log_odds), share * len(line.text), log_odds))
    return estimates


def with_confidence(document: Document, calibration: Calibration) -> tuple[Document, list[LineEstimate]]:
    """The same document, every line and region with its confidence; and the estimates, in the order of its lines."""
    pages: list[Page] = []
    estimates: list[LineEstimate] = []
    for page in document.pages:
        judged = estimate_lines(page, calibration)
        pages.append(_judged_page(page, judged, calibration))
        estimates += judged
    return replace(document, pages=tuple(pages)), estimates


def region_confidence(region: Region, calibration: Calibration) -> float:
    """Expected share of a region's characters that stand in lines read right, times how sure its box and type are.

    A region made from lines that no layout box held has no box to be wrong about; one without lines has only its box.
    """
    placed = read_off(calibration.layout, region.score) if calibration.layout and region.score > 0 else 1.0
    return placed * read_share(region)


def reread_confidence(region: Region, before: Region | None) -> float | None:
    """A region's confidence after its lines were read again, or for the first time.

    How sure its box and type are stays what it was `before`, in the reading that this one was built on; without one
    there is no calibrated score of the box, and the text alone counts. None if no line has a confidence.
    """
    if all(line.confidence is None for line in region.lines):
        return region.confidence
    share = 0.0 if before is None or before.confidence is None else read_share(before)
    placed = min(1.0, before.confidence / share) if before is not None and before.confidence and share else 1.0
    return placed * read_share(region)


def read_share(region: Region) -> float:
    """Expected share of a region's characters that stand in lines read right, 0..1; 1 of a region without lines."""
    weights = [max(1, len(line.text)) for line in region.lines]
    read = sum(weight * (line.confidence or 0.0) for weight, line in zip(weights, region.lines, strict=True))
    return read / sum(weights) if weights else 1.0


def page_confidence(page: Page, calibration: Calibration) -> float:
    """Expected share of the page's printed lines that were read right, lines never found included; 0 if none was read.

    The page's lines must carry their confidence.
    """
    if not page.lines:
        return 0.0
    sure = [line.confidence or 0.0 for line in page.lines]
    if calibration.page is None:
        return sum(sure) / len(sure)
    return probability(calibration.page.value(whole_page_signals(sure, page.quality)))


def with_field_confidence(document: Document, calibration: Calibration) -> Document:
    """The same document, its fields' confidence weighed again by what the calibration knows of fields.

    The fields must have been extracted from lines that carry their confidence.
    """
    if not calibration.fields:
        return document
    return replace(document, fields=tuple(_weighed(one, document, calibration) for one in document.fields))


def _weighed(one: Field, document: Document, calibration: Calibration) -> Field:
    head = calibration.fields.get(one.name) or calibration.fields.get("")
    if head is None:
        return one
    return replace(one, confidence=probability(head.value(field_signals(one, document))))


def field_signals(one: Field, document: Document) -> tuple[float, ...]:
    """The signals named in `FIELD_SIGNALS`: how clear the choice was, its evidence, its form, and what backs it."""
    named = {(mark.page, mark.line) for mark in one.evidence}
    lines = [line for number, _, line in iter_lines(document) if (number, line.id) in named]
    evidence = math.prod(line.score if line.confidence is None else line.confidence for line in lines)
    # The extractor gives the choice's own confidence times that of its evidence.
    choice = min(1.0, one.confidence / evidence) if evidence > 0 else 0.0
    return (odds_of(choice), odds_of(evidence), *map(float, field_traits(one, document)))


def field_traits(one: Field, document: Document) -> tuple[bool, bool]:
    """Whether the value is ill formed, and whether other numbers on the paper back it."""
    named = {(mark.page, mark.line) for mark in one.evidence}
    return _ill_formed(one), one.name in _AMOUNTS and _backed(one, document, named)


def _ill_formed(one: Field) -> bool:
    """Whether the value looks unlike its kind: an amount without decimals, a date long gone, a name without letters."""
    if one.name in _AMOUNTS:
        amounts = find_amounts(one.value)
        return not amounts or amounts[-1].decimals != 2
    if one.name == "date":
        return not "1990" <= one.normalized[:4] <= "2100"
    if one.name in {"merchant", "address"}:
        return sum(map(str.isalpha, one.value)) * 2 < len(one.value.replace(" ", ""))
    return False


def _backed(one: Field, document: Document, named: set[tuple[int, str]]) -> bool:
    """Whether subtotal and tax make the total, or the same amount is printed in another line too."""
    values = {found.name: Decimal(found.normalized) for found in document.fields if found.name in _AMOUNTS}
    if len(values) == len(_AMOUNTS) and adds_up(values["subtotal"], values["tax"], values["total"]):
        return True
    value = Decimal(one.normalized)
    return any(
        amount.value == value and amount.decimals == 2
        for number, _, line in iter_lines(document)
        if (number, line.id) not in named
        for amount in find_amounts(line.text)
    )


def whole_page_signals(sure: Sequence[float], quality: Quality) -> tuple[float, ...]:
    """The signals named in `PAGE_SIGNALS`, from the confidences of at least one line and the quality report."""
    return (*odds_and_weak(sure), *picture_signals(quality))


def odds_and_weak(sure: Sequence[float]) -> tuple[float, float]:
    """Log-odds of the mean confidence, and the share of lines below 0.8; at least one line."""
    return odds_of(sum(sure) / len(sure)), sum(value < _WEAK for value in sure) / len(sure)


def picture_signals(quality: Quality) -> tuple[float, ...]:
    """The rest of `PAGE_SIGNALS`: each 0 where nothing is amiss."""
    return (
        max(0.0, quality.blur - 0.8),
        min(max(quality.glare, 0.0), 1.0),
        max(0.0, 0.6 - quality.contrast) if quality.contrast else 0.0,
        float(quality.cropped_edges),
        1.0 - quality.orientation_score if 0.0 <= quality.orientation_score <= 1.0 else 1.0,
        max(0.0, math.log(24.0 / quality.text_height)) if quality.text_height else 0.0,
    )


def _judged_page(page: Page, judged: Sequence[LineEstimate], calibration: Calibration) -> Page:
    estimates = iter(judged)
    regions = []
    for region in page.regions:
        lines = tuple(replace(line, confidence=next(estimates).right) for line in region.lines)
        read = replace(region, lines=lines)
        regions.append(replace(read, confidence=region_confidence(read, calibration)))
    return replace(page, regions=tuple(regions))
