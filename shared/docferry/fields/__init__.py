"""The fields of receipts and invoices, found by rules: pure, standard library only, the same on edge and cloud."""

from docferry.fields.amounts import find_amounts, parse_amount
from docferry.fields.dates import find_dates, parse_date
from docferry.fields.document_type import DocumentType, classify
from docferry.fields.extract import extract_fields
from docferry.fields.rows import find_rows
from docferry.fields.scoring import Scorer

__all__ = [
    "DocumentType",
    "Scorer",
    "classify",
    "extract_fields",
    "find_amounts",
    "find_dates",
    "find_rows",
    "parse_amount",
    "parse_date",
]
