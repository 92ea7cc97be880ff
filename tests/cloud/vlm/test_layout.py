import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.document import RegionType
from docferry_cloud.vlm.layout import MOST_BLOCKS, parse_layout

GOOD = (
    "<|box_start|>050 040 950 100<|box_end|><|ref_start|>title<|ref_end|><|rotate_up|>\n"
    "<|box_start|>050 120 950 300<|box_end|><|ref_start|>text<|ref_end|><|rotate_right|>txt_contd_tgt\n"
    "<|box_start|>050 320 950 700<|box_end|><|ref_start|>table<|ref_end|><|rotate_up|>\n"
    "<|box_start|>950 800 050 720<|box_end|><|ref_start|>Equation<|ref_end|><|rotate_up|>"
)


def block(box="050 040 950 100", kind="text", tail="<|rotate_up|>"):
    return f"<|box_start|>{box}<|box_end|><|ref_start|>{kind}<|ref_end|>{tail}\n"


def test_blocks_come_in_reading_order_with_type_turn_and_continuation():
    layout = parse_layout(GOOD)
    assert [(each.type, each.angle, each.joins) for each in layout.blocks] == [
        (RegionType.TITLE, 0, False),
        (RegionType.TEXT, 90, True),
        (RegionType.TABLE, 0, False),
        (RegionType.EQUATION, 0, False),
    ]
    # Corners that were swapped are put right.
    assert layout.blocks[3].box == (0.05, 0.72, 0.95, 0.8)
    assert layout.marks == ()


def test_it_reads_what_the_models_own_library_reads():
    theirs = pytest.importorskip("mineru_vl_utils.mineru_client")
    helper = theirs.MinerUClientHelper.__new__(theirs.MinerUClientHelper)
    blocks = helper.parse_layout_output(GOOD)
    ours = parse_layout(GOOD).blocks
    assert [(tuple(each.bbox), each.angle) for each in blocks] == [(each.box, each.angle) for each in ours]


@pytest.mark.parametrize(
    ("answer", "code", "blocks"),
    [
        ("", "LAYOUT_MALFORMED", 0),
        ("050 040 950 100 title", "LAYOUT_MALFORMED", 0),
        ("I cannot see a page.", "LAYOUT_MALFORMED", 0),
        (block("050 040 950"), "LAYOUT_MALFORMED", 0),
        (block("050 040 050 040"), "LAYOUT_MALFORMED", 0),
        (block("1 2 3 x"), "LAYOUT_MALFORMED", 0),
        (block() + "<|box_start|>100 2", "CUT", 1),
        (block() + "<|box_start|>100 200 300 400<|box_end|><|ref_st", "CUT", 1),
        ("".join(block(f"0 {n} 9 {n + 1}") for n in range(MOST_BLOCKS + 50)), "LOOP", MOST_BLOCKS),
    ],
)
def test_what_cannot_be_read_is_said(answer, code, blocks):
    layout = parse_layout(answer)
    assert len(layout.blocks) == blocks
    assert code in {mark.code for mark in layout.marks}


def test_missing_special_tokens_are_told_from_an_empty_page():
    (mark,) = parse_layout("050 040 950 100 title\n050 120 950 300 text").marks
    assert "--special" in mark.detail


def test_a_box_that_leaves_the_page_and_a_type_nobody_knows_are_kept_and_marked():
    # A type with markup in it breaks the block's form: it is said, and none of it becomes a type.
    broken = parse_layout(block("050 040 1950 100", "<b>hero"))
    assert (broken.blocks, [mark.code for mark in broken.marks]) == ((), ["CUT"])
    (other,) = parse_layout(block("050 040 1950 100", "hero")).blocks
    assert other.box == (0.05, 0.04, 1.0, 0.1)
    assert other.type is RegionType.UNKNOWN
    assert [mark.code for mark in other.marks] == ["BOX_CLIPPED", "TYPE_UNKNOWN"]


def test_the_same_block_twice_is_one_and_text_in_a_table_is_the_tables():
    answer = block() + block() + block("0 200 1000 800", "table") + block("100 300 200 400")
    assert [each.type for each in parse_layout(answer).blocks] == [RegionType.TEXT, RegionType.TABLE]


PIECES = st.sampled_from(
    [
        "<|box_start|>",
        "<|box_end|>",
        "<|ref_start|>",
        "<|ref_end|>",
        "<|rotate_up|>",
        "<|rotate_left|>",
        "050 040 950 100",
        "999999999999 0 1 2",
        "-1 4 5 6",
        "title",
        "table",
        "<script>",
        "\n",
        "txt_contd_tgt",
        "٠٥٠ ٠٤٠ ٩٥٠ ١٠٠",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join))
def test_any_answer_gives_blocks_within_the_page_or_says_why_not(answer):
    layout = parse_layout(answer)
    for each in layout.blocks:
        x0, y0, x1, y1 = each.box
        assert 0 <= x0 < x1 <= 1
        assert 0 <= y0 < y1 <= 1
        assert each.angle in {0, 90, 180, 270}
    containers = any(name in answer.lower() for name in ("list", "image_block", "equation_block", "inline_formula"))
    assert layout.blocks or layout.marks or containers


@settings(deadline=None)
@given(st.integers(0, len(GOOD)))
def test_an_answer_cut_anywhere_keeps_its_whole_blocks_and_says_that_it_broke_off(at):
    layout = parse_layout(GOOD[:at])
    whole = parse_layout(GOOD).blocks
    assert [each.box for each in layout.blocks] == [each.box for each in whole[: len(layout.blocks)]]
    begun = GOOD[:at].count("<|box_start|>")
    assert len(layout.blocks) == begun or any(mark.code == "CUT" for mark in layout.marks)
