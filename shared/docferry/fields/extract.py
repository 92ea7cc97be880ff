"""From a document tree to its fields: the one entry to the rules."""

from __future__ import annotations

from docferry.document import Document, Field
from docferry.fields.candidates import Candidate, LabelledAmount, date_candidates, labelled_amounts, total_candidates
from docferry.fields.document_type import DocumentType, classify
from docferry.fields.extras import currency_field, invoice_number_field, lines_right, subtotal_and_tax_fields
from docferry.fields.head import address_candidates, head_of, merchant_candidates
from docferry.fields.rows import Row, find_rows, find_segments
from docferry.fields.scoring import Choice, Scorer, choose, default_scorer


def extract_fields(document: Document, scorer: Scorer | None = None) -> tuple[Field, ...]:
    """The fields of a receipt or an invoice.

    They are merchant, address, date, total, then invoice_number, currency, subtotal and tax. A field that is not on the
    paper is not in the answer; a page of running text has none. Never raises on any text.

    Args:
        document: As read, the order of its lines does not matter.
        scorer: Takes the place of the built-in scorer.
    """
    rows = find_rows(document)
    if classify(rows) is DocumentType.PAGE:
        return ()
    judge = default_scorer() if scorer is None else scorer
    amounts = labelled_amounts(rows)
    fields: list[Field] = []
    for name, candidates in field_candidates(rows, amounts).items():
        choice = choose(name, candidates, judge)
        if choice is not None:
            fields.append(_field(name, choice))
    total = next((field for field in fields if field.name == "total"), None)
    fields.extend(_present(invoice_number_field(rows)))
    fields.extend(_present(currency_field(rows, amounts, total)))
    fields.extend(subtotal_and_tax_fields(amounts, total))
    return tuple(fields)


def field_candidates(rows: tuple[Row, ...], amounts: tuple[LabelledAmount, ...]) -> dict[str, tuple[Candidate, ...]]:
    """All candidates of the four scored fields, by field name in the order of the answer."""
    head = head_of(rows, find_segments(rows))
    return {
        "merchant": merchant_candidates(head),
        "address": address_candidates(head),
        "date": date_candidates(rows),
        "total": total_candidates(rows, amounts),
    }


def _field(name: str, choice: Choice) -> Field:
    candidate = choice.candidate
    confidence = choice.confidence * lines_right(candidate.pieces)
    return Field(
        name, candidate.value, candidate.normalized, confidence, tuple(piece.evidence for piece in candidate.pieces)
    )


def _present(field: Field | None) -> tuple[Field, ...]:
    return () if field is None else (field,)
