"""Pages as pictures with invisible text over them: a PDF that looks as the paper and can be searched."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable

from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.pdfgen.textobject import PDFTextObject

from docferry.document import Line, Page

_LONG_SIDE = 842.0
"""Points of a page's long side, A4: how large the paper was, nobody knows."""

_INVISIBLE = 3
# Fonts that every viewer has or stands in for: nothing is embedded, and invisible text needs no glyphs.
_LATIN = "Helvetica"
_CJK = "STSong-Light"


def searchable_pdf(pages: Iterable[tuple[Page, bytes]], *, title: str = "") -> bytes:
    """The file's bytes; pages are taken one at a time.

    Args:
        pages: Each page with its picture, JPEG or PNG, upright, in the page's proportions.
        title: For the document's properties.
    """
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=1, invariant=1)
    canvas.setTitle(title)
    canvas.setCreator("Docferry")
    for page, picture in pages:
        longest = max(page.width, page.height, 1)
        width, height = _LONG_SIDE * page.width / longest, _LONG_SIDE * page.height / longest
        canvas.setPageSize((width, height))
        canvas.drawImage(ImageReader(io.BytesIO(picture)), 0, 0, width, height)
        for line in page.lines:
            _write(canvas, line, width, height)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def _write(canvas: Canvas, line: Line, width: float, height: float) -> None:
    """One line of invisible text, turned and stretched to cover the print."""
    text = line.text.strip()
    corners = [(x * width, (1 - y) * height) for x, y in line.polygon]
    (left, _), (right, _), _, (low_left, low_y) = corners[0], corners[1], corners[2], corners[3]
    along = math.dist(corners[0], corners[1])
    high = math.dist(corners[0], corners[3])
    if not text or along <= 0 or high <= 0:
        return
    font = _font(text)
    size = 0.8 * high
    natural = pdfmetrics.stringWidth(text, font, size)
    if natural <= 0:
        return
    angle = math.atan2(corners[1][1] - corners[0][1], right - left)
    written: PDFTextObject = canvas.beginText()
    written.setTextRenderMode(_INVISIBLE)
    written.setFont(font, size)
    written.setHorizScale(100 * along / natural)
    cosine, sine = math.cos(angle), math.sin(angle)
    # The baseline lies a fifth of the line's height above its lower edge.
    x, y = low_left - 0.2 * high * sine, low_y + 0.2 * high * cosine
    written.setTextTransform(cosine, sine, -sine, cosine, x, y)
    written.textOut(text)
    canvas.drawText(written)


def _font(text: str) -> str:
    """Helvetica where its encoding has every letter, else a font for Chinese, Japanese and the rest of Unicode."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        if _CJK not in pdfmetrics.getRegisteredFontNames():
            pdfmetrics.registerFont(UnicodeCIDFont(_CJK))
        return _CJK
    return _LATIN
