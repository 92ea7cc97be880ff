"""Keys and values of forms."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.fields.pairs import form_fields


def form(*pieces: tuple[str, float, float]) -> Document:
    """Lines of print 20 pixels high on a page of 1000 by 1000: text, left edge, top edge, in pixels."""
    lines = tuple(
        Line(
            f"r1.l{n}",
            text,
            (
                (left / 1000, top / 1000),
                ((left + 10 * len(text)) / 1000, top / 1000),
                ((left + 10 * len(text)) / 1000, (top + 20) / 1000),
                (left / 1000, (top + 20) / 1000),
            ),
            0.9,
        )
        for n, (text, left, top) in enumerate(pieces)
    )
    return Document((Page(1000, 1000, (Region("r1", RegionType.TEXT, (0.0, 0.0, 1.0, 1.0), 0, lines=lines),)),))


def pairs(document: Document) -> dict[str, str]:
    return {field.name: field.value for field in form_fields(document)}


def test_a_value_stands_behind_its_key_beside_it_or_below_it() -> None:
    made = form(
        ("Date: 3 May 1991", 50, 50),
        ("Name:", 50, 100),
        ("J. Miller", 180, 100),
        ("Comments:", 50, 150),
        ("All is well.", 50, 175),
    )
    assert pairs(made) == {"Date": "3 May 1991", "Name": "J. Miller", "Comments": "All is well."}


def test_several_keys_share_a_line() -> None:
    assert pairs(form(("Phone: 555 0100 Fax: 555 0101", 50, 50), ("Date: 3 May", 50, 90)))["Fax"] == "555 0101"


def test_a_key_without_a_value_gives_no_pair() -> None:
    assert pairs(form(("Name:", 50, 100), ("Date:", 50, 400), ("Title: Clerk", 50, 700))) == {"Title": "Clerk"}


def test_times_and_addresses_on_the_web_are_no_keys() -> None:
    assert pairs(form(("Open from 9:30 to 12:15", 50, 50), ("see http://example.org", 50, 90))) == {}


def test_running_text_is_no_form() -> None:
    text = "It was said: the harvest of that year was better than the one before it, and so on."
    assert form_fields(form(*((text, 50.0, 50.0 + 25 * n) for n in range(6)))) == ()


@given(st.lists(st.text(max_size=30), max_size=8))
def test_any_lines_give_pairs_or_none(texts: list[str]) -> None:
    for field in form_fields(form(*((text, 50.0, 40.0 * n) for n, text in enumerate(texts)))):
        assert field.value
        assert 0 <= field.confidence <= 1
