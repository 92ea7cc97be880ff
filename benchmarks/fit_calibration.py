"""Fit the first calibration: from the recogniser's score to P(line is exactly right), on generated documents only.

    python -m benchmarks.fit_calibration [--documents 160] [--out edge/docferry_edge/calibration.json]

The documents are of the generator's CALIBRATE split; the map is isotonic (pool adjacent violators). On the JUDGE
split, never fitted on, it prints what the map is worth: expected calibration error and, at each accepted share, the
share of wrong lines.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.generator.make import generate
from benchmarks.generator.truth import Kind, Language, Split, Truth
from benchmarks.metrics import TextLine, line_groups
from docferry.calibration import Calibration
from docferry.document import Line
from docferry.model_store import default_store
from docferry_edge.preparation.geometry import apply
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Reader

Labelled = tuple[float, bool]
"""A line's score, and whether its text is exactly right."""

Block = tuple[float, float, float]
"""Sum of scores, right lines, lines."""

_MIX: tuple[tuple[Kind, Language], ...] = (
    *((Kind.RECEIPT, Language.EN),) * 6,
    (Kind.INVOICE, Language.EN),
    (Kind.PAGE, Language.EN),
    (Kind.RECEIPT, Language.ZH),
    (Kind.INVOICE, Language.ZH),
)
_LEAST_BLOCK = 100
"""Lines in the smallest step of the map: fewer say little about a probability."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=160)
    parser.add_argument("--judge", type=int, default=40)
    parser.add_argument("--labels", type=Path, help="keep the labelled scores here, and take them from there again")
    parser.add_argument("--out", type=Path, default=Path("edge/docferry_edge/calibration.json"))
    options = parser.parse_args()
    reader, fitted, judged = labels_of(options.documents, options.judge, options.labels)
    calibration = Calibration(
        knots=isotonic(fitted),
        reader=reader,
        documents=options.documents,
        lines=len(fitted),
        data="benchmarks.generator, split CALIBRATE: receipts, invoices and pages in English and Chinese",
        data_sha256=hashlib.sha256(json.dumps(fitted).encode()).hexdigest(),
        date=datetime.now(UTC).date().isoformat(),
    )
    options.out.write_text(json.dumps(asdict(calibration), indent=1) + "\n", encoding="utf-8")
    report: dict[str, Any] = {"lines": len(judged), "right": share(judged), "ece": expected_error(judged, calibration)}
    ordered = sorted(judged, key=lambda label: -label[0])
    report["risk_at_coverage"] = {
        f"{coverage:.1f}": round(1 - share(ordered[: round(coverage * len(ordered))]), 4)
        for coverage in (0.5, 0.7, 0.8, 0.9, 1.0)
    }
    print(f"fitted on {len(fitted)} lines of {options.documents} documents: {len(calibration.knots)} knots")
    for score, probability in calibration.knots:
        print(f"  score {score:.4f}  P(right) {probability:.4f}")
    print(json.dumps({"fit_calibration": report}))


def labels_of(documents: int, judge: int, file: Path | None) -> tuple[str, list[Labelled], list[Labelled]]:
    """The reader's name, the labels to fit on, and those to judge by; read anew unless `file` holds them."""
    if file is not None and file.exists():
        name, fitted, judged = json.loads(file.read_text(encoding="utf-8"))
        return name, [tuple(label) for label in fitted], [tuple(label) for label in judged]
    reader = Reader.load(default_store(), threads=2)
    fitted = [label for seed in range(documents) for label in labelled(reader, seed, Split.CALIBRATE)]
    judged = [label for seed in range(judge) for label in labelled(reader, seed, Split.JUDGE)]
    if file is not None:
        file.write_text(json.dumps([reader.name, fitted, judged]), encoding="utf-8")
    return reader.name, fitted, judged


def labelled(reader: Reader, seed: int, split: Split) -> Iterable[Labelled]:
    """Every line read on one generated document, with its score and whether it is right."""
    kind, language = _MIX[seed % len(_MIX)]
    sample = generate(kind, seed, split, language=language)
    good, encoded = cv2.imencode(".jpg", sample.image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    assert good
    page = reader.prepare(Frame(encoded.tobytes(), f"{split}-{seed}"))
    reading = reader.read_all(page)
    # The truth speaks of the photograph, the reading of the page that was made of it.
    height, width = sample.image.shape[:2]
    pixels = [(_in_frame(line, page, width, height), line) for line in reading.document.lines]
    yield from labels(sample.truth, pixels)


def labels(truth: Truth, read: list[tuple[TextLine, Line]]) -> Iterable[Labelled]:
    """Compare by place; where truth and reader cut a row differently, a line is right if it stands there as read."""
    scores = {id(shape): line.score for shape, line in read}
    wanted: list[TextLine] = [(tuple((float(x), float(y)) for x, y in line.polygon), line.text) for line in truth.lines]
    for printed, got in line_groups(wanted, [shape for shape, _ in read]):
        whole = _plain("".join(text for _, text in _across(printed)))
        same = whole == _plain("".join(text for _, text in _across(got)))
        for line in got:
            alone = _plain(line[1])
            right = same or (len(printed) + len(got) > 2 and alone in {_plain(text) for _, text in printed})
            yield scores[id(line)], right


def isotonic(pairs: Iterable[Labelled]) -> tuple[tuple[float, float], ...]:
    """Pool adjacent violators, then one knot a block at the block's mean score (Zadrozny and Elkan, 2002).

    A block's rate counts one right and one wrong line more: no finite sample shows that nothing can go wrong.
    """
    blocks: list[Block] = []
    for score, right in sorted(pairs):
        _append(blocks, (score, float(right), 1.0), lambda block: block[1] / block[2])
    settled: list[Block] = []
    for block in blocks:
        _append(settled, block, _cautious)
    return tuple((round(block[0] / block[2], 6), round(_cautious(block), 5)) for block in settled)


def _append(blocks: list[Block], block: Block, rate: Callable[[Block], float]) -> None:
    """Add a block at the top and pool it downwards until every block is large enough and rates and scores rise."""
    blocks.append(block)
    while len(blocks) > 1:
        lower, upper = blocks[-2], blocks[-1]
        apart = upper[0] / upper[2] - lower[0] / lower[2] > 1e-6
        if lower[2] >= _LEAST_BLOCK and apart and rate(lower) < rate(upper):
            return
        blocks[-2:] = [(lower[0] + upper[0], lower[1] + upper[1], lower[2] + upper[2])]


def _cautious(block: Block) -> float:
    return (block[1] + 1) / (block[2] + 2)


def share(pairs: list[Labelled]) -> float:
    """Share of right lines."""
    return round(sum(right for _, right in pairs) / max(1, len(pairs)), 4)


def expected_error(pairs: list[Labelled], calibration: Calibration) -> float:
    """Expected calibration error over ten bins of equal size."""
    ordered = sorted((calibration.confidence(score), right) for score, right in pairs)
    size = max(1, len(ordered) // 10)
    bins = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    gaps = (abs(sum(p for p, _ in bin_) - sum(r for _, r in bin_)) for bin_ in bins)
    return round(sum(gaps) / max(1, len(ordered)), 4)


def _in_frame(line: Line, page: PageImage, width: int, height: int) -> TextLine:
    points = apply(page.to_frame, np.array(line.polygon)) * [width, height]
    return [(float(x), float(y)) for x, y in points], line.text


def _across(lines: list[TextLine]) -> list[TextLine]:
    return sorted(lines, key=lambda line: min(x for x, _ in line[0]))


def _plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


if __name__ == "__main__":
    main()
