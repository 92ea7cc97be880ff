import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.tables import from_html, to_html
from docferry_cloud.vlm.otsl import parse_table


def texts(answer):
    return parse_table(answer).grid.texts()


def test_spans_to_the_right_down_and_both():
    table = parse_table(
        "<fcel>Region<fcel>Sales<lcel><nl><ucel><fcel>2024<fcel>2025<nl><fcel>North<fcel>1<fcel>2<nl><fcel>All<lcel>"
        "<xcel><nl>"
    )
    assert to_html(table.grid) == (
        '<table><tr><td rowspan="2">Region</td><td colspan="2">Sales</td></tr><tr><td>2024</td><td>2025</td></tr>'
        '<tr><td>North</td><td>1</td><td>2</td></tr><tr><td colspan="2">All</td><td></td></tr></table>'
    )
    assert [mark.code for mark in table.marks] == ["SPANS"]


def test_a_block_of_two_by_two():
    grid = parse_table("<fcel>a<lcel><fcel>b<nl><ucel><xcel><fcel>c<nl>").grid
    assert [(cell.text, cell.rows, cell.columns) for cell in grid.cells] == [("a", 2, 2), ("b", 1, 1), ("c", 1, 1)]


@pytest.mark.parametrize(
    "answer",
    [
        "<fcel>A<lcel><nl><fcel>1<fcel>2<nl>",
        "<fcel>A<fcel>B<nl><ucel><fcel>2<nl><ecel><fcel>3",
        "<fcel>a<lcel><nl><ucel><xcel><nl><fcel>1<fcel>2<nl>",
    ],
)
def test_it_makes_what_the_models_own_library_makes(answer):
    theirs = pytest.importorskip("mineru_vl_utils.post_process.otsl2html")
    # A row that only spans reach into is an empty row in HTML too.
    assert to_html(parse_table(answer).grid) == theirs.convert_otsl_to_html(answer)


def test_short_rows_are_filled_and_text_without_a_cell_becomes_one():
    table = parse_table("Table 1 <fcel>a<fcel>b<nl>stray<fcel>c<nl><lcel>more")
    assert table.grid.texts() == [["Table 1", "a", "b"], ["stray", "c", ""], ["more", "", ""]]
    assert [mark.code for mark in table.marks] == ["MALFORMED"]


@pytest.mark.parametrize("answer", ["Item 1.00\nItem 2.00", "fcel>A", "<fcell>A<fcell>B"])
def test_an_answer_without_tokens_keeps_its_text_and_says_so(answer):
    table = parse_table(answer)
    assert not table.grid.cells
    assert table.raw == answer
    assert [mark.code for mark in table.marks] == ["MALFORMED"]


def test_html_from_the_model_is_taken_apart_and_not_passed_on():
    table = parse_table('<table onclick="x()"><tr><td>a<script>alert(1)</script></td><td colspan=2>b</td></tr></table>')
    assert to_html(table.grid) == '<table><tr><td>a</td><td colspan="2">b</td></tr></table>'


def test_text_beside_a_table_in_html_is_said_to_be_missing():
    table = parse_table("<table><tr><td>a</td></tr></table> and then a long remark that belongs to nothing")
    assert [mark.code for mark in table.marks] == ["MALFORMED"]


TOKENS = st.sampled_from(["<fcel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>"])
ANSWERS = st.lists(TOKENS | st.sampled_from(["a", "b c", "<b>", "&amp;", "1 < 2", "<fce", "\n", "</td>"]), max_size=60)


@settings(deadline=None)
@given(ANSWERS.map("".join))
def test_no_letter_is_lost_and_no_two_cells_share_a_place(answer):
    table = parse_table(answer)
    if not table.grid.cells:
        assert table.raw == answer.strip()
        return
    said = "".join(re.sub(r"<(?:fcel|ecel|lcel|ucel|xcel|nl)>", "", answer).split())
    kept = "".join("".join(cell.text.split()) for cell in table.grid.cells)
    assert sorted(kept) == sorted(said)
    places = [
        (row, column)
        for cell in table.grid.cells
        for row in range(cell.row, cell.row + cell.rows)
        for column in range(cell.column, cell.column + cell.columns)
    ]
    assert len(places) == len(set(places)) == table.grid.height * table.grid.width


@settings(deadline=None)
@given(ANSWERS.map("".join))
def test_what_is_shown_holds_no_tag_but_the_tables(answer):
    html = to_html(parse_table(answer).grid)
    assert set(re.findall(r"</?([a-z]+)", html)) <= {"table", "tr", "td"}
    assert from_html(html).texts() == [[" ".join(text.split()) for text in row] for row in texts(answer)] or not html
