"""What becomes of the network's answer: widths, dashes, and whose script it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.vision.recogniser import has_cjk, tidy, unstroked


@pytest.mark.parametrize(
    ("read", "meant"),
    [
        ("一", "–"),
        ("一 Competence.", "– Competence."),
        ("Page 12 一 14", "Page 12 – 14"),
        ("A 二 3", "A = 3"),
        ("a一b：c", "a–b:c"),
    ],
)
def test_on_a_latin_page_strokes_are_dashes(read: str, meant: str) -> None:
    assert unstroked(tidy(read)) == meant


@pytest.mark.parametrize("read", ["第一章", "一月", "二〇二六年", "一 총계"])
def test_a_line_with_other_chinese_or_korean_letters_keeps_its_strokes(read: str) -> None:
    assert unstroked(tidy(read)) == tidy(read)


@pytest.mark.parametrize(("text", "expected"), [("一", False), ("三 二", False), ("一月", True), ("TOTAL 9.00", False)])
def test_strokes_alone_make_no_chinese_page(text: str, expected: bool) -> None:
    assert has_cjk(text) is expected


@given(st.text(st.characters(max_codepoint=0x24F), max_size=40))
def test_latin_text_is_never_changed(text: str) -> None:
    assert unstroked(tidy(text)) == tidy(text)
