"""PDF files: opened, counted, and taken apart page by page, never held as pictures of more than one page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from docferry.document import Box
from docferry.errors import ImageTooLarge, InputError, UnreadableImage
from docferry.vision.images import Pixels
from docferry_cloud.documents.pdf_probe import MEMORY, SECONDS_A_PAGE, heavy_page
from docferry_cloud.documents.text_layer import TextLayer, text_layer

DPI = 200
"""Pages are drawn at this resolution, ..."""

LONG_SIDE = 3500
"""... but no larger than this in pixels."""

MOST_PAGES = 2000

_POINTS = 72
_SCAN = 0.7
"""A page that one picture covers this much of is a scan; text on it is somebody else's reading of the picture."""

_UNMAPPED = 0.05
_LEAST_PICTURE = 0.02

# PDFium keeps global state and must never be called from two threads at once (its own documentation).
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class PdfPage:
    """One page.

    Attributes:
        layer: Its own text and rules; None for a scan, and where the text cannot be trusted.
        image: The page drawn, `(height, width, 3)`, BGR.
        pictures: Pictures on a page with a text layer that may hold print of their own; in pixels of `image`.
        scale: Pixels for a point.
    """

    layer: TextLayer | None
    image: Pixels
    pictures: tuple[Box, ...]
    scale: float


def page_count(data: bytes, name: str) -> int:
    """How many pages a PDF has.

    Raises:
        InputError: It is locked by a password.
        UnreadableImage: It is damaged or has no page.
        ImageTooLarge: It has more than `MOST_PAGES` pages, or one that costs more to open than `pdf_probe` allows.
    """
    with _opened(data, name) as document:
        count = len(document)
    if not count:
        raise UnreadableImage(f"{name}: the PDF has no pages", remedy="save it again from where it came from")
    if count > MOST_PAGES:
        raise ImageTooLarge(
            f"{name}: {count} pages, and at most {MOST_PAGES} are read", remedy="split it into several documents"
        )
    heavy = heavy_page(data)
    if heavy is not None:
        raise ImageTooLarge(
            f"{name}: page {heavy.page + 1} holds drawings within drawings that take more than {SECONDS_A_PAGE} s "
            f"or {MEMORY >> 20} MiB to open",
            remedy="print the page to a new PDF, or send it as a picture",
        )
    return count


def read_page(data: bytes, number: int, name: str = "the file") -> PdfPage:
    """Draw one page and take its text and rules.

    Args:
        number: From 0.

    Raises:
        InputError: The PDF is locked by a password.
        UnreadableImage: It is damaged, or has no such page.
    """
    with _opened(data, name) as document:
        try:
            page = document[number]
        except (IndexError, pdfium.PdfiumError) as error:
            raise UnreadableImage(
                f"{name}: page {number + 1} of the PDF cannot be read", remedy="save the PDF again"
            ) from error
        layer = text_layer(page)
        scale = min(DPI / _POINTS, LONG_SIDE / max(layer.width, layer.height, 1.0))
        image = np.ascontiguousarray(page.render(scale=scale).to_numpy()[:, :, :3])
        page.close()
    whole = layer.width * layer.height
    scanned = any(_area(box) > _SCAN * whole for box in layer.pictures)
    if scanned or not layer.words or layer.unmapped > _UNMAPPED:
        return PdfPage(None, image, (), scale)
    pictures = tuple(
        (box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale)
        for box in layer.pictures
        if _area(box) > _LEAST_PICTURE * whole
    )
    return PdfPage(layer, image, pictures, scale)


@contextmanager
def _opened(data: bytes, name: str) -> Iterator[pdfium.PdfDocument]:
    with _LOCK:
        try:
            document = pdfium.PdfDocument(data)
        except pdfium.PdfiumError as error:
            raise _refusal(error, name) from error
        try:
            yield document
        finally:
            document.close()


def _refusal(error: pdfium.PdfiumError, name: str) -> InputError:
    if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
        return InputError(
            f"{name}: the PDF is locked by a password", remedy="save it without a password, then send it again"
        )
    return UnreadableImage(f"{name}: the PDF is damaged or cut short", remedy="copy or save the file again", file=name)


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
