"""Tables as HTML and back."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from docferry.tables import Cell, from_html, placed, to_html
from docferry.tables.grid import MOST_PLACES

_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8).map(
    lambda text: " ".join(text.split())
)
_CELLS = st.builds(Cell, st.just(0), st.just(0), _TEXT, st.integers(1, 3), st.integers(1, 3))


@given(st.lists(st.lists(_CELLS, max_size=4), max_size=5), st.integers(0, 5))
def test_a_grid_survives_html(rows: list[list[Cell]], head: int) -> None:
    grid = placed(rows)
    if all(cell.row + cell.rows <= head or cell.row >= head for cell in grid.cells):
        grid = placed([[Cell(0, 0, c.text, c.rows, c.columns, at < head) for c in row] for at, row in enumerate(rows)])
    # Rows that hold nothing at the end cannot be told from none.
    assert from_html(to_html(grid)).texts() == grid.texts()
    assert from_html(to_html(grid)).cells == grid.cells


@given(st.lists(st.lists(_CELLS, max_size=4), max_size=5))
def test_no_two_cells_cover_the_same_place(rows: list[list[Cell]]) -> None:
    grid = placed(rows)
    covered = [
        (cell.row + y, cell.column + x) for cell in grid.cells for y in range(cell.rows) for x in range(cell.columns)
    ]
    assert len(covered) == len(set(covered))


@given(st.text())
def test_any_text_is_read_as_some_table(source: str) -> None:
    assert from_html(f"<table><tr><td>{source}").height <= 1000
    from_html(source)


def test_spans_push_later_cells_to_free_places() -> None:
    grid = from_html(
        '<table><thead><tr><td rowspan="2">Item</td><td colspan="2">Sales</td></tr>'
        "<tr><td>2022</td><td>2023</td></tr></thead><tbody><tr><td>Nuts</td><td>1</td><td>2</td></tr></tbody></table>"
    )
    assert grid.texts() == [["Item", "Sales", "Sales"], ["Item", "2022", "2023"], ["Nuts", "1", "2"]]
    assert grid.head == 2


def test_printed_tags_are_text() -> None:
    grid = placed([[Cell(0, 0, "<script>x</script> & co")]])
    assert from_html(to_html(grid)).cells[0].text == "<script>x</script> & co"
    assert "<script>" not in to_html(grid)


@pytest.mark.parametrize(
    "source",
    [
        "<table>" + '<tr><td rowspan="9999" colspan="1000">a</td><td rowspan="9999">b</td></tr>' * 3000 + "</table>",
        "<table><tr>" + "<td>x</td>" * 50_000 + "</tr>" + "<tr><td>y</td></tr>" * 3000 + "</table>",
    ],
    ids=["spans", "cells"],
)
def test_a_few_bytes_of_html_do_not_become_gigabytes_of_places(source: str) -> None:
    grid = from_html(source)
    assert grid.height * grid.width <= MOST_PLACES
    # Nothing is lost: what finds no place of its own stands in the cell before.
    found = "".join(cell.text for cell in grid.cells)
    assert {letter: found.count(letter) for letter in "abxy"} == {
        letter: source.count(f"{letter}</td>") for letter in "abxy"
    }
