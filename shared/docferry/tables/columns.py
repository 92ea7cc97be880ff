"""Names for a table's columns and numbers in its cells: what CSV, sums and questions are made from. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from docferry.tables.grid import Cell, Grid

_MOST_HEAD = 4
_NUMBER = re.compile(r"[(\-+−–]*\s*(?:[$€£¥￥]|[A-Z]{2,3}\s?)?\s*\d[\d\s.,']*\s*(?:[$€£¥%‰])?\s*\)?")
_FOOTNOTE = re.compile(r"(?:\*+|[†‡§]+|\[\d{1,2}\]|\(\d\))$")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its flattened name, unique in the table, and the cell of each row below the head, or None."""

    name: str
    cells: tuple[Cell | None, ...]


def head_rows(grid: Grid) -> int:
    """How many rows at the top name the columns; at least 1 in a table of two rows and more.

    Where whoever made the table did not say, the head ends above the first row that holds a number in one of the
    columns after the first, unless that takes more than four rows; years name columns as well.
    """
    if grid.head:
        return grid.head if grid.head < grid.height else max(1, grid.head - 1)
    if grid.height < 2:
        return 0
    texts = grid.texts()
    for row, line in enumerate(texts[: _MOST_HEAD + 1]):
        rest = line[1:] if len(line) > 1 else line
        if row and any(parse_number(text) is not None and not _is_year(text) for text in rest):
            reach = [cell.row + cell.rows for cell in grid.cells if cell.row < row]
            return min(max([row, *(end for end in reach if end <= _MOST_HEAD)]), grid.height - 1)
    return 1


def columns(grid: Grid) -> tuple[Column, ...]:
    """The table by columns; a head of several levels is flattened: 收入 over 主营业务 is 收入_主营业务.

    A column without a name is called by its number, from 1; of equal names the later ones get a number.
    """
    head = head_rows(grid)
    places = grid.places()
    names: list[str] = []
    for column in range(grid.width):
        parts: list[str] = []
        for row in range(head):
            cell = places[row][column]
            text = cell.text if cell is not None else ""
            if text and (not parts or parts[-1] != text):
                parts.append(text)
        names.append(_unique("_".join(parts) or f"{column + 1}", names))
    return tuple(
        Column(name, tuple(places[row][number] for row in range(head, grid.height)))
        for number, name in enumerate(names)
    )


def parse_number(text: str) -> Decimal | None:
    """A cell's number as a plain decimal; None where it holds anything but one number.

    Brackets and minus signs of all kinds are negative, footnote marks and currencies fall away, `%` stays a number of
    percent. A single mark followed by three digits separates thousands; otherwise the last mark is the decimal one.
    """
    plain = _FOOTNOTE.sub("", unicodedata.normalize("NFKC", text).strip()).strip()
    if not plain or not _NUMBER.fullmatch(plain):
        return None
    negative = plain.startswith(("(", "-", "−", "–")) or (plain.endswith(")") and "(" in plain)
    digits = re.sub(r"[^\d.,']", "", plain).replace("'", "").strip(".,")
    marks = [letter for letter in digits if letter in ".,"]
    if marks:
        last = marks[-1]
        tail = digits.rpartition(last)[2]
        several = len(marks) > 1
        thousands = len(tail) == 3 and (len(set(marks)) == 1) and (several or not digits.startswith("0"))
        if last == "." and not several:
            thousands = False
        if thousands or (several and len(set(marks)) == 1):
            digits = re.sub(r"[.,]", "", digits)
        else:
            whole, _, cents = digits.rpartition(last)
            digits = f"{re.sub(r'[.,]', '', whole)}.{cents}"
    try:
        value = Decimal(digits)
    except InvalidOperation:
        return None
    return -value if negative else value


def _is_year(text: str) -> bool:
    return re.fullmatch(r"(?:FY\s?)?(?:19|20)\d\d(?:\s?年)?", text.strip()) is not None


def _unique(name: str, taken: Sequence[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
