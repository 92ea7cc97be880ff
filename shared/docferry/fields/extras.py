"""Fields that plain rules are sure of: invoice number, currency, subtotal and tax. Where no rule is sure, no answer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from docferry.document import Field
from docferry.fields.amounts import CURRENCIES, plain_decimal
from docferry.fields.candidates import LabelledAmount
from docferry.fields.checks import adds_up
from docferry.fields.dates import find_dates
from docferry.fields.folding import plain
from docferry.fields.labels import Label
from docferry.fields.rows import Piece, Row

# Strongest label first: a receipt may carry an invoice number, a document number and an order number.
_NUMBER_LABELS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bINV(?:OICE)?\s?\.?\s*[-_]?\s*(?:NO|NUMBER|NUM|N[O0])\b|\bINV(?:OICE)?\s*#"
        r"|\bRECHNUNGS?(?:NUMMER|-?NR)|\bFACTUURNUMMER|发票号码|票据号码",
        r"\b(?:RECEIPT|BILL)\s*(?:(?:NO|NUMBER)\b|#)|\bCASH BILL\b(?=\s*:)|小票号|单据号|流水号|单号",
        r"\b(?:INVOICE|FACTUUR|RECHNUNG|FACTURE)\s(?=\s*[A-Z]{0,5}[-/]?\d+[-/]\d)",
        r"\bDOC(?:UMENT)?\.?\s*(?:(?:NO|NUMBER)\b|#)|\bSLIP\s*(?:NO\b)?(?=\s*[.:])",
    )
)
_NUMBER = re.compile(r"[\s.:#：\-\[]*((?=[A-Z0-9\-/#]*\d)[A-Z0-9]+(?:\s?[-/_]\s?[A-Z0-9]+)*)")
_TAIWAN_NUMBER = re.compile(r"(?<![A-Z0-9])([A-Z]{2})-?(\d{8})(?!\d)")
_BARE_NUMBER = re.compile(r"^#\s*((?=[A-Z0-9_\-/]*\d)[A-Z0-9]+(?:[-/_][A-Z0-9]+)*)$")
_TITLE = re.compile(r"(?:TAX )?INVOICE|FACTUUR|RECHNUNG|FACTURE|RECEIPT")
_TAIWAN_WORDS = re.compile(r"统一发票|电子发票")

_NUMBER_SHARE = 0.95
"""A cautious guess, not a measured rate: the data has no truth for it, and by eye about one in sixty was wrong."""

_CURRENCY_SHARE = 0.9
"""A ceiling. All 81 found on Malaysian receipts were right, which says nothing about whose dollar a bare `$` is."""


def lines_right(pieces: Sequence[Piece]) -> float:
    """Probability that all these lines were read right, 0..1: the product of their confidences, taken as independent.

    A line that nothing has calibrated counts with its score. The product is never above the worst line's own value.
    """
    lines = (piece.line for piece in pieces)
    return math.prod(line.score if line.confidence is None else line.confidence for line in lines)


def invoice_number_field(rows: tuple[Row, ...]) -> Field | None:
    """The number after the strongest label for one (`INVOICE NO`, then `RECEIPT NO`, then `DOC NO`), or None."""
    for label in _NUMBER_LABELS:
        for value, pieces in _labelled_numbers(rows, label):
            return _field("invoice_number", value, "".join(value.split()), pieces, _NUMBER_SHARE)
    for above, row in pairwise(rows):
        titled = any(_TITLE.fullmatch(plain(piece.line.text).strip()) for piece in (*above.pieces, *row.pieces))
        for piece in row.pieces if titled else ():
            if match := _BARE_NUMBER.match(plain(piece.line.text).strip()):
                return _field("invoice_number", match[1], match[1], [piece], _NUMBER_SHARE)
    if any(_TAIWAN_WORDS.search(plain(row.text)) for row in rows):
        for row in rows:
            for piece in row.pieces:
                match = _TAIWAN_NUMBER.search(plain(piece.line.text))
                if match:
                    return _field("invoice_number", match[0], match[1] + match[2], [piece], _NUMBER_SHARE)
    return None


def _labelled_numbers(rows: tuple[Row, ...], label: re.Pattern[str]) -> Iterator[tuple[str, list[Piece]]]:
    for row in rows:
        for at, piece in enumerate(row.pieces):
            text = plain(piece.line.text)
            found = label.search(text)
            if not found:
                continue
            tails = [(text[found.end() :], [piece])]
            if at + 1 < len(row.pieces) and not text[found.end() :].strip(" .:#"):
                after = row.pieces[at + 1 : at + 3]
                tails.append((" ".join(plain(other.line.text) for other in after), [piece, *after]))
            for tail, pieces in tails:
                match = _NUMBER.match(tail)
                if match and not find_dates(match[1]) and sum(glyph.isdigit() for glyph in match[1]) >= 2:
                    yield match[1], pieces


def currency_field(rows: tuple[Row, ...], amounts: tuple[LabelledAmount, ...], total: Field | None) -> Field | None:
    """The currency printed beside the total, else beside most amounts, else in a heading such as `AMOUNT (RM)`."""
    marked = [item for item in amounts if item.amount.currency]
    lines = {(mark.page, mark.line) for mark in total.evidence} if total else set()
    beside_total = [item for item in marked if (item.piece.page, item.piece.line.id) in lines]
    chosen = beside_total or marked
    if chosen:
        (code, _) = Counter(item.amount.currency for item in chosen).most_common(1)[0]
        item = next(item for item in chosen if item.amount.currency == code)
        mark = next(
            (mark for mark in sorted(CURRENCIES, key=len, reverse=True) if mark in item.amount.text.upper()), ""
        )
        return _field("currency", mark, code or "", [item.piece], _CURRENCY_SHARE)
    for row in rows:
        for piece in row.pieces:
            match = _HEADING_MARK.search(plain(piece.line.text))
            if match:
                return _field("currency", match[1], CURRENCIES[match[1]], [piece], _CURRENCY_SHARE)
    return None


_HEADING_MARK = re.compile(r"(?<![A-Z])(RM|MYR|USD|SGD|EUR|GBP|CHF|RMB|CNY|HKD|TWD|AUD|€|£)(?![A-Z])")


def subtotal_and_tax_fields(amounts: tuple[LabelledAmount, ...], total: Field | None) -> tuple[Field, ...]:
    """Subtotal and tax, only where printed with their labels (or side by side in a tax table) and making the total."""
    if total is None:
        return ()
    whole = Decimal(total.normalized)
    for net, tax in _pairs(amounts):
        if 0 < tax.amount.value < net.amount.value and adds_up(net.amount.value, tax.amount.value, whole):
            return tuple(
                _field(name, item.amount.text, plain_decimal(item.amount.value), [item.piece], total.confidence)
                for name, item in (("subtotal", net), ("tax", tax))
            )
    return ()


def _pairs(amounts: tuple[LabelledAmount, ...]) -> Iterator[tuple[LabelledAmount, LabelledAmount]]:
    nets = [item for item in amounts if item.label in {Label.SUBTOTAL, Label.TOTAL, Label.AMOUNT} and not item.summary]
    taxes = [item for item in amounts if item.label is Label.TAX and not item.summary]
    yield from ((net, tax) for net in sorted(nets, key=lambda item: item.label is not Label.SUBTOTAL) for tax in taxes)
    # A tax table, and the sums of a Chinese tax invoice, print the two side by side.
    abreast = [item for item in amounts if item.summary or item.count == 2]
    yield from (
        (net, tax)
        for net in abreast
        for tax in abreast
        if net.row is tax.row and net.place > tax.place and (net.summary or net.label is Label.TOTAL)
    )


def _field(name: str, value: str, normalized: str, pieces: Sequence[Piece], share: float) -> Field:
    confidence = share * lines_right(pieces)
    return Field(name, value, normalized, confidence, tuple(piece.evidence for piece in pieces))
