import html
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.exports.html_page import html_page
from docferry.markdown import render
from docferry.tables import to_html
from docferry_cloud.vlm.answers import Reply, read_answer
from docferry_cloud.vlm.latex import parse_formula
from docferry_cloud.vlm.picture import markdown_table, parse_picture
from docferry_cloud.vlm.prompts import MANNERS, Ask
from docferry_cloud.vlm.repetition import find_loop, without_loop

LINE = ((0.1, 0.1), (0.9, 0.1), (0.9, 0.2), (0.1, 0.2))


def codes(content):
    return [mark.code for mark in content.marks]


def test_the_questions_are_those_of_the_training():
    assert {ask: manner.prompt for ask, manner in MANNERS.items()} == {
        Ask.LAYOUT: "\nLayout Detection:",
        Ask.TEXT: "\nText Recognition:",
        Ask.TABLE: "\nTable Recognition:",
        Ask.FORMULA: "\nFormula Recognition:",
        Ask.PICTURE: "\nImage Analysis:",
        Ask.FREE: "",
    }


@pytest.mark.parametrize(
    ("answer", "latex"),
    [
        (r"\[ E = mc^2 \]", "E = mc^2"),
        ("$$x$$", "x"),
        (r"\(a < b > c\)", r"a \lt b \gt c"),
        (r"\left( \frac{a}{b} \right)", r"\left( \frac{a}{b} \right)"),
        (r"\begin{array}{l} a \\ b \\ \end{array}", r"\begin{array}{l} a \\ b \\ \end{array}"),
        (r"50\% \$ \{x\}", r"50\% \$ \{x\}"),
        (r"\<img src=x>", r"\lt img src=x\gt"),
    ],
)
def test_a_formula_is_taken_out_of_its_frame(answer, latex):
    formula = parse_formula(answer)
    assert (formula.latex, formula.marks) == (latex, ())


@pytest.mark.parametrize(
    "answer",
    [
        r"\frac{a}{b",
        "a}",
        r"\left( a",
        r"a \right)",
        r"\begin{array} a",
        r"\begin{array} a \end{matrix}",
        r"\end{x}",
        r"\input{/etc/passwd}",
        r"\href{javascript:alert(1)}{x}",
        "a $ b",
        "a % b",
        "a\\",
        " ".join(map(str, range(5_000))),
        "",
        r"\[\]",
    ],
)
def test_what_is_no_formula_keeps_its_text_and_is_marked(answer):
    content = read_answer(Ask.FORMULA, Reply(answer))
    assert content.latex is None
    assert codes(content)
    assert "".join("".join(content.lines).split()) == "".join(answer.split())


def test_a_loop_is_found_and_its_piece_kept_once():
    text = "Total 9.00\n" + "row 1 2 3\n" * 30 + "row 1"
    loop = find_loop(text, finished=False)
    assert loop is not None
    assert loop.times == 30
    assert find_loop("Total 9.00 " + "." * 40, finished=True) is None
    kept = without_loop(text, loop)
    assert len(kept) < 25
    assert set(kept.split()) == set(text.split())


@settings(deadline=None)
@given(st.text("ab ", max_size=30), st.text("xyz", min_size=1, max_size=20), st.integers(60, 80))
def test_every_loop_long_enough_is_found(head, piece, times):
    loop = find_loop(head + piece * times, finished=True)
    assert loop is not None
    assert len(without_loop(head + piece * times, loop)) <= len(head) + len(piece)


def test_looking_for_loops_is_quick_whatever_the_text():
    began = time.process_time()
    for text in ("a" * 30_000 + "b", "ab" * 15_000, "".join(chr(97 + n * n % 26) for n in range(30_000))):
        find_loop(text, finished=False)
    assert time.process_time() - began < 2.0


def test_an_answer_that_broke_off_is_kept_and_marked():
    content = read_answer(Ask.TEXT, Reply("The quick brown", finished=False))
    assert content.lines == ("The quick brown",)
    assert codes(content) == ["CUT"]


def test_no_answer_is_a_state_and_no_empty_text():
    assert codes(read_answer(Ask.TEXT, Reply("<|im_end|>  "))) == ["EMPTY"]
    failed = read_answer(Ask.TEXT, Reply("", failure="the server answered 500"))
    assert (codes(failed), failed.score) == (["FAILED"], 0.0)


