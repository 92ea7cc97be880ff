"""All tables of a document as CSV."""

from __future__ import annotations

import csv
import io

from docferry.document import Document
from docferry.tables import all_tables, columns, parse_number

_ACTIVE = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def tables_csv(document: Document) -> str:
    """Every table with one row of flattened column names and then its rows; a blank line between two tables.

    Tables that go on over pages are one; the values of charts come last. Cells stand as they are printed; one that a
    spreadsheet would run as a formula gets an apostrophe before it, unless it is a number.
    """
    out = io.StringIO()
    # Everything quoted: where the list separator is a semicolon, an unquoted cell would be split at its own.
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    for number, table in enumerate(all_tables(document)):
        if number:
            out.write("\r\n")
        named = columns(table.grid)
        writer.writerow([harmless(column.name) for column in named])
        for row in zip(*(column.cells for column in named), strict=True):
            writer.writerow([harmless(cell.text) if cell is not None else "" for cell in row])
    return out.getvalue()


def harmless(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_ACTIVE) and parse_number(text) is None else text
