"""Are generated receipts as hard to read as real ones? Stock RapidOCR reads both, and the rates stand side by side.

`python -m benchmarks.generator_realism --data DIR_OF_SROIE [--limit N] [--json FILE]`
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.generator import Kind, Language, Split
from benchmarks.generator.__main__ import write
from benchmarks.metrics import LineCounts, WordCounts, line_counts, word_counts
from benchmarks.stock_rapidocr import Worker, rapidocr_worker
from docferry.errors import NotFound
from docferry_edge.calibrating.matching import TextLine


@dataclass(frozen=True, slots=True)
class Rates:
    """What was counted over a data set."""

    documents: int
    words: WordCounts
    lines: LineCounts

    def as_dict(self) -> dict[str, float]:
        """Rounded rates, for the JSON line."""
        return {
            "documents": self.documents,
            "word_f1": round(self.words.f1, 4),
            "lines_found": round(self.lines.found_rate, 4),
            "lines_right": round(self.lines.right_rate, 4),
            "decimal_points_lost": round(self.lines.lost_rate, 4),
            "amounts": self.lines.amounts,
        }


def documents(folder: Path, limit: int | None) -> Iterator[tuple[Path, list[TextLine]]]:
    """Pictures of a data set with their true lines, in order of id.

    Raises:
        NotFound: There is no ground truth in `folder`.
    """
    files = sorted((folder / "gt").glob("*.json"))
    if not files:
        raise NotFound(f"no ground truth in {folder / 'gt'}", remedy="give the folder that holds images/ and gt/")
    for file in files[:limit]:
        truth: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        lines: list[TextLine] = [(_points(line["poly"]), line["text"]) for line in truth["lines"]]
        yield folder / truth["image"], lines


def _points(poly: list[float]) -> list[tuple[float, float]]:
    return list(zip(poly[::2], poly[1::2], strict=True))


def measure(worker: Worker, folder: Path, limit: int | None) -> Rates:
    """Read a data set and count."""
    count, words, lines = 0, WordCounts(), LineCounts()
    for path, truth in documents(folder, limit):
        read = [(line.polygon, line.text) for line in worker.read(path).lines]
        count += 1
        words += word_counts((text for _, text in truth), (text for _, text in read))
        lines += line_counts(truth, read)
    return Rates(count, words, lines)


def main() -> None:
    """Print both, side by side, and a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generator_realism", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of real receipts: images/, gt/")
    parser.add_argument("--limit", type=int, help="at most so many real documents")
    parser.add_argument("--count", type=int, default=200, help="generated receipts")
    parser.add_argument("--split", type=Split, choices=list(Split), default=Split.JUDGE)
    parser.add_argument("--json", type=Path, help="write the JSON line here too")
    wanted = parser.parse_args()
    rates: dict[str, Rates] = {}
    with rapidocr_worker() as worker:
        if wanted.data:
            rates[wanted.data.name] = measure(worker, wanted.data, wanted.limit)
        with tempfile.TemporaryDirectory() as folder:
            write(Kind.RECEIPT, wanted.split, Language.EN, range(wanted.count), Path(folder))
            rates[f"generated_{wanted.split.value}"] = measure(worker, Path(folder), None)
    print(f"stock RapidOCR {worker.ready['version']}")
    print(f"{'':22}{'documents':>10}{'word F1':>10}{'found':>10}{'right':>10}{'points lost':>13}{'amounts':>9}")
    for name, rate in rates.items():
        row = (rate.words.f1, rate.lines.found_rate, rate.lines.right_rate)
        cells = "".join(f"{value:10.3f}" for value in row)
        print(f"{name:22}{rate.documents:10}{cells}{rate.lines.lost_rate:13.4f}{rate.lines.amounts:9}")
    line = json.dumps({name: rate.as_dict() for name, rate in rates.items()})
    if wanted.json:
        wanted.json.write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
