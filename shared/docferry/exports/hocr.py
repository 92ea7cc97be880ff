"""A document as hOCR: HTML whose classes and titles say what is what, where it is and how sure it is."""

from __future__ import annotations

from docferry.document import Document, Page, Region, RegionType
from docferry.exports.words import Place, place, sure, words, xml

_CLASSES = {
    RegionType.TITLE: "ocr_section",
    RegionType.HEADER: "ocr_header",
    RegionType.FOOTER: "ocr_footer",
    RegionType.PAGE_NUMBER: "ocr_pageno",
    RegionType.TABLE: "ocr_table",
    RegionType.IMAGE: "ocr_image",
    RegionType.CHART: "ocr_image",
    RegionType.EQUATION: "ocr_display",
    RegionType.TABLE_CAPTION: "ocr_caption",
    RegionType.IMAGE_CAPTION: "ocr_caption",
}
"""Everything else is an area with text."""


def hocr(document: Document, *, title: str = "") -> str:
    """One XHTML file, every page an element of class `ocr_page`, in reading order.

    Args:
        title: Usually the file's name.
    """
    kinds = ("ocr_page", "ocr_carea", "ocr_line", "ocrx_word", *_CLASSES.values())
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\n'
        '<html xmlns="http://www.w3.org/1999/xhtml"><head>'
        f'<title>{xml(title or "Document")}</title><meta charset="utf-8"/><meta name="ocr-system" content="docferry"/>'
        f'<meta name="ocr-capabilities" content="{" ".join(dict.fromkeys(kinds))}"/></head><body>\n'
    )
    pages = (_page(page, number) for number, page in enumerate(document.pages, 1))
    return head + "".join(pages) + "</body></html>\n"


def _page(page: Page, number: int) -> str:
    name = f"page_{number}"
    areas = "".join(_area(page, region, name) for region in page.regions)
    whole = _title((0, 0, page.width, page.height), f"ppageno {number - 1}")
    return f'<div class="ocr_page" id="{name}" title="{whole}">\n{areas}</div>\n'


def _area(page: Page, region: Region, page_name: str) -> str:
    name = f"{page_name}_{xml(region.id)}"
    lines = "".join(
        f'<span class="ocr_line" id="{page_name}_{xml(line.id)}" title="{_title(place(page, line.box))}">'
        + " ".join(
            f'<span class="ocrx_word" title="{_title(word.place, f"x_wconf {round(100 * sure(line))}")}">'
            f"{xml(word.text)}</span>"
            for word in words(page, line)
        )
        + "</span>\n"
        for line in region.lines
    )
    kind = _CLASSES.get(region.type, "ocr_carea")
    return f'<div class="{kind}" id="{name}" title="{_title(place(page, region.box))}">\n{lines}</div>\n'


def _title(box: Place, *more: str) -> str:
    return "; ".join([f"bbox {box[0]} {box[1]} {box[2]} {box[3]}", *more])
