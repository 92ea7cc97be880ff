"""Columns of running text where no layout box helps: newspapers, and pages that the network takes for a picture."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from docferry.block_order import in_reading_order
from docferry.document import Line, Region, RegionType
from docferry.reading_order import LayoutBox, assemble_page
from docferry.text_columns import runs_in_columns, text_columns

WIDE, HIGH, STEP = 1000, 1400, 16
Box = tuple[float, float, float, float]


def printed(columns: int, rows: int, *, top: float = 100, seed: int = 1, gutter: float = 14) -> list[list[Box]]:
    """Lines of running text, column by column: the last of a paragraph is short, and no two columns are level."""
    rng = random.Random(seed)
    across = (WIDE - 100) / columns
    made = []
    for column in range(columns):
        x0 = 50 + column * across
        y = top + rng.uniform(0, STEP)
        lines = []
        for _ in range(rows):
            short = rng.random() < 0.15
            indent = rng.choice((0, 0, 0, 0, STEP))
            x1 = x0 + (across - gutter) * (rng.uniform(0.3, 0.8) if short else rng.uniform(0.97, 1))
            lines.append((x0 + indent, y, x1, y + 12))
            y += STEP
        made.append(lines)
    return made


def page_of(lines: list[tuple[str, Box]], layout: list[LayoutBox] | None = None) -> list[str]:
    """The texts of a page in reading order."""
    return [line.text for region in regions_of(lines, layout) for line in region.lines]


def regions_of(lines: list[tuple[str, Box]], layout: list[LayoutBox] | None = None) -> tuple[Region, ...]:
    """A page's regions; the lines are handed in shuffled."""
    shuffled = random.Random(7).sample(lines, len(lines))
    handed = [
        Line(
            "",
            text,
            tuple((x / WIDE, y / HIGH) for x, y in ((b[0], b[1]), (b[2], b[1]), (b[2], b[3]), (b[0], b[3]))),
            0.9,
        )
        for text, b in shuffled
    ]
    return assemble_page(WIDE, HIGH, layout or [], handed).regions


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_columns_are_read_one_after_the_other(columns: int) -> None:
    lines = [box for column in printed(columns, 40) for box in column]
    texts = [(f"{number:03}", box) for number, box in enumerate(lines)]
    assert page_of(texts) == [text for text, _ in texts]


def test_a_headline_across_columns_ends_the_columns_above_it() -> None:
    above, below = printed(3, 20, seed=2), printed(3, 20, top=560, seed=3)
    headline = (50.0, 490.0, 930.0, 530.0)
    boxes = [*(box for column in above for box in column), headline, *(box for column in below for box in column)]
    texts = [(f"{number:03}", box) for number, box in enumerate(boxes)]
    assert page_of(texts) == [text for text, _ in texts]


def test_pieces_of_formulas_at_a_gutter_do_not_hide_it() -> None:
    left, right = printed(2, 30)
    pieces = [
        (500 + 40 * number, 620 + 20 * row, 515 + 40 * number, 632 + 20 * row)
        for number in range(4)
        for row in range(9)
    ]
    boxes = [*left, *right, *pieces]
    found = text_columns(boxes)
    home = {index: number for number, part in enumerate(found) for index in part}
    assert len({home[index] for index in range(30)}) == 1
    assert home[0] != home[30]


def receipt() -> list[Box]:
    rows = range(30)
    names = [(60.0, 100.0 + 20 * row, 60.0 + 90 + 37 * (row % 9), 114.0 + 20 * row) for row in rows]
    prices = [(840.0 + 7 * (row % 3), 100.0 + 20 * row, 900.0, 114.0 + 20 * row) for row in rows]
    return [*names, *prices]


def test_names_and_prices_stay_in_rows() -> None:
    boxes = receipt()
    assert text_columns(boxes) == [list(range(len(boxes)))]
    assert not runs_in_columns(boxes)


def test_a_page_of_columns_that_was_taken_for_a_table_is_read_in_columns() -> None:
    lines = [box for column in printed(3, 50) for box in column]
    texts = [(f"{number:03}", box) for number, box in enumerate(lines)]
    table = LayoutBox(RegionType.TABLE, (0.0, 0.02, 1.0, 0.98), 0.96)
    assert page_of(texts, [table]) == [text for text, _ in texts]


def test_a_large_table_of_short_cells_stays_a_table() -> None:
    cells = [(60.0 + 300 * x, 100.0 + 24 * y, 180.0 + 300 * x, 114.0 + 24 * y) for y in range(45) for x in range(3)]
    texts = [(f"{number:03}", box) for number, box in enumerate(cells)]
    table = LayoutBox(RegionType.TABLE, (0.0, 0.02, 1.0, 0.98), 0.96)
    assert not runs_in_columns(cells)
    assert [region.type for region in regions_of(texts, [table])] == [RegionType.TABLE]


_BOXES = st.lists(
    st.tuples(st.floats(0, 900), st.floats(0, 1300), st.floats(1, 400), st.floats(1, 40)).map(
        lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
    ),
    max_size=40,
)


@settings(deadline=None)
@given(_BOXES)
def test_no_line_is_lost_or_doubled_whatever_lies_where(boxes: list[Box]) -> None:
    assert sorted(index for part in text_columns(boxes) for index in part) == list(range(len(boxes)))
    assert sorted(in_reading_order(boxes)) == list(range(len(boxes)))


def test_hundreds_of_blocks_are_ordered_as_a_few_are() -> None:
    boxes = [box for column in printed(5, 60) for box in column]
    assert in_reading_order(boxes) == list(range(len(boxes)))
