"""The program of a PDF's process: PDFium looks at a stranger's file here, where it can do no more than end.

The ceilings are the system's: memory by RLIMIT_AS, the time for a page by a timer whose signal nobody handles, so that
it ends the process even inside PDFium. Nothing is told of a page that runs into one; whoever waits sees the end.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from docferry_cloud.documents.pdf_wire import AT_PAGE, COUNT, DAMAGED, HEAD, LOCKED, NO_PAGE, frame
from docferry_cloud.documents.text_layer import text_layer

_IN, _OUT = 0, 1
_POINTS = 72
_FIRST_TO_GO = "500"
"""When the kernel must kill something, it is to be this process and not the service."""


def main() -> None:
    """Take a file, then answer one question after the other until nobody asks any more."""
    limits = json.loads(sys.argv[1])
    # The service alone decides when this process ends: a signal to all of its processes would look like a bad file.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    _, data = _received(None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    memory = limits["memory"] + 2 * len(data)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        _serve(data, limits)
    except MemoryError:
        # As if the system had done it: the ceiling has the same end everywhere.
        os.kill(os.getpid(), signal.SIGKILL)


def _serve(data: bytes, limits: dict[str, Any]) -> None:
    document: pdfium.PdfDocument | None = None
    while True:
        asked, _ = _received(limits["idle_s"])
        # The trailer and the tree of pages may be as hostile as any page.
        signal.setitimer(signal.ITIMER_PROF, limits["seconds_a_page"])
        try:
            document = document or pdfium.PdfDocument(data)
            if asked["what"] == COUNT:
                _count(document, limits)
            else:
                _read(document, asked)
        except pdfium.PdfiumError as error:
            locked = getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD
            _send({"error": LOCKED if locked else DAMAGED})
        signal.setitimer(signal.ITIMER_PROF, 0)


def _count(document: pdfium.PdfDocument, limits: dict[str, Any]) -> None:
    count = len(document)
    opened = min(count, limits["most_pages"])
    # One allowance for all: thousands of pages may be the same costly one.
    signal.setitimer(signal.ITIMER_PROF, limits["seconds_a_page"] + opened * limits["seconds_to_open"])
    for number in range(opened):
        _send({AT_PAGE: number})
        try:
            document[number].close()
        except pdfium.PdfiumError:
            # Whoever reads the page says what is wrong with it.
            continue
    _send({"pages": count})


def _read(document: pdfium.PdfDocument, asked: dict[str, Any]) -> None:
    try:
        page = document[asked["page"]]
    except (IndexError, pdfium.PdfiumError):
        _send({"error": NO_PAGE})
        return
    layer = text_layer(page)
    scale = min(asked["dpi"] / _POINTS, asked["long_side"] / max(layer.width, layer.height, 1.0))
    bitmap = page.render(scale=scale)
    head = {
        "layer": asdict(layer),
        "scale": scale,
        "width": bitmap.width,
        "height": bitmap.height,
        "stride": bitmap.stride,
        "channels": bitmap.n_channels,
        "last": asked["page"] == len(document) - 1,
    }
    pixels = ctypes.string_at(bitmap.buffer, bitmap.stride * bitmap.height)
    bitmap.close()
    page.close()
    _send(head, pixels)


def _received(idle_s: float | None) -> tuple[dict[str, Any], bytes]:
    """The next frame; ends the process when the other end has hung up, or asks nothing for `idle_s`."""
    if not select.select([_IN], [], [], idle_s)[0]:
        os._exit(0)
    head, body = HEAD.unpack(_exactly(HEAD.size))
    return json.loads(_exactly(head)), _exactly(body)


def _exactly(size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = os.read(_IN, min(size, 1 << 20))
        if not piece:
            os._exit(0)
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _send(head: dict[str, Any], body: bytes = b"") -> None:
    for piece in frame(head, body):
        view = memoryview(piece)
        while view:
            view = view[os.write(_OUT, view) :]
