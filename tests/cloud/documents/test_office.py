"""Office and HTML files in the document tree."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from docferry.document import Page, RegionType
from docferry.errors import InputError, UnreadableImage
from docferry.tables import from_html
from docferry_cloud.documents.files import FileKind, count_pages, kind_of
from docferry_cloud.documents.office import read_office
from tests.cloud.documents import files


def texts(page: Page, kind: RegionType) -> list[str]:
    return [line.text for region in page.regions if region.type is kind for line in region.lines]


def tables(page: Page) -> list[list[list[str]]]:
    return [from_html(region.html).texts() for region in page.regions if region.html]


def test_a_word_document_keeps_headings_lists_and_merged_cells() -> None:
    assert kind_of(files.word()) is FileKind.DOCX
    page = read_office(files.word(), "docx", 0)
    assert texts(page, RegionType.TITLE) == ["Harvest report"]
    assert texts(page, RegionType.LIST_ITEM) == ["dry it"]
    (table,) = tables(page)
    assert table[1][0] == table[2][0] == "Walnuts Almonds"
    assert table[3] == files.ROWS[3]


def test_every_slide_is_a_page_with_its_title_first() -> None:
    assert count_pages(files.slides()) == 2
    page = read_office(files.slides(), "pptx", 1)
    assert page.regions[0].type is RegionType.TITLE
    assert [line.text for line in page.lines] == ["Slide 2", "First point", "Second point"]


def test_every_sheet_is_a_page_with_a_table() -> None:
    assert count_pages(files.workbook()) == 2
    (table,) = tables(read_office(files.workbook(), "xlsx", 0))
    assert table[1] == ["Walnuts", "12", "3.5"]
    assert tables(read_office(files.workbook(), "xlsx", 1)) == []


def test_html_gives_what_is_shown_and_no_script() -> None:
    source = (
        b"<!doctype html><html><head><title>x</title></head><body><h1>Harvest</h1><script>evil()</script>"
        b"<p>It was <b>good</b>.</p><ul><li>dry it</li></ul><table><tr><td>a</td><td>b</td></tr></table></body></html>"
    )
    assert kind_of(source) is FileKind.HTML
    page = read_office(source, "html", 0)
    assert texts(page, RegionType.TITLE) == ["Harvest"]
    assert texts(page, RegionType.TEXT) == ["It was good."]
    assert texts(page, RegionType.LIST_ITEM) == ["dry it"]
    assert tables(page) == [[["a", "b"]]]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_as_html_give_a_page_or_a_clear_error(data: bytes) -> None:
    try:
        page = read_office(b"<html><body>" + data, "html", 0)
    except UnreadableImage:
        return
    assert all(0 <= side <= 1 for region in page.regions for side in region.box)


@pytest.mark.parametrize("data", [b"PK\x03\x04 cut", files.word()[:500]])
def test_a_damaged_office_file_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableImage, match="damaged"):
        kind_of(data, "a.docx")


def test_an_old_or_locked_office_file_says_what_to_do() -> None:
    with pytest.raises(InputError, match="password or older"):
        kind_of(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "a.doc")
