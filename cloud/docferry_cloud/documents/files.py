"""What kind of file was sent, and how many pages it has."""

from __future__ import annotations

import enum
import io
import zipfile

from docferry.errors import InputError, UnreadableImage
from docferry.vision.images import page_count as picture_pages
from docferry_cloud.documents import pdf


class FileKind(enum.StrEnum):
    """The kinds of files that become documents; PICTURE is whatever else, for the image reader to judge."""

    PICTURE = "picture"
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    HTML = "html"


_OFFICE = {"word/": FileKind.DOCX, "ppt/": FileKind.PPTX, "xl/": FileKind.XLSX}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def kind_of(data: bytes, name: str = "the file") -> FileKind:
    """The kind by the file's first bytes; its name says nothing.

    Raises:
        InputError: An Office file that is locked by a password, or in the format from before 2007.
        UnreadableImage: A ZIP archive that is no Office file, or is damaged.
    """
    # The PDF standard wants the header in the first 1024 bytes, not at the start.
    if b"%PDF-" in data[:1024]:
        return FileKind.PDF
    if data.startswith(b"PK\x03\x04"):
        return _office(data, name)
    if data.startswith(_OLE):
        raise InputError(
            f"{name}: an Office file that is locked by a password or older than 2007",
            remedy="save it as .docx, .pptx, .xlsx or PDF without a password",
        )
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<table")):
        return FileKind.HTML
    return FileKind.PICTURE


def count_pages(data: bytes, name: str = "the file") -> int:
    """How many pages a file has: sheets of a workbook, slides, pages of a PDF or TIFF; 1 for anything that flows.

    Raises:
        InputError: It is locked.
        UnreadableImage: It cannot be read.
        ImageTooLarge: It has too many pages.
    """
    from docferry_cloud.documents import office

    match kind_of(data, name):
        case FileKind.PICTURE:
            return picture_pages(data, name=name)
        case FileKind.PDF:
            return pdf.page_count(data, name)
        case kind:
            return office.page_count(data, kind.value, name)


def _office(data: bytes, name: str) -> FileKind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise UnreadableImage(f"{name}: the file is damaged or cut short", remedy="copy it again") from error
    for prefix, kind in _OFFICE.items():
        if any(entry.startswith(prefix) for entry in names):
            return kind
    raise UnreadableImage(
        f"{name}: a ZIP archive that is no Word, PowerPoint or Excel file", remedy="send the files in it one by one"
    )
