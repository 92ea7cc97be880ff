"""A corrected line changes its cell, or says that it cannot be told which."""

import hypothesis.strategies as st
from hypothesis import given

from docferry.tables import Cell, placed, put_right

texts = st.text("ab 1", min_size=1, max_size=4).filter(str.strip)


@given(st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=4), st.data())
def test_a_line_that_is_a_cell_changes_that_cell_and_no_other(rows, data):
    grid = placed([Cell(0, 0, text) for text in row] for row in rows)
    lines = [text for row in rows for text in row]
    number = data.draw(st.integers(0, len(lines) - 1))
    changed = put_right(grid, lines, {number: "new"})
    assert changed is not None
    assert [cell.text for cell in changed.cells] == [*lines[:number], "new", *lines[number + 1 :]]


def test_a_line_within_a_cell_is_replaced_there():
    grid = placed([[Cell(0, 0, "net weight 5 kg")]])
    changed = put_right(grid, ["net weight", "5 kg"], {1: "6 kg"})
    assert changed is not None
    assert changed.cells[0].text == "net weight 6 kg"


def test_a_line_over_two_cells_or_in_two_places_cannot_be_told():
    assert put_right(placed([[Cell(0, 0, "two"), Cell(0, 1, "words")]]), ["two words"], {0: "x"}) is None
    assert put_right(placed([[Cell(0, 0, "a b"), Cell(0, 1, "a c")]]), ["a"], {0: "x"}) is None
