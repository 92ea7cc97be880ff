"""Column names, numbers, totals, continuation."""

from __future__ import annotations

from decimal import Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.tables import Cell, Grid, columns, joined_tables, parse_number, to_html, wrong_totals


def grid(rows: list[list[str]], head: int = 0) -> Grid:
    return Grid(tuple(Cell(y, x, text, header=y < head) for y, row in enumerate(rows) for x, text in enumerate(row)))


def test_a_head_of_two_levels_is_flattened() -> None:
    cells = (
        Cell(0, 0, "项目", rows=2),
        Cell(0, 1, "收入", columns=2),
        Cell(1, 1, "主营业务"),
        Cell(1, 2, "其他"),
        Cell(2, 0, "一月"),
        Cell(2, 1, "12.5"),
        Cell(2, 2, "3.0"),
    )
    assert [column.name for column in columns(Grid(cells))] == ["项目", "收入_主营业务", "收入_其他"]


def test_names_are_unique_and_never_empty() -> None:
    named = columns(grid([["", "a", "a"], ["x", "1", "2"]]))
    assert [column.name for column in named] == ["1", "a", "a_2"]


def test_years_name_columns() -> None:
    named = columns(grid([["Item", "2022", "2023"], ["nuts", "7", "9"]]))
    assert [column.name for column in named] == ["Item", "2022", "2023"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.50", "1234.50"),
        ("1.234,50", "1234.50"),
        ("1 234", "1234"),
        ("1,234", "1234"),
        ("0,5", "0.5"),
        ("12,5", "12.5"),
        ("1.234", "1.234"),
        ("(12)", "-12"),
        ("−3.5", "-3.5"),
        ("45 %", "45"),
        ("$ 7", "7"),
        ("RM 9.00", "9.00"),
        ("1,234,567", "1234567"),
        ("31.6**", "31.6"),
    ],
)
def test_numbers_are_read_as_they_are_printed(text: str, value: str) -> None:
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "-", "n/a", "12 May", "3-4", "A1", "1.2.x", "."])
def test_what_is_no_number_gives_none(text: str) -> None:
    assert parse_number(text) is None


@given(st.text(max_size=20))
def test_any_text_is_a_number_or_none(text: str) -> None:
    parse_number(text)


@given(st.decimals(-(10**9), 10**9, places=2))
def test_a_printed_amount_comes_back(value: Decimal) -> None:
    assert parse_number(f"{value:,.2f}") == value


def test_a_total_that_does_not_add_up_is_said_and_one_that_does_is_not() -> None:
    rows = [["Item", "Q1", "Q2"], ["nuts", "1", "2"], ["figs", "3", "4"], ["Total", "4", "7"]]
    (wrong,) = wrong_totals(grid(rows))
    assert (wrong.row, wrong.column, wrong.printed, wrong.added) == (3, 2, Decimal(7), Decimal(6))


def test_a_grand_total_adds_up_subtotals() -> None:
    rows = [["Item", "Q1"], ["a", "1"], ["b", "2"], ["Subtotal", "3"], ["c", "4"], ["d", "1"], ["Subtotal", "5"]]
    assert wrong_totals(grid([*rows, ["Total", "8"]])) == ()
    assert len(wrong_totals(grid([*rows, ["Total", "9"]]))) == 1


def test_rounding_and_averages_are_not_called_wrong() -> None:
    assert wrong_totals(grid([["x", "s"], ["a", "33.3"], ["b", "33.3"], ["c", "33.3"], ["Total", "100.0"]])) == ()
    averages = [["x", "p", "q"], ["a", "10", "20"], ["b", "20", "40"], ["Total", "15", "30"]]
    assert wrong_totals(grid(averages)) == ()


def paged(*tables: Grid, caption: str = "") -> Document:
    pages = []
    for number, table in enumerate(tables):
        regions = [Region("r1", RegionType.TABLE, (0.1, 0.1, 0.9, 0.9), 1, html=to_html(table))]
        if number and caption:
            line = Line("r0.l1", caption, ((0.1, 0.05), (0.5, 0.05), (0.5, 0.08), (0.1, 0.08)), 1.0)
            regions.insert(0, Region("r0", RegionType.TEXT, (0.1, 0.05, 0.5, 0.08), 0, lines=(line,)))
        pages.append(Page(1000, 1400, tuple(regions)))
    return Document(tuple(pages))


def test_a_table_over_two_pages_is_one_without_its_repeated_head() -> None:
    first = grid([["Item", "Price"], ["nuts", "1"]], head=1)
    second = grid([["Item", "Price"], ["figs", "2"]], head=1)
    (whole,) = joined_tables(paged(first, second, caption="Table 3 (continued)"))
    assert whole.parts == ((0, "r1"), (1, "r1"))
    assert whole.grid.texts() == [["Item", "Price"], ["nuts", "1"], ["figs", "2"]]


def test_text_between_or_other_columns_keep_tables_apart() -> None:
    first = grid([["Item", "Price"], ["nuts", "1"]], head=1)
    assert len(joined_tables(paged(first, first, caption="Another matter altogether."))) == 2
    assert len(joined_tables(paged(first, grid([["a", "b", "c"], ["1", "2", "3"]])))) == 2