def test_more_text_than_fits_into_the_crop_is_marked():
    assert codes(read_answer(Ask.TEXT, Reply("x y z " * 30 + "end"), pixels=100 * 10)) == ["TOO_LONG"]
    assert codes(read_answer(Ask.TEXT, Reply("TOTAL 9.00"), pixels=100 * 20)) == []


def test_the_score_is_the_tokens_and_every_mark_lowers_it():
    sure = read_answer(Ask.TEXT, Reply("TOTAL 9.00", logprobs=(-0.1, -0.3)))
    assert sure.score == pytest.approx(0.8187, abs=1e-3)
    cut = read_answer(Ask.TEXT, Reply("TOTAL 9.00", finished=False, logprobs=(-0.1, -0.3)))
    assert cut.score == pytest.approx(sure.score / 2)
    assert read_answer(Ask.TEXT, Reply("x", logprobs=(float("nan"),))).score == 0.0


def test_a_chart_comes_as_its_table_and_a_picture_as_its_caption():
    chart = read_answer(
        Ask.PICTURE,
        Reply(
            "<|class_start|>chart<|class_end|><|sub_class_start|>bar<|sub_class_end|><|caption_start|>Sales"
            "<|caption_end|><|content_start|>| Year | Sales |\n|---|---|\n| 2024 | 7 \\| 8 |<|content_end|>"
        ),
    )
    assert chart.grid.texts() == [["Year", "Sales"], ["2024", "7 | 8"]]
    assert (chart.lines, chart.kind, chart.marks) == (("Sales",), "chart", ())
    assert parse_picture("A cat").caption == "A cat"
    assert [mark.code for mark in parse_picture("<|caption_start|>A ca").marks] == ["CUT"]
    formula = read_answer(
        Ask.PICTURE, Reply("<|class_start|>pure_formula<|class_end|><|content_start|>x^2<|content_end|>")
    )
    assert formula.latex == "x^2"


@pytest.mark.parametrize("text", ["", "|a|", "a\nb", "|a|b|\n|1|2|", "| a |\n--"])
def test_what_is_no_markdown_table_gives_no_cells(text):
    assert not markdown_table(text).cells


EVIL = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</td></table><b>",
        "[x](javascript:alert(1))",
        r"\href{javascript:x}{y}",
        "$$",
        "\\",
        "<fcel>",
        "<nl>",
        "<lcel>",
        "<|box_start|>",
        "<|content_start|>",
        "<|im_end|>",
        "\x00\x1b[31m",
        "\u202e",
        "|a|b|\n|-|-|",
        "&lt;script&gt;",
        "{",
        "}",
        "the same again ",
    ]
)


@pytest.mark.parametrize("ask", [Ask.TEXT, Ask.TABLE, Ask.FORMULA, Ask.PICTURE])
@settings(deadline=None)
@given(parts=st.lists(EVIL | st.text(max_size=8), max_size=12), times=st.integers(1, 40), finished=st.booleans())
def test_whatever_the_model_says_the_document_is_safe_and_says_what_is_amiss(ask, parts, times, finished):
    content = read_answer(ask, Reply("".join(parts) * times, finished=finished), 10_000)
    assert 0.0 <= content.score <= 1.0
    assert content.lines or content.grid.cells or content.latex or content.marks
    kind = {Ask.TABLE: RegionType.TABLE, Ask.FORMULA: RegionType.EQUATION}.get(ask, RegionType.TEXT)
    lines = tuple(Line(f"r1.l{n}", text, LINE, 0.9) for n, text in enumerate(content.lines))
    table = to_html(content.grid) or None
    region = Region("r1", kind, (0.1, 0.1, 0.9, 0.2), 0, lines=lines, html=table, latex=content.latex)
    document = Document((Page(100, 100, (region,)),))
    for shown in (render(document), html_page(document) if ask is not Ask.TEXT else ""):
        plain = shown.lower()
        assert "<script" not in plain
        assert "<img" not in plain
        assert "<b>" not in plain
    for text in (*content.lines, content.latex or "", html.unescape(table or "")):
        assert "\x00" not in text
        assert "\u202e" not in text
