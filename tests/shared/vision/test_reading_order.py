from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Line, Quality, RegionType
from docferry.reading_order import LayoutBox, arrange, assemble_page, cleaned


def box_polygon(x0, y0, x1, y1):
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def line(text, x0, y0, x1, y1):
    return Line("", text, box_polygon(x0, y0, x1, y1), 0.9, provenance="test")


def texts(page):
    return [found.text for found in page.lines]


def test_a_receipt_reads_row_by_row_though_nothing_was_found_on_it():
    lines = [
        line("4.50", 0.8, 0.22, 0.9, 0.24),
        line("TEA", 0.1, 0.22, 0.3, 0.24),
        line("SHOP", 0.3, 0.10, 0.7, 0.13),
        line("COFFEE", 0.1, 0.25, 0.4, 0.27),
        line("9.00", 0.8, 0.251, 0.9, 0.271),
        line("CAKE", 0.1, 0.28, 0.3, 0.30),
        line("2.00", 0.8, 0.279, 0.9, 0.299),
        line("TOTAL", 0.1, 0.31, 0.35, 0.33),
        line("15.50", 0.78, 0.312, 0.9, 0.332),
    ]
    page = assemble_page(600, 1000, (), lines)
    assert texts(page) == ["SHOP", "TEA", "4.50", "COFFEE", "9.00", "CAKE", "2.00", "TOTAL", "15.50"]


def test_rows_follow_the_slant_of_the_text():
    # Turned by about five degrees: the right end of each row lies lower than the left end of the next.
    lines = [
        Line("", f"{row}{side}", ((x, y), (x + w, y + w / 10), (x + w, y + w / 10 + 0.02), (x, y + 0.02)), 0.9)
        for row in range(5)
        for side, x, w in (("a", 0.05, 0.1 + 0.05 * row), ("b", 0.7, 0.1))
        for y in [0.2 + row * 0.03 + x * 0.1]
    ]
    page = assemble_page(1000, 1000, (), lines[::-1])
    assert texts(page) == [f"{row}{side}" for row in range(5) for side in "ab"]


def columns(count=6):
    left = [line(f"L{i}", 0.08, 0.2 + i * 0.03, 0.46, 0.22 + i * 0.03) for i in range(count)]
    right = [line(f"R{i}", 0.54, 0.2 + i * 0.03, 0.92, 0.22 + i * 0.03) for i in range(count)]
    return left, right


@pytest.mark.parametrize("with_layout", [True, False])
def test_two_columns_read_one_after_the_other(with_layout):
    left, right = columns()
    title = line("TITLE", 0.2, 0.1, 0.8, 0.14)
    footer = line("FOOT", 0.2, 0.9, 0.8, 0.92)
    layout = (
        LayoutBox(RegionType.TEXT, (0.52, 0.19, 0.94, 0.40), 0.9),
        LayoutBox(RegionType.TITLE, (0.18, 0.09, 0.82, 0.15), 0.9),
        LayoutBox(RegionType.TEXT, (0.06, 0.19, 0.48, 0.40), 0.9),
    )
    shuffled = [footer, *[x for pair in zip(right, left, strict=True) for x in pair], title]
    page = assemble_page(1000, 1400, layout if with_layout else (), shuffled)
    assert texts(page) == ["TITLE", *[x.text for x in left], *[x.text for x in right], "FOOT"]


def test_a_heading_across_the_page_parts_the_columns_above_from_those_below():
    layout = [
        LayoutBox(RegionType.TEXT, (0.05, 0.1, 0.45, 0.3), 0.9),
        LayoutBox(RegionType.TEXT, (0.55, 0.1, 0.95, 0.32), 0.9),
        LayoutBox(RegionType.TITLE, (0.05, 0.4, 0.95, 0.45), 0.9),
        LayoutBox(RegionType.TEXT, (0.05, 0.5, 0.45, 0.8), 0.9),
        LayoutBox(RegionType.TEXT, (0.55, 0.48, 0.95, 0.7), 0.9),
    ]
    assert [block.box for block in arrange(1000, 1400, layout[::-1], [])] == [box.box for box in layout]


def test_names_and_prices_are_rows_and_not_columns():
    rows = [(f"item {i}", f"{i}.00") for i in range(8)]
    lines = [line(name, 0.1, 0.1 + i * 0.03, 0.3 + 0.02 * i, 0.12 + i * 0.03) for i, (name, _) in enumerate(rows)]
    lines += [line(price, 0.8, 0.1 + i * 0.03, 0.88, 0.12 + i * 0.03) for i, (_, price) in enumerate(rows)]
    assert texts(assemble_page(800, 1600, (), lines)) == [part for row in rows for part in row]


def test_lines_no_box_holds_stand_where_they_belong():
    layout = (LayoutBox(RegionType.TABLE, (0.1, 0.4, 0.9, 0.6), 0.95),)
    lines = [
        line("below", 0.1, 0.65, 0.5, 0.67),
        line("cell", 0.2, 0.45, 0.4, 0.47),
        line("above", 0.1, 0.3, 0.5, 0.32),
    ]
    page = assemble_page(1000, 1000, layout, lines)
    assert texts(page) == ["above", "cell", "below"]
    assert [region.type for region in page.regions] == [RegionType.TEXT, RegionType.TABLE, RegionType.TEXT]
    assert [region.score for region in page.regions] == [0, 0.95, 0]


