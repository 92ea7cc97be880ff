"""The stock RapidOCR worker as a context manager, for every benchmark that compares with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import ConfigurationError, EngineError

REPOSITORY = Path(__file__).resolve().parent.parent
INTERPRETER = REPOSITORY / ".venv-rapidocr" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One line as RapidOCR read it: four points in pixels, the text, the raw score 0..1."""

    polygon: tuple[tuple[float, float], ...]
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class WorkerReading:
    """What the worker made of one picture, and how long it took."""

    lines: tuple[ReadLine, ...]
    ms: float


class Worker:
    """A running worker process; made by `rapidocr_worker`."""

    def __init__(self, process: subprocess.Popen[str], ready: dict[str, Any]) -> None:
        self._process = process
        self.pid = process.pid
        self.ready = ready

    def read(self, path: Path) -> WorkerReading:
        """Read one picture.

        Raises:
            EngineError: The worker died or could not read the picture.
        """
        answer = self._ask(f"{path.resolve()}\n")
        if "error" in answer:
            raise EngineError(f"RapidOCR could not read {path}: {answer['error']}")
        lines = tuple(
            ReadLine(tuple((x, y) for x, y in line["polygon"]), line["text"], line["score"]) for line in answer["lines"]
        )
        return WorkerReading(lines, answer["ms"])

    def _ask(self, row: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(row)
        self._process.stdin.flush()
        return _answer(self._process)


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    row = process.stdout.readline()
    if not row:
        raise EngineError(f"the RapidOCR worker ended with status {process.wait()}", remedy="see its messages above")
    answer: dict[str, Any] = json.loads(row)
    return answer


@contextmanager
def rapidocr_worker(interpreter: Path = INTERPRETER) -> Iterator[Worker]:
    """Start the worker, wait until its models are loaded, and stop it at the end.

    Raises:
        ConfigurationError: The environment with RapidOCR is missing.
    """
    if not interpreter.exists():
        raise ConfigurationError(
            f"RapidOCR's environment is missing: {interpreter}", remedy="make rapidocr", path=str(interpreter)
        )
    script = Path(__file__).with_name("rapidocr_worker.py")
    with subprocess.Popen(
        [str(interpreter), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield Worker(process, _answer(process))
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
