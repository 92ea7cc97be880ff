"""Answers from tables: a cell, a column, sums and comparisons over it.

Column names and row labels are looked for in the question. Every word of the question that carries meaning must be
part of a name that was found or of the operation: "the 2025 price" of a table of 2024 has no answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from docferry.tables import Cell, Column, Grid, columns, is_total, parse_number
from docferry_cloud.meaning.questions import Operation, Question, content_words, folded, words_of


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """An answer, the cells it stands on, and how much of the question it accounts for, 0..1."""

    text: str
    cells: tuple[Cell, ...]
    covered: float


@dataclass(frozen=True, slots=True)
class _View:
    """A table as questions see it: its columns, the labels of its rows, and which rows hold totals."""

    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    totals: frozenset[int]


def answer_from_table(question: Question, grid: Grid, *, context: str = "") -> TableAnswer | None:
    """The answer, or None where the table does not hold it.

    Args:
        grid: The table.
        context: Its caption and the like: words of it that the question uses are accounted for.
    """
    view = _view(grid)
    if view is None:
        return None
    named = _named([column.name for column in view.columns], question.text)
    rows = _named(list(view.labels), question.text)
    # The column of labels is no answer in itself unless it is asked for alone.
    values = [column for column in named if column > 0] or named
    known = " ".join([*(view.columns[column].name for column in named), *(view.labels[row] for row in rows), context])
    asked = content_words(question.text)
    left = [word for word in asked if word not in set(words_of(folded(known)))]
    if left:
        return None
    for operation in question.operations:
        found = _OPERATIONS_OF[operation](question, view, values, rows)
        if found is not None:
            return TableAnswer(found[0], found[1], 1.0)
    return None


def _view(grid: Grid) -> _View | None:
    made = columns(grid)
    if len(made) < 2 or not made[0].cells:
        return None
    labels = tuple(cell.text if cell is not None else "" for cell in made[0].cells)
    return _View(made, labels, frozenset(row for row, label in enumerate(labels) if is_total(label)))


def _named(names: Sequence[str], text: str) -> list[int]:
    """Which names stand in the question: whole, the longest ones first; a name inside one that was found is not."""
    padded = f" {' '.join(words_of(text))} "
    folded_names = [" ".join(words_of(folded(name))) for name in names]
    order = sorted(range(len(names)), key=lambda at: -len(folded_names[at]))
    found: list[int] = []
    for at in order:
        name = folded_names[at]
        if name and f" {name} " in padded:
            found.append(at)
            padded = padded.replace(f" {name} ", " \u0000 ")
    # A flattened name is also meant by its last part alone, where that part is nobody else's.
    for at, name in enumerate(names):
        if at in found or "_" not in name:
            continue
        last = " ".join(words_of(folded(name.rpartition("_")[2])))
        alike = sum(other.rpartition("_")[2] == name.rpartition("_")[2] for other in names)
        if last and alike == 1 and f" {last} " in padded:
            found.append(at)
    return sorted(found)


_Result = tuple[str, tuple[Cell, ...]] | None


def _value(question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    if len(rows) != 1:
        return None
    if not values and len(view.columns) == 2:
        values = [1]
    if len(values) != 1 or values == [0]:
        return None
    cell = view.columns[values[0]].cells[rows[0]]
    return (_shown([cell.text], question), (cell,)) if cell is not None and cell.text else None


def _list(question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    if len(values) == 1 and not rows:
        cells = tuple(cell for cell in view.columns[values[0]].cells if cell is not None and cell.text)
        return (_shown([cell.text for cell in cells], question, many=True), cells) if cells else None
    if len(rows) == 1 and not values:
        held = [column.cells[rows[0]] for column in view.columns[1:]]
        cells = tuple(cell for cell in held if cell is not None and cell.text)
        return (_shown([cell.text for cell in cells], question, many=True), cells) if cells else None
    return None


def _sum(_question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    numbers = _numbers(view, values, rows)
    return (_plain(sum((value for value, _ in numbers), Decimal(0))), _cells(numbers)) if numbers else None


def _mean(_question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    numbers = _numbers(view, values, rows)
    if not numbers:
        return None
    mean = sum((value for value, _ in numbers), Decimal(0)) / len(numbers)
    return _plain(round(mean, 4)), _cells(numbers)


def _most(_question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    return _extreme(view, values, rows, largest=True)


def _least(_question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    return _extreme(view, values, rows, largest=False)


def _extreme(view: _View, values: list[int], rows: list[int], *, largest: bool) -> _Result:
    numbers = _numbers(view, values, rows)
    if not numbers:
        return None
    end = (max if largest else min)(value for value, _ in numbers)
    winners = [(row, cell) for row, cell in _rows_of(view, values, rows) if parse_number(cell.text) == end]
    return "; ".join(f"{view.labels[row]}: {cell.text}" for row, cell in winners), tuple(cell for _, cell in winners)


def _count(_question: Question, view: _View, _values: list[int], _rows: list[int]) -> _Result:
    return str(len(view.labels) - len(view.totals)), ()


def _difference(_question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    pair = _two(view, values, rows)
    if pair is None:
        return None
    (one, first), (other, second) = pair
    return _plain(abs(one - other)), (first, second)


def _larger(_question: Question, view: _View, values: list[int], rows: list[int]) -> _Result:
    pair = _two(view, values, rows)
    if pair is None or len(rows) != 2:
        return None
    (one, first), (other, second) = pair
    row = rows[0] if one >= other else rows[1]
    return view.labels[row], (first, second)


_OPERATIONS_OF = {
    Operation.VALUE: _value,
    Operation.LIST: _list,
    Operation.SUM: _sum,
    Operation.MEAN: _mean,
    Operation.MOST: _most,
    Operation.LEAST: _least,
    Operation.COUNT: _count,
    Operation.DIFFERENCE: _difference,
    Operation.LARGER: _larger,
}


def _two(view: _View, values: list[int], rows: list[int]) -> list[tuple[Decimal, Cell]] | None:
    """The two cells that a comparison is about: two rows of one column, or two columns of one row."""
    if not values and len(view.columns) == 2:
        values = [1]
    if (len(rows), len(values)) not in {(2, 1), (1, 2)}:
        return None
    cells = [view.columns[column].cells[row] for row in rows for column in values]
    numbers = [(parse_number(cell.text), cell) for cell in cells if cell is not None]
    sure = [(value, cell) for value, cell in numbers if value is not None]
    return sure if len(sure) == 2 else None


def _rows_of(view: _View, values: list[int], rows: list[int]) -> list[tuple[int, Cell]]:
    """The cells of the one column that is meant, in the rows that are named or else in all but totals."""
    if not values and len(view.columns) == 2:
        values = [1]
    if len(values) != 1:
        return []
    chosen = rows or [row for row in range(len(view.labels)) if row not in view.totals]
    held = ((row, view.columns[values[0]].cells[row]) for row in chosen)
    return [(row, cell) for row, cell in held if cell is not None and cell.text]


def _numbers(view: _View, values: list[int], rows: list[int]) -> list[tuple[Decimal, Cell]]:
    """The column's numbers; none where something in it is no number: a sum that leaves a cell out would be wrong."""
    cells = _rows_of(view, values, rows)
    numbers = [(parse_number(cell.text), cell) for _, cell in cells]
    sure = [(value, cell) for value, cell in numbers if value is not None]
    missing = [cell for value, cell in numbers if value is None and cell.text not in {"-", "–", "—", "n/a", "N/A"}]
    return [] if missing else sure


def _cells(numbers: Sequence[tuple[Decimal, Cell]]) -> tuple[Cell, ...]:
    return tuple(cell for _, cell in numbers)


def _shown(texts: Sequence[str], question: Question, *, many: bool = False) -> str:
    if question.as_json:
        return json.dumps(list(texts) if many else texts[0], ensure_ascii=False)
    return ", ".join(texts)


def _plain(value: Decimal) -> str:
    return f"{value:f}"
