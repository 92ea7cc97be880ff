"""One version of an analysis as a file, in the format asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docferry import report
from docferry.document import Document
from docferry.errors import InputError, PixelsUnavailable
from docferry.exports import alto, content_list, hocr, html_page, tables_csv
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.wire import document_from_proto
from docferry_cloud.engine import PageInput
from docferry_cloud.exporting.pictures import page_picture
from docferry_cloud.exporting.searchable_pdf import searchable_pdf
from docferry_cloud.exporting.workbook import workbook

_FORMAT = pb.ExportRequest.Format


@dataclass(frozen=True, slots=True)
class File:
    """A file's bytes and their MIME type."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class _Source:
    analysis: analysis_pb2.Analysis
    document: Document
    markdown: str
    pages: Sequence[PageInput]


def export(
    analysis: analysis_pb2.Analysis, version: int, kind: pb.ExportRequest.Format.ValueType, pages: Sequence[PageInput]
) -> File:
    """Make the file.

    Args:
        analysis: With the content of its versions.
        version: Which one; 0 for the newest.
        kind: The format.
        pages: What reached the cloud about each page, for formats that show it.

    Raises:
        InputError: No such format or version.
        PixelsUnavailable: The format needs pictures of pages that are not here.
    """
    make = _MAKERS.get(kind)
    if make is None:
        raise InputError("the format is not said, or this release has none like it", remedy="give one", field="format")
    chosen = next((one for one in reversed(analysis.versions) if version in {0, one.version}), None)
    if chosen is None:
        raise InputError(
            f"the analysis has no version {version}" if version else "the analysis has no answer yet",
            remedy="ask for 0, the newest, once it has finished",
            field="version",
        )
    alone = analysis_pb2.Analysis()
    alone.CopyFrom(analysis)
    del alone.versions[:]
    alone.versions.append(chosen)
    content = chosen.interpretation
    return make(_Source(alone, document_from_proto(content.document), content.markdown, pages))


def shows_pages(kind: pb.ExportRequest.Format.ValueType) -> bool:
    """Whether a format needs what reached the cloud of the pages; the others are made of the answer alone."""
    return kind in {_FORMAT.FORMAT_HTML, _FORMAT.FORMAT_PDF}


def _markdown(source: _Source) -> File:
    return File(source.markdown.encode(), "text/markdown; charset=utf-8")


def _json(source: _Source) -> File:
    tree = report.analysis("", source.analysis)
    return File((json.dumps(tree, ensure_ascii=False, indent=1) + "\n").encode(), "application/json")


def _content_list(source: _Source) -> File:
    items = content_list(source.document)
    return File((json.dumps(items, ensure_ascii=False, indent=1) + "\n").encode(), "application/json")


def _hocr(source: _Source) -> File:
    return File(hocr(source.document, title=source.analysis.file_name).encode(), "text/vnd.hocr+html; charset=utf-8")


def _alto(source: _Source) -> File:
    return File(alto(source.document, title=source.analysis.file_name).encode(), "application/xml; charset=utf-8")


def _csv(source: _Source) -> File:
    # With a byte order mark: without one Excel takes UTF-8 for the machine's old code page.
    return File(b"\xef\xbb\xbf" + tables_csv(source.document).encode(), "text/csv; charset=utf-8")


def _xlsx(source: _Source) -> File:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    return File(workbook(source.document), kind)


def _html(source: _Source) -> File:
    pictures: list[bytes | None] = []
    for number, (given, read) in enumerate(zip(source.pages, source.document.pages, strict=False)):
        try:
            pictures.append(page_picture(given, read, number))
        except PixelsUnavailable:
            # Text on a blank page is what viewers show of a page whose pixels never left the device.
            pictures.append(None)
    text = html_page(source.document, pictures, title=source.analysis.file_name)
    return File(text.encode(), "text/html; charset=utf-8")


def _pdf(source: _Source) -> File:
    if len(source.pages) < len(source.document.pages):
        raise PixelsUnavailable(
            "there are no pictures of the document's pages", remedy="export another format: md, json, csv, xlsx, html"
        )
    numbered = enumerate(zip(source.pages, source.document.pages, strict=False))
    pages = ((read, page_picture(given, read, number)) for number, (given, read) in numbered)
    return File(searchable_pdf(pages, title=source.analysis.file_name), "application/pdf")


_MAKERS: dict[int, Callable[[_Source], File]] = {
    _FORMAT.FORMAT_MARKDOWN: _markdown,
    _FORMAT.FORMAT_JSON: _json,
    _FORMAT.FORMAT_CSV: _csv,
    _FORMAT.FORMAT_XLSX: _xlsx,
    _FORMAT.FORMAT_HTML: _html,
    _FORMAT.FORMAT_PDF: _pdf,
    _FORMAT.FORMAT_CONTENT_LIST: _content_list,
    _FORMAT.FORMAT_HOCR: _hocr,
    _FORMAT.FORMAT_ALTO: _alto,
}
