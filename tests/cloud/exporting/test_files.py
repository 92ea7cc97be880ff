"""Workbooks and searchable PDFs."""

from __future__ import annotations

import io

import cv2
import numpy as np
import openpyxl
import pypdfium2 as pdfium
import pytest

from docferry.document import Document, Field, Line, Page, Region, RegionType
from docferry.errors import InputError, PixelsUnavailable
from docferry.tables import Cell, Grid, to_html
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.wire import document_to_proto
from docferry_cloud.engine import PageInput
from docferry_cloud.exporting.export import export
from docferry_cloud.exporting.searchable_pdf import searchable_pdf
from docferry_cloud.exporting.workbook import workbook

FORMAT = pb.ExportRequest.Format
ROWS = [["Item", "No.", "Price"], ["nuts", "007", "1.50"], ["figs", "=2+3", "2.25"], ["Total", "", "4.00"]]


def page(*texts: str) -> Page:
    lines = tuple(
        Line(f"r1.l{n}", text, ((0.1, y), (0.6, y), (0.6, y + 0.03), (0.1, y + 0.03)), 1.0)
        for n, text in enumerate(texts)
        for y in [0.1 + 0.05 * n]
    )
    table = Grid(tuple(Cell(y, x, text, header=y == 0) for y, row in enumerate(ROWS) for x, text in enumerate(row)))
    return Page(
        600,
        800,
        (
            Region("r1", RegionType.TEXT, (0.1, 0.1, 0.9, 0.3), 0, lines=lines),
            Region("r2", RegionType.TABLE, (0.1, 0.5, 0.9, 0.9), 1, html=to_html(table)),
        ),
    )


DOCUMENT = Document((page("Harvest report", "收成报告"),), (Field("total", "RM 4.00", "4.00", 0.9),))
PICTURE = cv2.imencode(".png", np.full((800, 600, 3), 255, dtype=np.uint8))[1].tobytes()


def analysis() -> analysis_pb2.Analysis:
    content = analysis_pb2.Interpretation(document=document_to_proto(DOCUMENT), markdown="# Harvest report\n")
    return analysis_pb2.Analysis(
        file_name="a.png",
        state=analysis_pb2.Analysis.STATE_SUCCEEDED,
        versions=[analysis_pb2.Version(version=1, engine="pipeline", interpretation=content)],
    )


def test_a_workbook_has_numbers_as_numbers_and_text_as_text() -> None:
    book = openpyxl.load_workbook(io.BytesIO(workbook(DOCUMENT)))
    sheet = book.worksheets[0]
    assert [[cell.value for cell in row] for row in sheet.iter_rows()] == [
        ["Item", "No.", "Price"],
        ["nuts", "007", 1.5],
        ["figs", "=2+3", 2.25],
        ["Total", None, 4],
    ]
    # Text, no formula.
    assert sheet["B3"].data_type == "s"
    assert sheet["C2"].number_format == "0.00"
    assert [cell.value for cell in book["Fields"][2]] == ["total", "RM 4.00", 4, 0.9]


def test_a_workbook_marks_a_total_that_does_not_add_up_and_leaves_it() -> None:
    sheet = openpyxl.load_workbook(io.BytesIO(workbook(DOCUMENT))).worksheets[0]
    assert sheet["C4"].value == 4
    assert "3.75" in sheet["C4"].comment.text


def test_a_document_without_tables_still_makes_a_workbook() -> None:
    assert openpyxl.load_workbook(io.BytesIO(workbook(Document(())))).sheetnames == ["Fields"]


def test_a_searchable_pdf_looks_like_the_picture_and_gives_its_text() -> None:
    with pdfium.PdfDocument(searchable_pdf([(DOCUMENT.pages[0], PICTURE)] * 2)) as document:
        assert len(document) == 2
        textpage = document[0].get_textpage()
        text = textpage.get_text_range()
        assert "Harvest report" in text
        assert "收成报告" in text
        # Where the line was read: 0.1 to 0.6 of 631.5 points across.
        left, _, right, _ = textpage.get_charbox(0) if textpage.count_rects() == 0 else textpage.get_rect(0)
        assert left == pytest.approx(63, abs=6)
        assert right == pytest.approx(379, abs=12)
        assert document[0].render(scale=0.5).to_numpy().min() == 255


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        (FORMAT.FORMAT_MARKDOWN, b"# Harvest"),
        (FORMAT.FORMAT_JSON, b"{"),
        (FORMAT.FORMAT_CSV, b'\xef\xbb\xbf"Item","No."'),
        (FORMAT.FORMAT_XLSX, b"PK"),
        (FORMAT.FORMAT_HTML, b"<!doctype html>"),
        (FORMAT.FORMAT_PDF, b"%PDF-"),
        (FORMAT.FORMAT_CONTENT_LIST, b"["),
        (FORMAT.FORMAT_HOCR, b"<?xml"),
        (FORMAT.FORMAT_ALTO, b"<?xml"),
    ],
)
def test_every_format_gives_its_file(kind: pb.ExportRequest.Format.ValueType, start: bytes) -> None:
    assert export(analysis(), 0, kind, [PageInput(image=PICTURE)]).data.startswith(start)


def test_without_pixels_html_stands_on_a_blank_page_and_a_pdf_is_refused() -> None:
    assert b"<img" not in export(analysis(), 0, FORMAT.FORMAT_HTML, [PageInput()]).data
    with pytest.raises(PixelsUnavailable, match="page 1"):
        export(analysis(), 0, FORMAT.FORMAT_PDF, [PageInput()])


def test_a_version_or_a_format_that_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match="no version 9"):
        export(analysis(), 9, FORMAT.FORMAT_JSON, [])
    with pytest.raises(InputError, match="format"):
        export(analysis(), 0, FORMAT.FORMAT_UNSPECIFIED, [])
