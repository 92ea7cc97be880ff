"""Programs in the place of a PDF's process that do what a hostile file may make of it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from docferry_cloud.documents.pdf_wire import AT_PAGE, HEAD, frame


def _told(*pieces: bytes | memoryview) -> None:
    for piece in pieces:
        os.write(1, piece)


def crash() -> None:
    ctypes.string_at(0)


def hang() -> None:
    signal.pause()


def spin() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0.2)
    while True:
        pass


def counting() -> None:
    number = 0
    while True:
        _told(*frame({AT_PAGE: number}, b""))
        number += 1


def silent() -> None:
    _told(*frame({}, b""))


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def flood() -> None:
    _told(HEAD.pack(0xFFFFFFFF, 0xFFFFFFFF))


def garbage() -> None:
    _told(HEAD.pack(4, 0), b"\xff\xfe{]")


def lie() -> None:
    # More pixels than there are.
    layer = {"width": 1, "height": 1, "words": [], "rules": [], "pictures": [], "unmapped": 0}
    size = {"width": 4000, "height": 4000, "stride": 12000, "channels": 3}
    _told(*frame({"layer": layer, "scale": 1.0, "last": True, **size}, b"abc"))


def fault() -> None:
    sys.exit(3)