def test_a_line_drawn_larger_than_its_small_box_still_belongs_to_it():
    number = LayoutBox(RegionType.PAGE_NUMBER, (0.47, 0.95, 0.53, 0.965), 0.9)
    page = assemble_page(1000, 1000, (number,), [line("156", 0.45, 0.94, 0.55, 0.975)])
    assert [(region.type, len(region.lines)) for region in page.regions] == [(RegionType.PAGE_NUMBER, 1)]


def test_a_figure_full_of_text_is_no_figure():
    layout = (
        LayoutBox(RegionType.IMAGE, (0.0, 0.0, 1.0, 1.0), 0.8),
        LayoutBox(RegionType.IMAGE_CAPTION, (0.1, 0.1, 0.5, 0.2), 0.6),
    )
    lines = [line(str(i), 0.1, 0.1 + i * 0.1, 0.9, 0.16 + i * 0.1) for i in range(8)]
    page = assemble_page(500, 1000, layout, lines)
    assert {region.type for region in page.regions} == {RegionType.TEXT}
    assert texts(page) == [str(i) for i in range(8)]


def test_a_figure_with_a_few_labels_stays_one():
    layout = (LayoutBox(RegionType.IMAGE, (0.1, 0.1, 0.9, 0.6), 0.8),)
    page = assemble_page(1000, 1000, layout, [line("axis", 0.2, 0.5, 0.3, 0.52)])
    assert [(region.type, len(region.lines)) for region in page.regions] == [(RegionType.IMAGE, 1)]


def test_a_caption_needs_something_to_caption():
    caption = LayoutBox(RegionType.TABLE_CAPTION, (0.1, 0.1, 0.9, 0.15), 0.8)
    table = LayoutBox(RegionType.TABLE, (0.1, 0.2, 0.9, 0.5), 0.9)
    assert [block.type for block in arrange(100, 100, (caption,), [])] == [RegionType.TEXT]
    assert [block.type for block in arrange(100, 100, (caption, table), [])] == [
        RegionType.TABLE_CAPTION,
        RegionType.TABLE,
    ]


def test_of_two_boxes_for_the_same_place_the_better_stays():
    good = LayoutBox(RegionType.TABLE, (0.1, 0.1, 0.9, 0.5), 0.9)
    worse = LayoutBox(RegionType.TEXT, (0.1, 0.12, 0.9, 0.48), 0.8)
    apart = LayoutBox(RegionType.TEXT, (0.1, 0.6, 0.9, 0.8), 0.5)
    assert cleaned((worse, apart, good)) == (good, apart)


def test_a_table_keeps_its_place_though_its_cells_score_better():
    table = LayoutBox(RegionType.TABLE, (0.1, 0.1, 0.9, 0.5), 0.6)
    cell = LayoutBox(RegionType.TEXT, (0.2, 0.2, 0.5, 0.3), 0.9)
    assert cleaned((table, cell)) == (table,)


def test_ids_orders_and_quality_are_filled_in():
    quality = Quality(sharpness=5)
    page = assemble_page(100, 100, (), [line("b", 0, 0.5, 1, 0.55), line("a", 0, 0, 1, 0.05)], quality, provenance="p")
    assert [(region.id, region.order) for region in page.regions] == [("r1", 0), ("r2", 1)]
    assert [found.id for found in page.lines] == ["r1.l1", "r2.l1"]
    assert page.quality == quality
    assert (page.width, page.height) == (100, 100)


def test_a_page_without_lines_and_boxes_is_empty():
    assert assemble_page(10, 10, (), []).regions == ()


SHARE = st.floats(0, 1, allow_nan=False, width=32)
POINT = st.tuples(SHARE, SHARE)
POLYGONS = st.lists(st.tuples(POINT, POINT, POINT, POINT), max_size=40)


@st.composite
def layout_boxes(draw):
    (x0, y0), (x1, y1) = draw(POINT), draw(POINT)
    return LayoutBox(
        draw(st.sampled_from(RegionType)), (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), draw(SHARE)
    )


@given(st.lists(layout_boxes(), max_size=15), POLYGONS, st.integers(1, 4000), st.integers(1, 4000))
def test_no_line_is_ever_lost_or_doubled(layout, polygons, width, height):
    blocks = arrange(width, height, layout, polygons)
    assert sorted(index for block in blocks for index in block.members) == list(range(len(polygons)))
    for block in blocks:
        x0, y0, x1, y1 = block.box
        assert 0 <= x0 <= x1 <= 1
        assert 0 <= y0 <= y1 <= 1


@given(st.permutations(range(12)), st.booleans())
def test_the_order_lines_come_in_does_not_matter(order, with_layout):
    left, right = columns()
    lines = left + right
    layout = (LayoutBox(RegionType.TEXT, (0.06, 0.19, 0.48, 0.40), 0.9),) if with_layout else ()
    expected = assemble_page(1000, 1400, layout, lines)
    assert assemble_page(1000, 1400, layout, [replace(lines[i], id=str(i)) for i in order]) == expected


def test_a_great_many_blocks_are_ordered_all_the_same():
    layout = [LayoutBox(RegionType.TEXT, (0.1, i / 300, 0.9, (i + 0.5) / 300), 0.9) for i in range(300)]
    assert [block.box for block in arrange(1000, 9000, layout[::-1], [])] == [box.box for box in layout]
