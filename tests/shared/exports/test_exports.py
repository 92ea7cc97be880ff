"""Documents as text files."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from docferry.document import Box, Document, Field, Line, Page, Region, RegionType
from docferry.exports import alto, content_list, hocr, html_page, tables_csv
from docferry.exports.csv_tables import harmless
from docferry.tables import Cell, Grid, to_html


def region(name: str, kind: RegionType, box: Box, *texts: str, html: str | None = None) -> Region:
    lines = tuple(
        Line(f"{name}.l{n}", text, ((box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])), 1.0)
        for n, text in enumerate(texts)
    )
    return Region(name, kind, box, 0, lines=lines, html=html)


TABLE = to_html(
    Grid(
        (
            Cell(0, 0, "Item", header=True),
            Cell(0, 1, "Price", header=True),
            Cell(1, 0, "=1+2"),
            Cell(1, 1, "-3.50"),
        )
    )
)
DOCUMENT = Document(
    (
        Page(
            1000,
            1400,
            (
                region("r1", RegionType.TITLE, (0.1, 0.05, 0.9, 0.1), "Harvest <report>"),
                region("r2", RegionType.TABLE_CAPTION, (0.1, 0.2, 0.9, 0.22), "Table 1"),
                region("r3", RegionType.TABLE, (0.1, 0.25, 0.9, 0.5), "Item Price", html=TABLE),
                region("r4", RegionType.LIST_ITEM, (0.1, 0.6, 0.9, 0.62), "dry it"),
                region("r5", RegionType.LIST_ITEM, (0.1, 0.63, 0.9, 0.65), "store it"),
                region("r6", RegionType.PAGE_NUMBER, (0.5, 0.95, 0.52, 0.97), "7"),
            ),
        ),
    ),
    (Field("total", "RM 9.00", "9.00", 0.98),),
)


def test_csv_has_names_and_rows_and_runs_nothing() -> None:
    rows = list(csv.reader(io.StringIO(tables_csv(DOCUMENT))))
    assert rows == [["Item", "Price"], ["'=1+2", "-3.50"]]


def test_the_values_of_a_chart_are_a_table_too() -> None:
    chart = region("r7", RegionType.CHART, (0.1, 0.1, 0.9, 0.9), "x", html=TABLE)
    page = Page(1000, 1400, (chart, *DOCUMENT.pages[0].regions))
    rows = list(csv.reader(io.StringIO(tables_csv(Document((page,))))))
    assert rows == [["Item", "Price"], ["'=1+2", "-3.50"], [], ["Item", "Price"], ["'=1+2", "-3.50"]]
    assert content_list(Document((page,)))[0]["content"].startswith("<table>")
    assert html_page(Document((page,)), [b""], title="a.jpg").count("-3.50</td>") == 2


@pytest.mark.parametrize("text", ["=A1", "+x", "@SUM(A1)", "-cmd|' /C calc'!A0", "\tx"])
def test_what_a_spreadsheet_would_run_is_made_harmless(text: str) -> None:
    assert harmless(text).startswith("'")


@pytest.mark.parametrize("text", ["-3.50", "+7", "−2", "plain", ""])
def test_numbers_and_text_stay_as_they_are(text: str) -> None:
    assert harmless(text) == text


def test_a_content_list_is_flat_with_captions_inside_and_lists_joined() -> None:
    items = content_list(DOCUMENT)
    assert [item["type"] for item in items] == ["text", "table", "list", "page_number"]
    assert items[0]["text_level"] == 1
    assert items[1]["table_caption"] == ["Table 1"]
    assert items[1]["table_body"].startswith("<table>")
    assert items[2]["list_items"] == ["dry it", "store it"]
    assert items[2]["bbox"] == [100, 600, 900, 650]
    assert {item["page_idx"] for item in items} == {0}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(st.text(max_size=30))
def test_html_shows_any_text_and_runs_none(text: str) -> None:
    page = Page(1000, 1400, (region("r1", RegionType.TEXT, (0.1, 0.1, 0.9, 0.2), f"<script>{text}</script>"),))
    parser = _Tags()
    parser.feed(html_page(Document((page,)), title=text))
    assert "script" not in parser.tags


def test_html_lays_text_over_the_picture_and_lists_fields_and_tables() -> None:
    made = html_page(DOCUMENT, [b"\xff\xd8jpeg"], title="a.jpg")
    assert 'class="picture"' in made
    assert "data:image/jpeg;base64,/9hqcGVn" in made
    assert "Harvest &lt;report&gt;" in made
    assert "<td>RM 9.00</td>" in made
    assert "http" not in made.replace("http-equiv", "")


XHTML, ALTO = "{http://www.w3.org/1999/xhtml}", "{http://www.loc.gov/standards/alto/ns-v4#}"


def test_hocr_says_of_every_line_and_word_where_it_is_and_how_sure() -> None:
    tree = ET.fromstring(hocr(DOCUMENT, title="a&b.jpg"))
    by_class = {
        kind: [one for one in tree.iter() if one.get("class") == kind]
        for kind in ("ocr_page", "ocr_section", "ocr_table", "ocr_line", "ocrx_word", "ocr_pageno")
    }
    assert [page.get("title") for page in by_class["ocr_page"]] == ["bbox 0 0 1000 1400; ppageno 0"]
    (heading,) = by_class["ocr_section"]
    assert heading.get("title") == "bbox 100 70 900 140"
    assert "".join(heading.itertext()).split() == ["Harvest", "<report>"]
    first = by_class["ocrx_word"][0]
    assert (first.text, first.get("title")) == ("Harvest", "bbox 100 70 450 140; x_wconf 100")
    assert len(by_class["ocr_line"]) == 6
    assert tree.findtext(f"{XHTML}head/{XHTML}title") == "a&b.jpg"


def test_alto_has_blocks_lines_and_strings_with_their_places() -> None:
    tree = ET.fromstring(alto(DOCUMENT, title="a&b.jpg"))
    blocks = tree.findall(f".//{ALTO}TextBlock")
    assert [block.get("TAGREFS") for block in blocks[:3]] == ["type_title", "type_table_caption", "type_table"]
    labels = {tag.get("ID"): tag.get("LABEL") for tag in tree.iter(f"{ALTO}LayoutTag")}
    assert all(labels[block.get("TAGREFS")] for block in blocks)
    strings = [string.get("CONTENT") for string in blocks[0].iter(f"{ALTO}String")]
    assert strings == ["Harvest", "<report>"]
    line = blocks[0].find(f"{ALTO}TextLine")
    assert line is not None
    assert [line.get(side) for side in ("HPOS", "VPOS", "WIDTH", "HEIGHT")] == ["100", "70", "800", "70"]


@settings(deadline=None)
@given(st.text(max_size=30), st.text(max_size=10))
def test_any_text_gives_well_formed_hocr_and_alto(text: str, title: str) -> None:
    page = Page(1000, 1400, (region("r1", RegionType.IMAGE, (0.1, 0.1, 0.9, 0.2), text),))
    for made in (hocr, alto):
        ET.fromstring(made(Document((page,)), title=title).encode())
