"""Documents as text files."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import hypothesis.strategies as st
import pytest
from hypothesis import given

from docferry.document import Box, Document, Field, Line, Page, Region, RegionType
from docferry.exports import content_list, html_page, tables_csv
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
