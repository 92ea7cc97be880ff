"""Totals checked against what they are the total of: said where they do not add up, never corrected. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from docferry.tables.columns import columns, head_rows, parse_number
from docferry.tables.grid import Grid

_TOTAL = re.compile(
    r"(?i)^\W*(grand |sub-?)?total\b|^\W*(sum|summe|gesamt|totaal|jumlah)\b|^\W*(合计|总计|小计|合計|總計)"
)
_SUB = re.compile(r"(?i)^\W*sub-?total\b|^\W*(小计|小計)")
_LEAST_PARTS = 2


@dataclass(frozen=True, slots=True)
class WrongTotal:
    """A total that is not the sum above it: its place in the grid, what is printed, and what the parts add up to."""

    row: int
    column: int
    printed: Decimal
    added: Decimal


def is_total(text: str) -> bool:
    """Whether a row that is called this holds totals."""
    return _TOTAL.match(text) is not None


def wrong_totals(grid: Grid) -> tuple[WrongTotal, ...]:
    """Totals in rows called so that do not add up, within the rounding of their own last digit for each part.

    Only columns in which every part is a number are judged, and only where some total of the row does add up or the
    row has one column of numbers: a row of averages that is called a total must not be called wrong.
    """
    head = head_rows(grid)
    named = columns(grid)
    if not named:
        return ()
    labels = [cell.text if cell is not None else "" for cell in named[0].cells]
    wrong: list[WrongTotal] = []
    for at, label in enumerate(labels):
        if not is_total(label):
            continue
        judged = [
            (number, *sums)
            for number, column in enumerate(named[1:], 1)
            if (sums := _sums([cell.text if cell else "" for cell in column.cells], labels, at)) is not None
        ]
        right = [number for number, printed, added, slack in judged if abs(printed - added) <= slack]
        if not right and len(judged) > 1:
            continue
        wrong += [
            WrongTotal(head + at, number, printed, added)
            for number, printed, added, slack in judged
            if number not in right
        ]
    return tuple(wrong)


def _sums(texts: Sequence[str], labels: Sequence[str], at: int) -> tuple[Decimal, Decimal, Decimal] | None:
    """Printed total, sum of its parts, and the slack of rounding; None where the column cannot be judged."""
    printed = parse_number(texts[at])
    if printed is None or "%" in texts[at]:
        return None
    start = max((row + 1 for row in range(at) if is_total(labels[row])), default=0)
    rows = range(start, at)
    if not _SUB.match(labels[at]) and start:
        # A grand total adds subtotals up where there are any, else everything above.
        rows = range(at)
        subs = [row for row in rows if _SUB.match(labels[row])]
        parts = [parse_number(texts[row]) for row in (subs or [row for row in rows if not is_total(labels[row])])]
    else:
        parts = [parse_number(texts[row]) for row in rows if texts[row]]
    numbers = [part for part in parts if part is not None]
    if len(numbers) < _LEAST_PARTS or len(numbers) < len(parts):
        return None
    unit = Decimal(1).scaleb(min(int(part.as_tuple().exponent) for part in (*numbers, printed)))
    slack = unit * len(numbers) / 2 if unit < 1 else Decimal(0)
    return printed, sum(numbers, Decimal(0)), slack
