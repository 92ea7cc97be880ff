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
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cv2

from benchmarks.generator.make import generate
from benchmarks.generator.truth import Kind, Language, Split, Truth
from benchmarks.metrics import TextLine, line_groups
from docferry.calibration import Calibration
from docferry.document import Line
from docferry.model_store import default_store
from docferry_edge.prepare import Frame
from docferry_edge.read import Reader

Labelled = tuple[float, bool]
"""A line's score, and whether its text is exactly right."""

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
    parser.add_argument("--out", type=Path, default=Path("edge/docferry_edge/calibration.json"))
    options = parser.parse_args()
    reader = Reader.load(default_store(), threads=2)
    fitted = [label for seed in range(options.documents) for label in labelled(reader, seed, Split.CALIBRATE)]
    calibration = Calibration(
        knots=isotonic(fitted),
        reader=reader.name,
        documents=options.documents,
        lines=len(fitted),
        data="benchmarks.generator, split CALIBRATE: receipts, invoices and pages in English and Chinese",
        data_sha256=hashlib.sha256(json.dumps(fitted).encode()).hexdigest(),
        date=datetime.now(UTC).date().isoformat(),
    )
    options.out.write_text(json.dumps(asdict(calibration), indent=1) + "\n", encoding="utf-8")
    judged = [label for seed in range(options.judge) for label in labelled(reader, seed, Split.JUDGE)]
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


def labelled(reader: Reader, seed: int, split: Split) -> Iterable[Labelled]:
    """Every line read on one generated document, with its score and whether it is right."""
    kind, language = _MIX[seed % len(_MIX)]
    sample = generate(kind, seed, split, language=language)
    good, encoded = cv2.imencode(".jpg", sample.image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    assert good
    page = reader.prepare(Frame(encoded.tobytes(), f"{split}-{seed}"))
    reading = reader.read_all(page)
    found = reading.document.pages[0]
    pixels = [(_pixels(line, found.width, found.height), line) for line in found.lines]
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
    blocks: list[list[float]] = []
    for score, right in sorted(pairs):
        blocks.append([score, float(right), 1.0])
        while len(blocks) > 1 and not _apart(blocks[-2], blocks[-1]):
            top = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], top, strict=True)]
    return tuple((round(s / n, 6), round((r + 1) / (n + 2), 5)) for s, r, n in blocks)


def _apart(lower: list[float], upper: list[float]) -> bool:
    """Whether two blocks stay two: each large enough, and both score and rate rise from one to the other."""
    (s0, r0, n0), (s1, r1, n1) = lower, upper
    rising = (r0 + 1) / (n0 + 2) < (r1 + 1) / (n1 + 2) and s1 / n1 - s0 / n0 > 1e-5
    return n0 >= _LEAST_BLOCK and rising


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


def _pixels(line: Line, width: int, height: int) -> TextLine:
    return tuple((x * width, y * height) for x, y in line.polygon), line.text


def _across(lines: list[TextLine]) -> list[TextLine]:
    return sorted(lines, key=lambda line: min(x for x, _ in line[0]))


def _plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


if __name__ == "__main__":
    main()
