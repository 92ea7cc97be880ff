"""The readers that are compared, each in a process of its own: ours, stock RapidOCR, and Tesseract if installed."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.stock_rapidocr import INTERPRETER
from docferry.errors import ConfigurationError, EngineError, Unavailable
from docferry_edge.calibrating.matching import TextLine

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Answer:
    """What one reader made of one page.

    Attributes:
        lines: In the picture's pixels.
        full_ms: From the file's bytes to the whole reading.
        cpu_s: CPU time of the reader's process.
        layout_ms, hint_ms: Until the layout boxes, and the line boxes too, were known; None for readers without hints.
    """

    lines: tuple[TextLine, ...]
    full_ms: float
    cpu_s: float
    layout_ms: float | None = None
    hint_ms: float | None = None


class PageReader(Protocol):
    """A running reader."""

    start_ms: float

    def read(self, path: Path) -> Answer:
        """Read one picture."""
        ...

    def peak_mb(self) -> float:
        """The most memory it has had so far, in MiB."""
        ...


class Worker:
    """A reader that answers paths on stdin with JSON lines."""

    def __init__(self, process: subprocess.Popen[str], start_ms: float) -> None:
        self._process = process
        self.start_ms = start_ms

    def read(self, path: Path) -> Answer:
        """Read one picture.

        Raises:
            EngineError: The reader died or failed on the page.
        """
        before = _cpu_seconds(self._process.pid)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path.resolve()}\n")
        self._process.stdin.flush()
        tree = _next(self._process)
        if "error" in tree:
            raise EngineError(f"{path}: {tree['error']}")
        return Answer(
            lines=tuple((tuple((x, y) for x, y in line["polygon"]), line["text"]) for line in tree["lines"]),
            full_ms=tree["full_ms"] if "full_ms" in tree else tree["ms"],
            cpu_s=_cpu_seconds(self._process.pid) - before,
            layout_ms=tree.get("layout_ms"),
            hint_ms=tree.get("hint_ms"),
        )

    def parts(self, path: Path) -> dict[str, float]:
        """What the parts of our hint take alone, in milliseconds; asked after `read`, so that no page is seen twice."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"parts {path.resolve()}\n")
        self._process.stdin.flush()
        parts: dict[str, float] = _next(self._process)["parts_ms"]
        return parts

    def peak_mb(self) -> float:
        """Peak resident memory, from the kernel's books."""
        return _peak_mb(self._process.pid)


class Tesseract:
    """Tesseract as a command, one process a page; its start is part of every page's time."""

    start_ms = 0.0

    def __init__(self) -> None:
        self._peak_mb = 0.0

    def read(self, path: Path) -> Answer:
        """Read one page; CPU is what the child process used.

        Raises:
            EngineError: It failed on the page.
        """
        started = time.perf_counter()
        with subprocess.Popen(
            ["tesseract", str(path), "stdout", "-l", "eng", "tsv"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            table, complaints = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise EngineError(f"tesseract could not read {path}: {complaints.strip()}")
        self._peak_mb = max(self._peak_mb, usage.ru_maxrss / 1024)
        return Answer(_tesseract_lines(table), (time.perf_counter() - started) * 1000, usage.ru_utime + usage.ru_stime)

    def peak_mb(self) -> float:
        """The largest of its processes."""
        return self._peak_mb


def _tesseract_lines(table: str) -> tuple[TextLine, ...]:
    """Words of Tesseract's table, joined by line; a line's box holds its words."""
    words: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for row in csv.DictReader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["level"] == "5" and row["text"].strip():
            words[row["block_num"], row["par_num"], row["line_num"]].append(row)
    return tuple((_around(line), " ".join(word["text"] for word in line)) for line in words.values())


def _around(words: Sequence[dict[str, str]]) -> tuple[tuple[float, float], ...]:
    x0 = min(float(word["left"]) for word in words)
    y0 = min(float(word["top"]) for word in words)
    x1 = max(float(word["left"]) + float(word["width"]) for word in words)
    y1 = max(float(word["top"]) + float(word["height"]) for word in words)
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


@contextmanager
def ours(threads: int) -> Iterator[Worker]:
    """Our reader, started and loaded."""
    with _started([sys.executable, "-m", "benchmarks.reading_worker", str(threads)]) as worker:
        yield worker


@contextmanager
def rapidocr() -> Iterator[Worker]:
    """Stock RapidOCR, started and loaded.

    Raises:
        ConfigurationError: Its environment is missing.
    """
    if not INTERPRETER.exists():
        raise ConfigurationError(f"RapidOCR's environment is missing: {INTERPRETER}", remedy="make rapidocr")
    with _started([str(INTERPRETER), str(HERE / "rapidocr_worker.py")]) as worker:
        yield worker


def tesseract() -> Tesseract | None:
    """Tesseract, if it is installed."""
    return Tesseract() if shutil.which("tesseract") else None


@contextmanager
def _started(command: Sequence[str]) -> Iterator[Worker]:
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=HERE.parent
    ) as process:
        try:
            _next(process)
            yield Worker(process, (time.perf_counter() - begun) * 1000)
        finally:
            if process.stdin is not None:
                process.stdin.close()


def _next(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    row = process.stdout.readline()
    if not row:
        raise EngineError(f"a reader ended with status {process.wait()}", remedy="see its messages above")
    answer: dict[str, Any] = json.loads(row)
    return answer


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(pid: int) -> float:
    for row in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if row.startswith("VmHWM:"):
            return int(row.split()[1]) / 1024
    raise Unavailable(f"/proc/{pid}/status names no peak memory", remedy="run on Linux")
