"""Rows and segments come from where lines stand, not from the order they came in."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Document, Page, Region, RegionType
from docferry.fields.rows import find_rows, find_segments
from tests.shared.fields.papers import HEIGHT, WIDTH, line


def page(*lines):
    return Document((Page(WIDTH, HEIGHT, (Region("r0", RegionType.TEXT, (0, 0, 1, 1), 0, lines=tuple(lines)),)),))


@given(st.permutations(range(6)), st.floats(min_value=-0.012, max_value=0.012))
def test_a_slightly_sloping_table_keeps_its_rows(order, slope):
    lines = [
        line(f"l{number}{side}", f"{side}{number}", left, 40 + 34 * number + slope * left)
        for number in order
        for side, left in (("left", 30.0), ("right", 700.0))
    ]
    assert [row.text for row in find_rows(page(*lines))] == [f"left{number} right{number}" for number in range(6)]


def test_lines_over_one_another_are_never_one_row():
    rows = find_rows(page(line("a", "upper", 30, 40), line("b", "lower", 32, 48)))
    assert [row.text for row in rows] == ["upper", "lower"]


def test_a_wide_gap_parts_segments_and_a_narrow_one_does_not():
    lines = (line("a", "NO. 7,", 30, 40), line("b", "JALAN TIGA", 110, 41), line("c", "INVOICE", 600, 40))
    segments = find_segments(find_rows(page(*lines)))
    assert [segment.text for segment in segments] == ["NO. 7, JALAN TIGA", "INVOICE"]


def test_rows_are_numbered_through_all_pages():
    one = page(line("a", "first", 30, 40)).pages[0]
    rows = find_rows(Document((one, one)))
    assert [(row.page, row.index) for row in rows] == [(0, 0), (1, 1)]


def test_blank_lines_and_lines_without_height_do_no_harm():
    rows = find_rows(page(line("a", "  ", 30, 40), line("b", "flat", 30, 80, height=0.0)))
    assert [row.text for row in rows] == ["flat"]
    assert math.isfinite(find_segments(rows)[0].height)
