"""All tables of a document as an Excel workbook, one sheet a table, the fields on a sheet of their own."""

from __future__ import annotations

import io
import re
from typing import Any

import xlsxwriter

from docferry.document import Document
from docferry.tables import all_tables, columns, parse_number, wrong_totals

_FORBIDDEN = re.compile(r"[\[\]:*?/\\]")
_MOST_DIGITS = 15


def workbook(document: Document) -> bytes:
    """The file's bytes.

    Numbers are numbers, as long as a spreadsheet can hold them exactly; everything else is text, never a formula.
    Column names are flattened; a total that does not add up is marked and says what its parts make.
    """
    out = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(out, options) as book:
        bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        formats = _Formats(book)
        for number, table in enumerate(all_tables(document), 1):
            page = table.parts[0][0] + 1
            sheet = book.add_worksheet(_FORBIDDEN.sub(" ", f"Table {number} (page {page})"))
            named = columns(table.grid)
            head = table.grid.height - (len(named[0].cells) if named else 0)
            bad = {(one.row - head + 1, one.column): one for one in wrong_totals(table.grid)}
            for x, column in enumerate(named):
                sheet.write_string(0, x, column.name, bold)
                for y, cell in enumerate(column.cells, 1):
                    _write(sheet, y, x, cell.text if cell is not None else "", formats, marked=(y, x) in bad)
            for (y, x), one in bad.items():
                sheet.write_comment(y, x, f"The rows above add up to {one.added}.")
            sheet.freeze_panes(1, 0)
            sheet.autofit()
        if document.fields or not book.worksheets():
            sheet = book.add_worksheet("Fields")
            for x, name in enumerate(("Name", "As printed", "Value", "Confidence")):
                sheet.write_string(0, x, name, bold)
            for y, field in enumerate(document.fields, 1):
                sheet.write_string(y, 0, field.name)
                sheet.write_string(y, 1, field.value)
                _write(sheet, y, 2, field.normalized, formats)
                sheet.write_number(y, 3, round(field.confidence, 4))
            sheet.autofit()
    return out.getvalue()


class _Formats:
    """Cell formats by number of decimals: amounts keep the decimals they are printed with, so columns stay aligned."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._made: dict[tuple[int, bool], Any] = {}

    def of(self, decimals: int, *, marked: bool) -> Any:
        """The format for that many decimals; `marked` for a total that does not add up."""
        key = decimals, marked
        if key not in self._made:
            number = {"num_format": f"0.{'0' * decimals}"} if decimals else {}
            self._made[key] = self._book.add_format(number | ({"bg_color": "#ffd6d6"} if marked else {}))
        return self._made[key]


def _write(sheet: Any, row: int, column: int, text: str, formats: _Formats, *, marked: bool = False) -> None:
    if not text:
        return
    value = parse_number(text)
    plain = text.strip().lstrip("-−–(+")
    # An identifier such as 007 or a card's number is text, although its characters are digits.
    identifier = plain.startswith("0") and plain[1:2].isdigit()
    if value is None or identifier or len(value.as_tuple().digits) > _MOST_DIGITS or "%" in text:
        sheet.write_string(row, column, text, formats.of(0, marked=marked))
        return
    decimals = max(0, -int(value.as_tuple().exponent))
    sheet.write_number(row, column, float(value), formats.of(decimals, marked=marked))
