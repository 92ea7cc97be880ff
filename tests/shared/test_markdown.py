import re

from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.markdown import at_line_start, escaped, joined, render
from docferry.markdown_tables import Cell, pipe_table, safe_table


def line(text, x0, y0, x1, y1, identity="r1.l1"):
    return Line(identity, text, ((x0, y0), (x1, y0), (x1, y1), (x0, y1)), 0.99)


def region(kind, rows, *, top=0.1, identity="r1", **more):
    """Rows of `(text, x0, x1)` cells, one row below the other."""
    lines = []
    for place, row in enumerate(rows):
        y = top + 0.03 * place
        lines += [
            line(text, x0, y, x1, y + 0.02, f"{identity}.l{len(lines) + at + 1}")
            for at, (text, x0, x1) in enumerate(row)
        ]
    boxes = [one.box for one in lines] or [(0.1, top, 0.9, top + 0.1)]
    box = (min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))
    return Region(identity, kind, box, 0, lines=tuple(lines), **more)


def document(*regions):
    return Document((Page(1000, 1400, regions),))


PROSE = [
    [("The quick brown fox jumps over the lazy dog and goes home to re-", 0.1, 0.9)],
    [("cover from all the jumping that it has done in this long day of", 0.1, 0.9)],
    [("work.", 0.1, 0.2)],
]


def test_running_text_becomes_one_paragraph_without_its_hyphens():
    markdown = render(document(region(RegionType.TEXT, PROSE)))
    assert markdown == (
        "The quick brown fox jumps over the lazy dog and goes home to recover from all the jumping that it has done "
        "in this long day of work.\n"
    )


def test_titles_become_headings_the_first_one_the_largest():
    markdown = render(
        document(
            region(RegionType.TITLE, [[("On Foxes", 0.3, 0.7)]], top=0.05),
            region(RegionType.TITLE, [[("1. Jumping", 0.1, 0.4)]], top=0.2, identity="r2"),
        )
    )
    assert markdown == "# On Foxes\n\n## 1\\. Jumping\n"


def test_receipts_keep_their_rows_with_columns_apart():
    rows = [
        [("CORNER SHOP", 0.3, 0.6)],
        [("TEA", 0.1, 0.2), ("3.00", 0.8, 0.9)],
        [("MILK", 0.1, 0.2), ("6.00", 0.8, 0.9)],
        [("TOTAL", 0.1, 0.3), ("9.00", 0.8, 0.9)],
    ]
    assert render(document(region(RegionType.TEXT, rows))).splitlines() == [
        "CORNER SHOP  ",
        "TEA \u20033.00  ",
        "MILK \u20036.00  ",
        "TOTAL \u20039.00",
    ]


def test_headers_footers_and_page_numbers_are_left_out_of_running_pages():
    markdown = render(
        document(
            region(RegionType.HEADER, [[("Journal of Foxes", 0.1, 0.4)]], top=0.01),
            region(RegionType.TEXT, PROSE, identity="r2"),
            region(RegionType.PAGE_NUMBER, [[("17", 0.5, 0.52)]], top=0.95, identity="r3"),
        )
    )
    assert "Journal" not in markdown
    assert "17" not in markdown


def test_a_page_of_headers_only_is_not_emptied():
    assert render(document(region(RegionType.HEADER, [[("Journal of Foxes", 0.1, 0.4)]]))) == "Journal of Foxes\n"


def test_a_receipts_header_stays():
    rows = [[("TEA", 0.1, 0.2), ("3.00", 0.8, 0.9)], [("TOTAL", 0.1, 0.3), ("RM 3.00", 0.8, 0.9)]]
    shop = region(RegionType.HEADER, [[("CORNER SHOP", 0.3, 0.6)]], top=0.01)
    tail = region(RegionType.TEXT, [[("CASHIER: C3 RECEIPT 12", 0.1, 0.5)]], top=0.5, identity="r3")
    assert "CORNER SHOP" in render(document(shop, region(RegionType.TEXT, rows, identity="r2"), tail))


def test_a_table_with_clear_columns_becomes_a_pipe_table():
    rows = [
        [("Item", 0.1, 0.3), ("Qty", 0.5, 0.55), ("Price", 0.8, 0.9)],
        [("Tea | green", 0.1, 0.25), ("2", 0.52, 0.54), ("3.00", 0.82, 0.9)],
        [("Milk", 0.1, 0.2), ("1.50", 0.82, 0.9)],
    ]
    assert render(document(region(RegionType.TABLE, rows))).splitlines() == [
        "| Item | Qty | Price |",
        "| --- | --- | --- |",
        "| Tea \\| green | 2 | 3.00 |",
        "| Milk |  | 1.50 |",
    ]


