import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Line, Page, Region, RegionType
from docferry_cloud.deep.numbers import page_with_points, with_points


def at(text, row, end=200, width=60):
    y = 40 * row
    corners = [[end - width, y], [end, y], [end, y + 20], [end - width, y + 20]]
    return text, np.array(corners, dtype=np.float32)


def test_a_gap_becomes_a_point_where_the_column_says_so():
    assert with_points([at("12.50", 0), at("3 00", 1)]) == ["12.50", "3.00"]
    assert with_points([at("RM 12.50", 0), at("RM 201 30", 1)]) == ["RM 12.50", "RM 201.30"]


def test_the_point_is_the_columns_own_mark():
    assert with_points([at("12,50", 0), at("3 00", 1)]) == ["12,50", "3,00"]


def test_a_gap_elsewhere_stays_a_gap():
    assert with_points([at("3 00", 1)]) == ["3 00"]
    assert with_points([at("12.50", 0), at("3 00", 1, end=500)]) == ["12.50", "3 00"]
    assert with_points([at("12.50", 0), at("Table 12 20", 1, end=500)]) == ["12.50", "Table 12 20"]
    assert with_points([at("12.50", 0), at("12 345", 1)]) == ["12.50", "12 345"]


def test_a_bare_number_gains_a_point_only_where_the_page_has_it_or_a_sum_asks_for_it():
    assert with_points([at("12.50", 0), at("1250", 3)]) == ["12.50", "12.50"]
    assert with_points([at("2.50", 0), at("3.00", 1), at("550", 2)]) == ["2.50", "3.00", "5.50"]
    assert with_points([at("2.50", 0), at("300", 1), at("5.50", 2)]) == ["2.50", "3.00", "5.50"]
    assert with_points([at("2.50", 0), at("3.00", 1), at("120", 2)]) == ["2.50", "3.00", "120"]


def test_a_page_says_who_put_the_point_back():
    def line(identity, text, row):
        return Line(
            identity, text, ((0.1, row), (0.2, row), (0.2, row + 0.02), (0.1, row + 0.02)), 0.9, 0.8, "edge:x@1"
        )

    lines = line("r1.l1", "12.50", 0.1), line("r1.l2", "3 00", 0.2)
    page = Page(1000, 1000, (Region("r1", RegionType.TEXT, (0.0, 0.0, 1.0, 1.0), 0, lines=lines),))
    kept, pointed = page_with_points(page, "cloud:y@2").lines
    assert kept == lines[0]
    assert (pointed.id, pointed.text, pointed.provenance) == ("r1.l2", "3.00", "cloud:y@2")


texts = st.from_regex(r"(RM )?[0-9]{1,5}([ .,][0-9]{1,3}){0,2}", fullmatch=True)


@given(st.lists(st.tuples(texts, st.integers(0, 12), st.sampled_from([150, 200, 400])), max_size=8))
def test_no_digit_is_ever_changed(rows):
    before = [at(text, row, end) for text, row, end in rows]
    after = with_points(before)
    for (old, _), new in zip(before, after, strict=True):
        assert re.sub(r"[ .,]", "", old) == re.sub(r"[ .,]", "", new)
