"""How fast and how well the edge reads, beside stock RapidOCR and Tesseract on the same pages in the same run, in turn.

`python -m benchmarks.reading --data DIR [--skip N] [--limit N] [--json FILE] [--plot FILE]`; each reader has a process
of its own. Prints a table and, last, one JSON line: `{dataset: {ours | rapidocr | tesseract: {hint_ms, full_ms, cpu_s,
rss_mb, start_ms, word_f1, line_cer}, ratio_full, hint, gain}}`. Times are medians, memory is the peak, CPU seconds are
per page. `line_cer` is the edit distance over the length of the truth, by lines that stand in the same place; a line
that was not found counts whole. `hint` is our hint against its parts timed alone (decoding, orientation, layout, line
detection); `gain` our word F1 less RapidOCR's, with its paired bootstrap interval by document.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from benchmarks.bootstrap import word_f1_gain
from benchmarks.metrics import WordCounts, folded, word_counts
from benchmarks.readers import Answer, PageReader, ours, rapidocr, tesseract
from benchmarks.reading_data import Sample, datasets
from docferry.errors import DocferryError
from docferry_edge.calibrating.matching import TextLine, line_groups


@dataclass(slots=True)
class Tally:
    """What one reader did on one dataset."""

    answers: list[Answer] = field(default_factory=list)
    words: list[WordCounts] = field(default_factory=list)
    edits: int = 0
    letters: int = 0
    rss_mb: float = 0.0
    start_ms: float = 0.0

    def add(self, sample: Sample, answer: Answer) -> None:
        """Count one page."""
        self.answers.append(answer)
        self.words.append(word_counts(sample.texts, [text for _, text in answer.lines]))
        edits, letters = line_errors(sample.lines, answer.lines)
        self.edits += edits
        self.letters += letters

    def summary(self) -> dict[str, float]:
        """The stable keys."""
        result = {
            "full_ms": round(median(answer.full_ms for answer in self.answers), 1),
            "cpu_s": round(sum(answer.cpu_s for answer in self.answers) / len(self.answers), 3),
            "rss_mb": round(self.rss_mb, 1),
            "start_ms": round(self.start_ms, 1),
            "word_f1": round(sum(self.words, WordCounts()).f1, 4),
        }
        if self.letters:
            result["line_cer"] = round(self.edits / self.letters, 4)
        hints = [answer.hint_ms for answer in self.answers if answer.hint_ms is not None]
        return {"hint_ms": round(median(hints), 1)} | result if hints else result


def line_errors(truth: Sequence[TextLine], read: Sequence[TextLine]) -> tuple[int, int]:
    """Edits and letters over lines matched by place; letters and digits, case folded.

    What only the reader saw is free: truths leave out logos and stamps.
    """
    edits = letters = 0
    for wanted, found in line_groups(truth, read):
        expected, got = (folded("".join(text for _, text in sorted(side, key=_left))) for side in (wanted, found))
        if wanted:
            edits += min(len(expected), Levenshtein.distance(expected, got))
            letters += len(expected)
    return edits, letters


def _left(line: TextLine) -> float:
    return min(x for x, _ in line[0])


def measure(samples: Sequence[Sample], threads: int) -> dict[str, Any]:
    """All readers on one dataset; fresh processes, each page once per reader, in turn."""
    with ours(threads) as own, rapidocr() as stock:
        readers: dict[str, PageReader] = {"ours": own, "rapidocr": stock}
        third = tesseract()
        if third is not None:
            readers["tesseract"] = third
        tallies = {name: Tally(start_ms=reader.start_ms) for name, reader in readers.items()}
        parts = []
        for number, sample in enumerate(samples):
            # Whoever goes second finds the file in the page cache, so they change places.
            for name in list(readers)[:: 1 if number % 2 else -1]:
                tallies[name].add(sample, readers[name].read(sample.image))
            parts.append(own.parts(sample.image))
        for name, reader in readers.items():
            tallies[name].rss_mb = reader.peak_mb()
    result: dict[str, Any] = {name: tally.summary() for name, tally in tallies.items()}
    result["ratio_full"] = round(result["rapidocr"]["full_ms"] / result["ours"]["full_ms"], 3)
    result["hint"] = hint_summary(tallies["ours"].answers, parts)
    result["gain"] = word_f1_gain(tallies["ours"].words, tallies["rapidocr"].words).rounded()
    result["pages"] = len(samples)
    return result


def hint_summary(answers: Sequence[Answer], parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Our hint: when the layout and when the line boxes were there, and how both compare with the parts alone."""
    hints = np.array([answer.hint_ms for answer in answers], dtype=np.float64)
    alone = np.array([sum(part.values()) for part in parts])
    return {
        "layout_ms": round(median(answer.layout_ms or 0.0 for answer in answers), 1),
        "p95_ms": round(float(np.percentile(hints, 95)), 1),
        "parts_p95_ms": round(float(np.percentile(alone, 95)), 1),
        "p95_ratio": round(float(np.percentile(hints, 95) / np.percentile(alone, 95)), 3),
        **{f"{name}_alone_ms": round(median(part[name] for part in parts), 1) for name in parts[0]},
    }


