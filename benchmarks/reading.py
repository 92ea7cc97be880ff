"""How fast and how well the edge reads, beside stock RapidOCR on the same pages in the same run, in turn.

`python -m benchmarks.reading --data DIR [--skip N] [--limit N] [--json FILE]`; each reader has a process of its own.
Prints a table and, last, one JSON line: `{dataset: {ours | rapidocr | tesseract: {hint_ms, full_ms, cpu_s, rss_mb,
start_ms,
word_f1}, ratio_full}}`; times are medians, memory is the peak, CPU seconds are per page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.metrics import WordCounts, word_counts
from benchmarks.reading_data import Sample, datasets
from benchmarks.stock_rapidocr import INTERPRETER
from docferry.errors import DocferryError, EngineError, Unavailable

HERE = Path(__file__).resolve().parent

AS_SERVICE = {"MALLOC_ARENA_MAX": "1"}
"""What deploy/systemd/docferry-edge.service sets for the reader."""


@dataclass(slots=True)
class Tally:
    """What one reader did on one dataset."""

    hints: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    cpu: float = 0.0
    rss_mb: float = 0.0
    start_ms: float = 0.0
    words: WordCounts = field(default_factory=WordCounts)

    def summary(self) -> dict[str, float]:
        """The stable keys."""
        result = {
            "full_ms": round(median(self.times), 1),
            "cpu_s": round(self.cpu / len(self.times), 3),
            "rss_mb": round(self.rss_mb, 1),
            "start_ms": round(self.start_ms, 1),
            "word_f1": round(self.words.f1, 4),
        }
        return {"hint_ms": round(median(self.hints), 1)} | result if self.hints else result


class Process:
    """A reader process that answers paths with JSON lines."""

    def __init__(self, process: subprocess.Popen[str], start_ms: float) -> None:
        self._process = process
        self.start_ms = start_ms

    def read(self, sample: Sample, tally: Tally) -> None:
        """Read one page and add what it took to the tally.

        Raises:
            EngineError: The reader died or failed on the page.
        """
        before = _cpu_seconds(self._process.pid)
        answer = ask(self._process, str(sample.image))
        tally.cpu += _cpu_seconds(self._process.pid) - before
        tally.rss_mb = max(tally.rss_mb, _peak_mb(self._process.pid))
        tally.start_ms = self.start_ms
        lines = [line["text"] if isinstance(line, dict) else line for line in answer["lines"]]
        tally.words += word_counts(sample.texts, lines)
        tally.times.append(answer["full_ms"] if "full_ms" in answer else answer["ms"])
        if "hint_ms" in answer:
            tally.hints.append(answer["hint_ms"])


class Tesseract:
    """Tesseract as a command, one process a page; its start is part of every page's time."""

    def read(self, sample: Sample, tally: Tally) -> None:
        """Read one page; CPU is what the child process used."""
        before, started = os.times(), time.perf_counter()
        done = subprocess.run(
            ["tesseract", str(sample.image), "stdout", "-l", "eng"], capture_output=True, text=True, check=False
        )
        after = os.times()
        if done.returncode:
            raise EngineError(f"tesseract could not read {sample.image}: {done.stderr.strip()}")
        tally.times.append((time.perf_counter() - started) * 1000)
        tally.cpu += after.children_user + after.children_system - before.children_user - before.children_system
        tally.words += word_counts(sample.texts, done.stdout.splitlines())


Readers = dict[str, Process | Tesseract]


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Process]:
    """Start a reader process and wait until its models are loaded."""
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=HERE.parent,
        env=os.environ | (environment or {}),
    ) as process:
        try:
            _next(process)
            yield Process(process, (time.perf_counter() - begun) * 1000)
        finally:
            if process.stdin is not None:
                process.stdin.close()


def ask(process: subprocess.Popen[str], path: str) -> dict[str, Any]:
    """One question, one answer.

    Raises:
        EngineError: No answer, or an answer that says the page could not be read.
    """
    assert process.stdin is not None
    process.stdin.write(f"{Path(path).resolve()}\n")
    process.stdin.flush()
    answer = _next(process)
    if "error" in answer:
        raise EngineError(f"{path}: {answer['error']}")
    return answer


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


def measure(samples: Sequence[Sample], threads: int) -> dict[str, Any]:
    """All readers on one dataset; fresh processes, each page once per reader, in turn."""
    ours = [sys.executable, "-m", "benchmarks.reading_worker", str(threads)]
    rapid = [str(INTERPRETER), str(HERE / "rapidocr_worker.py")]
    with started(ours, AS_SERVICE) as own, started(rapid) as stock:
        readers: Readers = {"ours": own, "rapidocr": stock}
        if shutil.which("tesseract"):
            readers["tesseract"] = Tesseract()
        tallies = {name: Tally() for name in readers}
        for number, sample in enumerate(samples):
            # Whoever goes second finds the file in the page cache, so they change places.
            for name in list(readers)[:: 1 if number % 2 else -1]:
                readers[name].read(sample, tallies[name])
    result: dict[str, Any] = {name: tallies[name].summary() for name in tallies}
    result["ratio_full"] = round(result["rapidocr"]["full_ms"] / result["ours"]["full_ms"], 3)
    result["pages"] = len(samples)
    return result


def show(name: str, result: dict[str, Any]) -> None:
    """One table for one dataset."""
    print(f"\n{name}: {result['pages']} pages; RapidOCR's time / ours = {result['ratio_full']:.2f}")
    print(f"{'':10}{'hint ms':>9}{'full ms':>9}{'cpu s':>8}{'rss MB':>8}{'start ms':>10}{'word F1':>9}")
    for reader in ("ours", "rapidocr", "tesseract"):
        if reader not in result:
            print(f"{reader:10}  not installed")
            continue
        row = result[reader]
        hint = f"{row['hint_ms']:9.0f}" if "hint_ms" in row else f"{'-':>9}"
        print(
            f"{reader:10}{hint}{row['full_ms']:9.0f}{row['cpu_s']:8.2f}{row['rss_mb']:8.0f}"
            f"{row['start_ms']:10.0f}{row['word_f1']:9.4f}"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a dataset folder, or a folder of them")
    parser.add_argument("--skip", type=int, default=0, help="pages per dataset to leave out first: those tuned on")
    parser.add_argument("--limit", type=int, help="pages per dataset")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads for our reader")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    try:
        for name, samples in datasets(arguments.data).items():
            results[name] = measure(samples[arguments.skip :][: arguments.limit], arguments.threads)
            show(name, results[name])
    except DocferryError as error:
        raise SystemExit(str(error)) from error
    line = json.dumps(results)
    if arguments.json:
        arguments.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
