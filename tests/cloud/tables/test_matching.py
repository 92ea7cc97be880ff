"""Lines and cells brought together."""

from __future__ import annotations

from docferry_cloud.tables.matching import Placed, cell_of, cuts, joined

ROW = [(0.0, 0.0, 40.0, 10.0), (60.0, 0.0, 100.0, 10.0), (140.0, 0.0, 180.0, 10.0)]


def test_a_line_goes_to_the_cell_it_covers_most_of() -> None:
    assert cell_of((55.0, 1.0, 105.0, 9.0), ROW) == 1


def test_a_line_beside_all_cells_goes_to_the_nearest_that_is_level() -> None:
    assert cell_of((185.0, 0.0, 200.0, 10.0), ROW) == 2
    assert cell_of((0.0, 40.0, 40.0, 50.0), ROW) is None


def test_a_line_through_several_cells_is_cut_between_them() -> None:
    assert cuts((0.0, 0.0, 180.0, 10.0), ROW) == [50.0, 120.0]
    assert cuts((0.0, 0.0, 45.0, 10.0), ROW) == []


def test_cells_above_one_another_do_not_cut_a_line() -> None:
    assert cuts((0.0, 0.0, 180.0, 10.0), [(0.0, 0.0, 100.0, 10.0), (10.0, 2.0, 90.0, 12.0)]) == []


def test_a_cells_text_reads_row_by_row() -> None:
    pieces = [Placed((30, 1, 50, 11), "two"), Placed((0, 20, 20, 30), "three"), Placed((0, 0, 20, 10), "one")]
    assert joined(pieces) == "one two three"
