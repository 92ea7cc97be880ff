"""Open every page of a PDF in a process of its own, and let that one die of what would kill the service.

A form that is drawn by a form that is drawn by a form costs a PDF of two kilobytes many gigabytes and hours inside
PDFium, where nothing can be interrupted. Here it costs a small process with ceilings that the system enforces.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

SECONDS_A_PAGE = 10
"""CPU time that opening one page may take."""

SECONDS = 300
"""CPU time and wall time that opening all pages may take."""

MEMORY = 1 << 30
"""Address space in bytes, beside the file itself, that opening a page may take."""


@dataclass(frozen=True, slots=True)
class Heavy:
    """The page, from 0, that could not be opened within the ceilings."""

    page: int


def heavy_page(data: bytes) -> Heavy | None:
    """The first page that costs more to open than any page of a document does; None where all are harmless.

    A page that cannot be read for other reasons is harmless: whoever reads it says what is wrong.
    """
    # -I: neither the folder we were started in nor anybody's environment has a say in what is imported.
    command = [sys.executable, "-I", "-c", _CHILD, str(SECONDS_A_PAGE), str(SECONDS), str(MEMORY + 2 * len(data))]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        return Heavy(_last(late.stdout or b""))
    # An exception of the child is our own fault; a signal is a ceiling that the file ran into.
    if done.returncode > 0:
        raise RuntimeError(f"the PDF probe failed: {done.stderr.decode(errors='replace')[-500:]}")
    return Heavy(_last(done.stdout)) if done.returncode < 0 else None


def _last(told: bytes) -> int:
    return max(0, told.count(b"\n") - 1)


_CHILD = """
import os, resource, signal, sys
import pypdfium2
a_page, whole, memory = map(int, sys.argv[1:])
data = sys.stdin.buffer.read()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
try:
    document = pypdfium2.PdfDocument(data)
    for number in range(len(document)):
        os.write(1, b"%d\\n" % number)
        # Nobody handles the signal, so it ends the process even inside PDFium.
        signal.setitimer(signal.ITIMER_PROF, a_page)
        try:
            document[number].close()
        except pypdfium2.PdfiumError:
            pass
except pypdfium2.PdfiumError:
    pass
except MemoryError:
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(0)
"""
