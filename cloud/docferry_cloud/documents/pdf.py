"""PDF files: opened, counted, and taken apart page by page, never held as pictures of more than one page."""

from __future__ import annotations

import atexit
import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from docferry.document import Box
from docferry.errors import ImageTooLarge, UnreadableImage
from docferry.vision.images import Pixels
from docferry_cloud.documents.pdf_layer import TextLayer, Word
from docferry_cloud.documents.pdf_process import Gone, Limits, PdfProcess

A = TypeVar("A")

DPI = 200
"""Pages are drawn at this resolution, ..."""

LONG_SIDE = 3500
"""... but no larger than this in pixels."""

_SCAN = 0.7
"""A page that one picture covers this much of is a scan; text on it is somebody else's reading of the picture."""

_MOST_IDLE = 2
"""Processes that wait for the next page of their file."""

_UNMAPPED = 0.05
_LEAST_PICTURE = 0.02


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


class PdfFiles:
    """PDF files in processes of their own, kept for the next page. Safe to use from several threads.

    Args:
        limits: What a file may cost.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._idle: dict[bytes, PdfProcess] = {}
        self._closed_at_exit = False

    def page_count(self, data: bytes, name: str = "the file") -> int:
        """How many pages a PDF has; each of them is opened once.

        Raises:
            InputError: It is locked by a password.
            UnreadableImage: It is damaged, has no page, or breaks the reader.
            ImageTooLarge: It has more pages, or they cost more to open, than `Limits` allows.
        """
        count = self._asked(data, name, PdfProcess.count, lambda _: False)
        if not count:
            raise UnreadableImage(f"{name}: the PDF has no pages", remedy="save it again from where it came from")
        most = self._limits.most_pages
        if count > most:
            raise ImageTooLarge(
                f"{name}: {count} pages, and at most {most} are read", remedy="split it into several documents"
            )
        return count

    def read_page(self, data: bytes, number: int, name: str = "the file") -> PdfPage:
        """Draw one page and take its text and rules.

        Args:
            number: From 0.

        Raises:
            InputError: The PDF is locked by a password.
            UnreadableImage: It is damaged, has no such page, or breaks the reader.
            ImageTooLarge: The page costs more than `Limits` allows.
        """
        head, pixels = self._asked(
            data, name, lambda process: process.read(number, DPI, LONG_SIDE), lambda answer: bool(answer[0].get("last"))
        )
        return _page(head, pixels, number, name)

    def close(self) -> None:
        """End the processes that wait for a next page."""
        with self._lock:
            idle, self._idle = list(self._idle.values()), {}
        for process in idle:
            process.close()

    def _asked(self, data: bytes, name: str, ask: Callable[[PdfProcess], A], done: Callable[[A], bool]) -> A:
        """An answer about a file; its process is kept unless it is done with the file."""
        key = hashlib.sha256(data).digest()
        with self._lock:
            kept = self._idle.pop(key, None)
        if kept is not None:
            try:
                return self._answer(key, kept, ask, done)
            except Gone:
                # It ended for want of questions: the file is opened again.
                pass
        return self._answer(key, PdfProcess(data, name, self._limits), ask, done)

    def _answer(self, key: bytes, process: PdfProcess, ask: Callable[[PdfProcess], A], done: Callable[[A], bool]) -> A:
        try:
            answer = ask(process)
        except BaseException:
            process.close()
            raise
        if done(answer):
            process.close()
        else:
            self._keep(key, process)
        return answer

    def _keep(self, key: bytes, process: PdfProcess) -> None:
        with self._lock:
            if not self._closed_at_exit:
                self._closed_at_exit = True
                # They would notice by themselves that nobody is left to ask: this only saves them the wait.
                atexit.register(self.close)
            over = [self._idle.pop(key, None)]
            self._idle[key] = process
            if len(self._idle) > _MOST_IDLE:
                over.append(self._idle.pop(next(iter(self._idle))))
        for one in over:
            if one is not None:
                one.close()


_FILES = PdfFiles()
"""Of this process: so that what several threads read is bounded together."""


def page_count(data: bytes, name: str) -> int:
    """As `PdfFiles.page_count`, with the usual limits."""
    return _FILES.page_count(data, name)


def read_page(data: bytes, number: int, name: str = "the file") -> PdfPage:
    """As `PdfFiles.read_page`, with the usual limits."""
    return _FILES.read_page(data, number, name)


def _page(head: dict[str, Any], pixels: bytes, number: int, name: str) -> PdfPage:
    """A page from what its process says, which is believed no further than it fits together."""
    try:
        layer, scale = _layer(head["layer"]), float(head["scale"])
        width, height, stride, channels = (int(head[key]) for key in ("width", "height", "stride", "channels"))
        rows = np.frombuffer(pixels, dtype=np.uint8).reshape(height, stride)
        shown = rows[:, : width * channels].reshape(height, width, channels)[:, :, :3]
        image = np.ascontiguousarray(shown.reshape(height, width, 3))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableImage(
            f"{name}: page {number + 1} breaks the PDF reader (an answer that is none)",
            remedy="print the page to a new PDF, or send it as a picture",
            file=name,
        ) from error
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


def _layer(tree: dict[str, Any]) -> TextLayer:
    return TextLayer(
        width=float(tree["width"]),
        height=float(tree["height"]),
        words=tuple(Word(str(word["text"]), _box(word["box"])) for word in tree["words"]),
        rules=tuple(_box(rule) for rule in tree["rules"]),
        pictures=tuple(_box(picture) for picture in tree["pictures"]),
        unmapped=float(tree["unmapped"]),
    )


def _box(sides: Sequence[Any]) -> Box:
    x0, y0, x1, y1 = (float(side) for side in sides)
    return x0, y0, x1, y1


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
