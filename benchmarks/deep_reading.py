"""Deep reading beside stock RapidOCR and the edge's reader: accuracy, time, crops, and decimal points.

    python -m benchmarks.deep_reading --data DIR [--skip N] [--limit N] [--crops N] [--generated N] [--json FILE]

All read the same pages in the same run, in turn; RapidOCR in a process of its own, the other two here. The embedded
engine gets the page as the edge prepares it, as a page that an edge sends; its time holds preparing, decoding,
orientation and layout. On the first pages of each dataset (`--crops`) the edge's reading is also read again where it is
in doubt: every line of less than 0.95 confidence goes up as a crop of its own, which must never make a reading worse.
Milliseconds are medians of pages; on a machine that is busy with other things CPU seconds say more.

Prints, last, one JSON line: `{dataset: {pages, rapidocr | edge | deep {word_f1, ms, cpu_s}, ratio_ms, ratio_cpu,
gain_over_rapidocr, gain_over_edge, crops {pages, edge, by_crops, gain_over_edge}}}`: ratios are deep's time to
RapidOCR's, gains `[difference, low, high]` of a paired bootstrap by document; for datasets that name strings
`{dataset/strings: {pages, strings, edge, deep}}`, the share of strings found; and `generated
{documents, numbers, edge, deep}`, the share of numbers with a decimal point that were read exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import cv2

from benchmarks.bootstrap import word_f1_gain
from benchmarks.generated_pages import GeneratedPage, generated_page
from benchmarks.generator.truth import Kind, Language, Split
from benchmarks.metrics import WordCounts, folded, word_counts
from benchmarks.reading_data import datasets
from benchmarks.stock_rapidocr import Worker, rapidocr_worker
from docferry.calibration import Calibration
from docferry.document import Line, Page
from docferry.errors import DocferryError
from docferry.model_store import default_store
from docferry.vision.crops import encode_crop
from docferry_cloud.engine import Crop, Effort, PageInput
from docferry_cloud.pipeline import PipelineEngine
from docferry_cloud.pipeline_merge import DOUBT
from docferry_edge.assess import assess
from docferry_edge.calibrating.matching import TextLine, line_groups
from docferry_edge.examine import default_calibration
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Reader

_DECIMAL = re.compile(r"(?<![\d.,])\d[\d,]*\.\d+(?!\d)")


@dataclass(frozen=True, slots=True)
class Readers:
    """Everything that reads, loaded."""

    edge: Reader
    calibration: Calibration
    engine: PipelineEngine
    stock: Worker


@dataclass(frozen=True, slots=True)
class Spent:
    """What a page took: milliseconds on the clock and CPU seconds of all threads."""

    ms: float
    cpu_s: float


@dataclass(slots=True)
class Tally:
    """What one reader did on one dataset, page by page."""

    words: list[WordCounts] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def add(self, texts: Sequence[str], lines: Iterable[str], spent: Spent) -> None:
        """Count one page."""
        self.words.append(word_counts(texts, lines))
        self.ms.append(spent.ms)
        self.cpu_s.append(spent.cpu_s)

    def summary(self) -> dict[str, float]:
        """Word F1 of the dataset, the median time of a page, and the mean of its CPU seconds."""
        return {
            "word_f1": round(sum(self.words, WordCounts()).f1, 4),
            "ms": round(median(self.ms), 1),
            "cpu_s": round(sum(self.cpu_s) / len(self.cpu_s), 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a dataset folder, or a folder of them")
    parser.add_argument("--skip", type=int, default=0, help="pages per dataset to leave out first: those tuned on")
    parser.add_argument("--limit", type=int, help="pages per dataset")
    parser.add_argument("--crops", type=int, default=0, help="pages per dataset whose doubtful lines go up as crops")
    parser.add_argument("--generated", type=int, default=0, help="generated receipts of the JUDGE split")
    parser.add_argument("--json", type=Path, help="also write the JSON line here")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    try:
        with rapidocr_worker() as stock:
            store = default_store()
            readers = Readers(Reader.load(store), default_calibration(), PipelineEngine.load(store, 2), stock)
            for name, samples in datasets(options.data).items():
                chosen = samples[options.skip :][: options.limit]
                pages = [(sample.image, sample.texts) for sample in chosen]
                results[name] = measured(pages, readers, options.crops)
                print(name, json.dumps(results[name]), flush=True)
            for name, wanted in strings(options.data).items():
                results[f"{name}/strings"] = found(wanted[options.skip :][: options.limit], readers)
                print(name, json.dumps(results[f"{name}/strings"]), flush=True)
            if options.generated:
                results["generated"] = decimals(options.generated, readers)
    except DocferryError as error:
        raise SystemExit(str(error)) from error
    line = json.dumps(results)
    if options.json:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def measured(pages: Sequence[tuple[Path, tuple[str, ...]]], readers: Readers, crops: int) -> dict[str, Any]:
    """All readers on one dataset; they change places from page to page."""
    tallies = {name: Tally() for name in ("rapidocr", "edge", "deep")}
    cut: list[WordCounts] = []
    for number, (path, texts) in enumerate(pages):
        for name in ("rapidocr", "deep") if number % 2 else ("deep", "rapidocr"):
            lines, spent = stock(path, readers) if name == "rapidocr" else deep(path, readers)
            tallies[name].add(texts, lines, spent)
        page = readers.edge.prepare(Frame(path.read_bytes(), path.name))
        started, cpu = time.perf_counter(), time.process_time()
        edge = edge_page(page, readers)
        spent = Spent((time.perf_counter() - started) * 1000, time.process_time() - cpu)
        tallies["edge"].add(texts, _texts(edge), spent)
        if number < crops:
            cut.append(word_counts(texts, _texts(by_crops(page, edge, readers))))
    counts = {name: tally.words for name, tally in tallies.items()}
    result: dict[str, Any] = {"pages": len(pages)} | {name: tally.summary() for name, tally in tallies.items()}
    result["ratio_ms"] = _ratio(tallies["deep"].ms, tallies["rapidocr"].ms)
    result["ratio_cpu"] = _ratio(tallies["deep"].cpu_s, tallies["rapidocr"].cpu_s)
    result["gain_over_rapidocr"] = word_f1_gain(counts["deep"], counts["rapidocr"]).rounded()
    result["gain_over_edge"] = word_f1_gain(counts["deep"], counts["edge"]).rounded()
    if cut:
        alone = counts["edge"][: len(cut)]
        result["crops"] = {
            "pages": len(cut),
            "edge": round(sum(alone, WordCounts()).f1, 4),
            "by_crops": round(sum(cut, WordCounts()).f1, 4),
            "gain_over_edge": word_f1_gain(cut, alone).rounded(),
        }
    return result


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return round(median(mine / other for mine, other in zip(ours, theirs, strict=True)), 3)


def stock(path: Path, readers: Readers) -> tuple[list[str], Spent]:
    """A file as stock RapidOCR reads it."""
    before = _cpu_seconds(readers.stock.pid)
    reading = readers.stock.read(path)
    spent = Spent(reading.ms, _cpu_seconds(readers.stock.pid) - before)
    return [line.text for line in reading.lines], spent


def deep(path: Path, readers: Readers) -> tuple[list[str], Spent]:
    """A file prepared and read deeply; encoding the page for its way is not counted, decoding it is."""
    started, cpu = time.perf_counter(), time.process_time()
    page = readers.edge.prepare(Frame(path.read_bytes(), path.name))
    prepared = Spent(time.perf_counter() - started, time.process_time() - cpu)
    data = as_png(page)
    started, cpu = time.perf_counter(), time.process_time()
    read = readers.engine.read(PageInput(image=data), Effort.AUTO, lambda: False)
    ms = (time.perf_counter() - started + prepared.ms) * 1000
    return _texts(read), Spent(ms, time.process_time() - cpu + prepared.cpu_s)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _texts(page: Page) -> list[str]:
    return [line.text for line in page.lines]


def edge_page(page: PageImage, readers: Readers) -> Page:
    """The edge's reading of a prepared page, with its confidences."""
    return assess(readers.edge.read_all(page), readers.calibration).reading.document.pages[0]


