"""PDFs: what they hold, and what is said of those that cannot be read."""

from __future__ import annotations

import pytest

from docferry.errors import InputError, UnreadableImage
from docferry_cloud.documents.files import FileKind, count_pages, kind_of
from docferry_cloud.documents.pdf import read_page
from tests.cloud.documents import files


def test_pages_are_counted_and_the_kind_is_seen_by_content() -> None:
    assert kind_of(files.pdf()) is FileKind.PDF
    assert kind_of(b"\n\n" + files.pdf()) is FileKind.PDF
    assert count_pages(files.pdf(3)) == 3


def test_a_born_digital_page_gives_its_words_and_rules() -> None:
    page = read_page(files.pdf(), 0)
    assert page.layer is not None
    words = {word.text: word.box for word in page.layer.words}
    x0, y0, x1, y1 = words["Walnuts"]
    assert x0 == pytest.approx(80, abs=1)
    assert y0 < 842 - 536 < y1
    assert 30 < x1 - x0 < 60
    assert sum(rule[2] - rule[0] > 400 for rule in page.layer.rules) >= 5


def test_a_turned_page_is_given_as_it_is_shown() -> None:
    page = read_page(files.pdf(turned=90), 0)
    assert page.layer is not None
    assert page.layer.width > page.layer.height
    heading = next(word for word in page.layer.words if word.text == "Harvest")
    # The page's top is on the right now, its left side on top, and its text runs down.
    assert heading.box[3] - heading.box[1] > 2 * (heading.box[2] - heading.box[0])
    assert heading.box[0] > 0.8 * page.layer.width


def test_a_locked_pdf_says_so() -> None:
    with pytest.raises(InputError, match="locked by a password"):
        count_pages(files.pdf(password="secret"), "letter.pdf")


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.4 garbage", files.pdf()[:200]])
def test_a_damaged_pdf_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableImage, match="damaged"):
        count_pages(data, "letter.pdf")


def test_a_page_that_is_not_there_says_so() -> None:
    with pytest.raises(UnreadableImage, match="page 3"):
        read_page(files.pdf(2), 2)
