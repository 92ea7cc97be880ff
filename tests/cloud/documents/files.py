"""Files made in tests: PDFs by reportlab, Office files by their libraries."""

from __future__ import annotations

import io

import docx
import openpyxl
import pptx
import pypdfium2 as pdfium
from reportlab.lib import pagesizes, pdfencrypt
from reportlab.pdfgen.canvas import Canvas

ROWS = [["Item", "Count", "Price"], ["Walnuts", "12", "3.50"], ["Almonds", "7", "4.25"], ["Raisins", "31", "2.80"]]


def pdf(pages: int = 1, *, table: bool = True, password: str = "", turned: int = 0) -> bytes:
    """A born-digital PDF: a heading, a paragraph, a ruled table."""
    out = io.BytesIO()
    lock = pdfencrypt.StandardEncryption(password) if password else None
    canvas = Canvas(out, pagesize=pagesizes.A4, encrypt=lock)
    for number in range(pages):
        canvas.setFont("Helvetica-Bold", 18)
        canvas.drawString(72, 760, f"Harvest report {number + 1}")
        canvas.setFont("Helvetica", 11)
        for line in range(6):
            canvas.drawString(72, 720 - 14 * line, "The harvest of this year was weighed and counted by the miller.")
        if table:
            _table(canvas)
        canvas.showPage()
    canvas.save()
    if not turned:
        return out.getvalue()
    document = pdfium.PdfDocument(out.getvalue())
    for page in document:
        page.set_rotation(turned)
    again = io.BytesIO()
    document.save(again)
    document.close()
    return again.getvalue()


def _table(canvas: Canvas) -> None:
    for y, row in enumerate(ROWS):
        for x, text in enumerate(row):
            canvas.drawString(80 + 150 * x, 560 - 24 * y, text)
    for y in range(len(ROWS) + 1):
        canvas.line(72, 577 - 24 * y, 522, 577 - 24 * y)
    for x in range(4):
        canvas.line(72 + 150 * x, 577, 72 + 150 * x, 577 - 24 * len(ROWS))


def word() -> bytes:
    document = docx.Document()
    document.add_heading("Harvest report", 1)
    document.add_paragraph("The harvest was weighed.")
    document.add_paragraph("dry it", style="List Bullet")
    table = document.add_table(rows=len(ROWS), cols=3)
    for y, row in enumerate(ROWS):
        for x, text in enumerate(row):
            table.cell(y, x).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    return _saved(document)


def slides() -> bytes:
    presentation = pptx.Presentation()
    for number in range(2):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number + 1}"
        slide.placeholders[1].text = "First point\nSecond point"
    return _saved(presentation)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Harvest"
    for row in ROWS:
        sheet.append([float(text) if text[0].isdigit() else text for text in row])
    book.create_sheet("Empty")
    return _saved(book)


def _saved(file: object) -> bytes:
    out = io.BytesIO()
    file.save(out)  # type: ignore[attr-defined]
    return out.getvalue()