def show(name: str, result: dict[str, Any]) -> None:
    """One table for one dataset."""
    print(f"\n{name}: {result['pages']} pages; RapidOCR's time / ours = {result['ratio_full']:.2f}")
    print(f"{'':10}{'hint ms':>9}{'full ms':>9}{'cpu s':>8}{'rss MB':>8}{'start ms':>10}{'word F1':>9}{'line CER':>10}")
    for reader in ("ours", "rapidocr", "tesseract"):
        if reader not in result:
            print(f"{reader:10}  not installed")
            continue
        row = result[reader]
        hint = f"{row['hint_ms']:9.0f}" if "hint_ms" in row else f"{'-':>9}"
        errors = f"{row['line_cer']:10.4f}" if "line_cer" in row else f"{'-':>10}"
        print(
            f"{reader:10}{hint}{row['full_ms']:9.0f}{row['cpu_s']:8.2f}{row['rss_mb']:8.0f}"
            f"{row['start_ms']:10.0f}{row['word_f1']:9.4f}{errors}"
        )
    hint, (gain, low, high) = result["hint"], result["gain"]
    print(
        f"layout after {hint['layout_ms']:.0f} ms; hint p95 {hint['p95_ms']:.0f} ms, {hint['p95_ratio']:.2f} times its "
        f"parts alone; word F1 against RapidOCR {gain:+.4f} ({low:+.4f} to {high:+.4f})"
    )


def plot(results: dict[str, Any], file: Path) -> None:
    """Time against word F1, a point for each reader and dataset."""
    # Only who wants the picture pays for loading it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    marks = {"ours": "o", "rapidocr": "s", "tesseract": "^"}
    for number, (dataset, result) in enumerate(results.items()):
        for reader, mark in marks.items():
            if reader in result:
                row = result[reader]
                label = f"{dataset}, {reader}"
                axes.plot(row["full_ms"], row["word_f1"], mark, color=f"C{number}", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a page, median")
    axes.set_ylabel("word F1")
    axes.legend(fontsize="small")
    figure.savefig(file)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a dataset folder, or a folder of them")
    parser.add_argument("--skip", type=int, default=0, help="pages per dataset to leave out first: those tuned on")
    parser.add_argument("--limit", type=int, help="pages per dataset")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    parser.add_argument("--plot", type=Path, help="also draw time against word F1 into this file")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads for our reader")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    try:
        for name, samples in datasets(arguments.data).items():
            results[name] = measure(samples[arguments.skip :][: arguments.limit], arguments.threads)
            show(name, results[name])
    except DocferryError as error:
        raise SystemExit(str(error)) from error
    if arguments.plot:
        plot(results, arguments.plot)
    line = json.dumps(results)
    if arguments.json:
        arguments.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
