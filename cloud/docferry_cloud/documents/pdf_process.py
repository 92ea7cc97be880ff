"""A PDF in a process of its own, which may die of it: PDFium is never called in the service.

A form that is drawn by a form that is drawn by a form costs a PDF of two kilobytes many gigabytes and hours inside
PDFium, where nothing can be interrupted, and a font or a picture may end it outright. Here that costs a small process
with ceilings that the system enforces, and the document fails with that reason.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from docferry.errors import ImageTooLarge, InputError, UnreadableImage
from docferry_cloud.documents.pdf_wire import AT_PAGE, COUNT, HEAD, LOCKED, NO_PAGE, READ, frame

_LARGEST_HEAD = 64 << 20
_LARGEST_BODY = 128 << 20
_OUT_OF_MEMORY = frozenset({signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGKILL})
"""How PDFium ends where it gets no memory, and how the system ends what took too much."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a PDF may cost.

    Attributes:
        seconds_a_page: CPU time for opening, taking apart and drawing one page.
        seconds_to_open: What each page adds to `seconds_a_page`, the CPU time for opening all of them once.
        patience_s: Wall time for either; a busy machine is not the file's fault.
        memory: Address space in bytes, beside the file itself.
        idle_s: How long a process stays for the next page.
        most_pages: No more are opened when they are counted.
    """

    seconds_a_page: float = 20.0
    seconds_to_open: float = 0.05
    patience_s: float = 300.0
    memory: int = 1 << 30
    idle_s: float = 20.0
    most_pages: int = 2000


class Gone(Exception):
    """The process had waited long enough, and had ended when it was asked."""


class PdfProcess:
    """One file in its process. For one thread at a time.

    Args:
        data: The file.
        name: What the errors call it.
        program: MODULE:FUNCTION to be run there; tests give others.
    """

    def __init__(
        self, data: bytes, name: str, limits: Limits, program: str = "docferry_cloud.documents.pdf_child:main"
    ) -> None:
        self._name, self._limits = name, limits
        told = json.dumps(asdict(limits))
        # -I: neither the folder we were started in nor anybody's environment has a say in what is imported.
        module, _, function = program.partition(":")
        places = [place for place in sys.path if place]
        start = f"import sys; sys.path[:] = {places!r}; from {module} import {function}; {function}()"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", start, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._send({}, data)

    def count(self) -> int:
        """How many pages the file has, after each of them has been opened once.

        Raises:
            InputError: It is locked by a password.
            UnreadableImage: It is damaged.
            ImageTooLarge: A page costs more to open than `Limits` allows.
            Gone: It had ended meanwhile.
        """
        self._send({"what": COUNT})
        page, until = 0, self._patience()
        while True:
            head, _ = self._received(page, until)
            try:
                if "pages" in head:
                    return int(head["pages"])
                page = int(head[AT_PAGE])
            except (KeyError, TypeError, ValueError):
                raise self._broken(page, "an answer that is none") from None

    def read(self, page: int, dpi: float, long_side: int) -> tuple[dict[str, Any], bytes]:
        """A page's text layer and pixels, as `pdf_child` sends them.

        Raises:
            InputError, UnreadableImage, ImageTooLarge, Gone: As `count`; or there is no such page.
        """
        self._send({"what": READ, "page": page, "dpi": dpi, "long_side": long_side})
        return self._received(page, self._patience())

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, head: dict[str, Any], body: bytes = b"") -> None:
        assert self._process.stdin is not None
        try:
            for piece in frame(head, body):
                view = memoryview(piece)
                while view:
                    view = view[self._process.stdin.write(view) :]
        except BrokenPipeError:
            # What ended it is found when its answer is waited for.
            return

    def _patience(self) -> float:
        return time.monotonic() + self._limits.patience_s

    def _received(self, page: int, until: float) -> tuple[dict[str, Any], bytes]:
        sizes = HEAD.unpack(self._exactly(HEAD.size, until, page))
        if sizes[0] > _LARGEST_HEAD or sizes[1] > _LARGEST_BODY:
            raise self._broken(page, "an answer of absurd size")
        try:
            head = json.loads(self._exactly(sizes[0], until, page))
        except ValueError:
            raise self._broken(page, "an answer that is none") from None
        body = self._exactly(sizes[1], until, page)
        if not isinstance(head, dict):
            raise self._broken(page, "an answer that is none")
        if "error" in head:
            raise self._refusal(head["error"], page)
        return head, body

    def _exactly(self, size: int, until: float, page: int) -> bytes:
        assert self._process.stdout is not None
        number = self._process.stdout.fileno()
        pieces: list[bytes] = []
        while size:
            if not select.select([number], [], [], max(0.0, until - time.monotonic()))[0]:
                self._process.kill()
                self._process.wait()
                raise self._too_much(page)
            piece = os.read(number, min(size, 1 << 20))
            if not piece:
                raise self._ended(page)
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _ended(self, page: int) -> Exception:
        code = self._process.wait()
        if code == 0:
            return Gone()
        if code > 0:
            # An exception there is our own fault, not the file's; it stands on standard error.
            return RuntimeError(f"the PDF's process ended with {code}")
        number = signal.Signals(-code)
        if number in _OUT_OF_MEMORY or number in {signal.SIGPROF, signal.SIGXCPU}:
            return self._too_much(page)
        return self._broken(page, number.name)

    def _too_much(self, page: int) -> ImageTooLarge:
        return ImageTooLarge(
            f"{self._name}: page {page + 1} takes more than {self._limits.seconds_a_page:g} s "
            f"or {self._limits.memory >> 20} MiB to open and draw",
            remedy="print the page to a new PDF, or send it as a picture",
        )

    def _broken(self, page: int, what: str) -> UnreadableImage:
        return UnreadableImage(
            f"{self._name}: page {page + 1} breaks the PDF reader ({what})",
            remedy="print the page to a new PDF, or send it as a picture",
            file=self._name,
        )

    def _refusal(self, error: object, page: int) -> InputError:
        if error == LOCKED:
            return InputError(
                f"{self._name}: the PDF is locked by a password",
                remedy="save it without a password, then send it again",
            )
        if error == NO_PAGE:
            return UnreadableImage(
                f"{self._name}: page {page + 1} of the PDF cannot be read", remedy="save the PDF again"
            )
        return UnreadableImage(
            f"{self._name}: the PDF is damaged or cut short", remedy="copy or save the file again", file=self._name
        )
