"""How alike two tables are."""

from __future__ import annotations

import pytest

from benchmarks.teds import teds

_TABLE = "<table><thead><tr><td>a</td><td>b</td></tr></thead><tbody><tr><td>1</td><td>22</td></tr></tbody></table>"


def test_the_same_table_is_wholly_alike_whatever_its_markup() -> None:
    assert teds(_TABLE, _TABLE.replace("<td>a</td>", "<th><b>a</b></th>")) == 1


def test_a_wrong_letter_costs_its_share_of_a_cell() -> None:
    wrong = _TABLE.replace("22", "23")
    # table, thead, tbody, two rows, four cells.
    assert teds(_TABLE, wrong) == pytest.approx(1 - 0.5 / 9)
    assert teds(_TABLE, wrong, structure=True) == 1


def test_a_lost_cell_costs_a_node() -> None:
    assert teds(_TABLE, _TABLE.replace("<td>22</td>", "")) == pytest.approx(1 - 1 / 9)


def test_sections_count_only_where_the_truth_has_them() -> None:
    flat = "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>22</td></tr></table>"
    assert teds(flat, _TABLE) == 1
    assert teds(_TABLE, flat) < 1


def test_nothing_read_is_nothing_alike() -> None:
    assert teds(_TABLE, "") == 0