def test_a_table_with_unclear_columns_keeps_its_rows():
    rows = [
        [("a", 0.1, 0.3), ("b", 0.5, 0.6)],
        [("wide", 0.1, 0.55), ("c", 0.7, 0.8)],
        [("d", 0.2, 0.4), ("e", 0.45, 0.5)],
    ]
    assert "|" not in render(document(region(RegionType.TABLE, rows)))


def test_html_of_a_table_is_taken_without_foreign_tags():
    html = (
        "<table onclick='x()'><tr><td colspan='2' style='a'>1 &lt; 2<script>alert(1)</script></td></tr>"
        "<tr><td>a\n\nb<td><img src=x onerror=y></table>"
    )
    assert render(document(region(RegionType.TABLE, [], html=html))) == (
        '<table><tr><td colspan="2">1 &lt; 2</td></tr><tr><td>a b</td><td></td></tr></table>\n'
    )


def test_formulas_stand_alone_and_cannot_end_early():
    assert render(document(region(RegionType.EQUATION, [], latex="a^2 + b^2"))) == "$$\na^2 + b^2\n$$\n"
    broken = region(RegionType.EQUATION, [[("a$$<b>", 0.1, 0.3)]], latex="a$$<b>")
    assert render(document(broken)) == "a\\$\\$&lt;b>\n"


def test_code_is_fenced_longer_than_any_fence_inside():
    rows = [[("```", 0.1, 0.2)], [("<b>", 0.1, 0.2)]]
    assert render(document(region(RegionType.CODE, rows))) == "````\n```\n<b>\n````\n"


def test_list_items_lose_their_own_bullets():
    assert render(document(region(RegionType.LIST_ITEM, [[("• one", 0.1, 0.3)]]))) == "- one\n"


def test_chinese_lines_are_joined_without_spaces():
    assert joined(["合计金", "额：9.00", "USD"]) == "合计金额：9.00 USD"


def test_nothing_read_is_nothing_written():
    assert render(Document(())) == ""
    assert render(document(region(RegionType.IMAGE, []))) == ""


def test_printed_markup_stays_text():
    assert escaped("<script>[x](javascript:y) *a* `b` _c_ &lt; A & B") == (
        "&lt;script>\\[x\\](javascript:y) \\*a\\* \\`b\\` \\_c\\_ &amp;lt; A & B"
    )
    assert [at_line_start(text) for text in ("# a", "- b", "1. c", "===", "> d", "1.50", "-5")] == [
        "\\# a", "\\- b", "1\\. c", "\\===", "\\> d", "1.50", "\\-5",
    ]  # fmt: skip


@given(st.text())
def test_no_text_can_open_a_tag_or_break_its_line(text):
    shown = at_line_start(escaped(text))
    assert "<" not in shown
    assert len(shown.splitlines()) <= 1
    for sign in "`*[]|":
        assert not re.search(rf"(?<!\\)(?:\\\\)*{re.escape(sign)}", shown)


@given(st.text(alphabet="<>/tabledr \n&;=\"'scriptx1", max_size=80))
def test_rebuilt_tables_are_balanced_and_hold_nothing_else(source):
    rebuilt = safe_table(f"<table><tr><td>{source}")
    tags = re.findall(r"<(/?)([^ >]*)[^>]*>", rebuilt)
    stack = []
    for closing, name in tags:
        assert name in {"table", "thead", "tbody", "tfoot", "tr", "td", "th"}
        if closing:
            assert stack.pop() == name
        else:
            stack.append(name)
    assert not stack
    assert "\n" not in rebuilt


@given(
    st.lists(
        st.lists(
            st.tuples(st.floats(0, 1), st.floats(0, 0.3)).map(lambda p: Cell(p[0], p[0] + p[1], "x")),
            min_size=1,
            max_size=4,
        ),
        max_size=6,
    )
)
def test_pipe_tables_lose_no_cell(rows):
    table = pipe_table(rows)
    if table:
        assert table.count("x") == sum(len(row) for row in rows)
        assert len({text.count("|") for text in table.splitlines()}) == 1