def by_crops(page: PageImage, edge: Page, readers: Readers) -> Page:
    """The edge's reading after every line in doubt went up as a crop of its own."""
    crops = []
    for number, line in enumerate(line for line in edge.lines if (line.confidence or 0.0) < DOUBT):
        data, box = encode_crop(page.pixels, line.box, margin=0.5, grey=True)
        crops.append(Crop(f"crop-{number}", box, data))
    return readers.engine.read(PageInput(reading=edge, crops=tuple(crops)), Effort.AUTO, lambda: False)


def as_png(page: PageImage) -> bytes:
    """The page as an encoded picture, lossless."""
    good, data = cv2.imencode(".png", page.pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert good
    return data.tobytes()


def strings(data: Path) -> dict[str, list[tuple[Path, list[str]]]]:
    """Pages whose truth names strings that must be found: `present`, or the values of `fields`."""
    folders = [data] if (data / "gt").is_dir() else sorted(path for path in data.iterdir() if (path / "gt").is_dir())
    wanted: dict[str, list[tuple[Path, list[str]]]] = {}
    for folder in folders:
        for path in sorted((folder / "gt").glob("*.json")):
            truth = json.loads(path.read_text(encoding="utf-8"))
            if folder.name in {"camera_photos", "zh_documents"} and "image" in truth:
                texts = truth.get("present") or list(_values(truth.get("fields", {})))
                wanted.setdefault(folder.name, []).append((folder / truth["image"], [t for t in texts if folded(t)]))
    return wanted


def _values(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _values(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _values(value)
    elif tree is not None and not isinstance(tree, bool):
        yield str(tree)


def found(pages: Sequence[tuple[Path, list[str]]], readers: Readers) -> dict[str, Any]:
    """How many of the strings each reader has, compared by letters and digits in one case."""
    hits: Counter[str] = Counter()
    for path, texts in pages:
        page = readers.edge.prepare(Frame(path.read_bytes(), path.name))
        for name, lines in (("deep", deep(path, readers)[0]), ("edge", _texts(edge_page(page, readers)))):
            whole = folded("".join(lines))
            hits[name] += sum(folded(text) in whole for text in texts)
    total = sum(len(texts) for _, texts in pages)
    shares = {name: round(hits[name] / total, 4) for name in ("edge", "deep")}
    return {"pages": len(pages), "strings": total} | shares


def decimals(documents: int, readers: Readers) -> dict[str, Any]:
    """Numbers with a decimal point on generated receipts, English, of the JUDGE split."""
    hits: Counter[str] = Counter()
    for seed in range(documents):
        generated = generated_page(Kind.RECEIPT, Language.EN, seed, Split.JUDGE, readers.edge.orientation)
        page = generated.page
        read = readers.engine.read(PageInput(image=as_png(page)), Effort.AUTO, lambda: False)
        right, total, wrong = decimals_right(generated, read.lines)
        hits["deep"] += right
        hits["numbers"] += total
        hits["edge"] += decimals_right(generated, edge_page(page, readers).lines)[0]
        if wrong:
            print(generated.truth.id, wrong[:6], flush=True)
    shares = {name: round(hits[name] / hits["numbers"], 4) for name in ("edge", "deep")}
    return {"documents": documents, "numbers": hits["numbers"]} | shares


def decimals_right(generated: GeneratedPage, lines: Iterable[Line]) -> tuple[int, int, list[tuple[str, list[str]]]]:
    """Numbers with a decimal point read exactly, by place; how many there are; and those read otherwise."""
    right = total = 0
    wrong: list[tuple[str, list[str]]] = []
    for printed, got in line_groups(generated.printed(), [generated.read(line) for line in lines]):
        have = Counter(number for _, text in got for number in _DECIMAL.findall(text))
        for number in _numbers(printed):
            total += 1
            if have[number] > 0:
                have[number] -= 1
                right += 1
            else:
                wrong.append((number, [text for _, text in got]))
    return right, total, wrong


def _numbers(lines: Sequence[TextLine]) -> list[str]:
    return [number for _, text in lines for number in _DECIMAL.findall(text)]


if __name__ == "__main__":
    main()
