"""Train the zstd dictionaries that structures are packed with, on generated documents only.

    python -m benchmarks.train_dictionary [--documents 900] [--texts 32768] [--numbers 4096] [--out FOLDER]

The documents are of the generator's splits TRAIN and CALIBRATE: their printed lines, laid out by our own reading order,
with scores and confidences as a reader gives them. No picture is read, for a dictionary needs the words and the shape
of a packing and nothing else. The JUDGE split, drawn in the same way, tells what the pair is worth. A new
pair gets a new id; those that shipped before stay (docferry.compression.DICTIONARIES).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import zstandard

from benchmarks.generator.drawing import Drawing
from benchmarks.generator.make import draw
from benchmarks.generator.truth import Kind, Language, Split
from docferry.compression import DICTIONARIES
from docferry.document import Document, Line, Page, Quality, Reading, with_fields
from docferry.fields import extract_fields
from docferry.packing import packed_reading
from docferry.reading_order import LayoutBox, assemble_page
from docferry_edge.preparation.quality import hint

READER = "ppocrv6-small@a0bf03"
"""What a reader calls itself; the digits differ between models, the rest does not."""

MIX: tuple[tuple[Kind, Language], ...] = (
    *((Kind.RECEIPT, Language.EN),) * 6,
    (Kind.INVOICE, Language.EN),
    (Kind.PAGE, Language.EN),
    (Kind.RECEIPT, Language.ZH),
    (Kind.INVOICE, Language.ZH),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=900, help="to train on, half of each split")
    parser.add_argument("--judge", type=int, default=100)
    parser.add_argument("--texts", type=int, default=32 << 10, help="bytes of the dictionary for texts")
    parser.add_argument("--numbers", type=int, default=4 << 10, help="bytes of the dictionary for numbers")
    parser.add_argument("--id", type=int, default=DICTIONARIES[-1])
    parser.add_argument("--out", type=Path, default=Path("shared/docferry/dictionaries"))
    options = parser.parse_args()
    samples = [
        packed for split in (Split.TRAIN, Split.CALIBRATE) for packed in packings(range(options.documents // 2), split)
    ]
    judged = list(packings(range(options.judge), Split.JUDGE))
    report: dict[str, Any] = {"documents": options.documents}
    for index, (kind, size) in enumerate((("numbers", options.numbers), ("texts", options.texts))):
        trained = zstandard.train_dictionary(
            size, [sample[index] for sample in samples], dict_id=options.id, level=19, k=256, d=6
        )
        (options.out / f"{options.id}.{kind}.zdict").write_bytes(trained.as_bytes())
        own = [packing[index] for packing in judged]
        report[kind] = {
            "dictionary_bytes": len(trained.as_bytes()),
            "sha256": hashlib.sha256(trained.as_bytes()).hexdigest(),
            "by_columns": median(map(len, own)),
            "zstd": _median_size(own, None),
            "zstd_with_dictionary": _median_size(own, trained),
        }
        print(f"{kind}, medians over {options.judge} documents never trained on, in bytes: {report[kind]}")
    print(json.dumps({"train_dictionary": report}))


def packings(seeds: Sequence[int], split: Split) -> Iterator[tuple[bytes, bytes]]:
    """A generated document a seed, by columns, not compressed: its numbers and its texts."""
    for seed in seeds:
        kind, language = MIX[seed % len(MIX)]
        yield packed_reading(reading_of(draw(kind, seed, split, language), random.Random(f"reading/{split}/{seed}")))


def reading_of(drawing: Drawing, rng: random.Random) -> Reading:
    """What a reader would make of a page that it reads without a mistake."""
    height, width = drawing.pixels.shape[:2]
    lean = rng.choice((0.0, 0.0, rng.uniform(-0.01, 0.01)))
    lines = [_line(line.text, line.polygon.tolist(), lean, (width, height), rng) for line in drawing.lines]
    receipt = rng.random() < 0.6
    boxes = [
        LayoutBox(region.type, _box(region.polygon.tolist(), width, height), rng.uniform(0.6, 0.99))
        for region in drawing.regions
        if not receipt
    ]
    quality = Quality(
        sharpness=rng.uniform(100, 3000),
        brightness=rng.uniform(0.7, 0.97),
        contrast=rng.uniform(0.2, 0.8),
        text_height=rng.uniform(15, 40),
        orientation_score=rng.uniform(0.8, 1.0),
        blur=rng.uniform(0.7, 1.6),
        glare=rng.choice((0.0, 0.0, 0.0, 0.0, 0.05)),
        cropped_edges=rng.choice((0, 0, 0, 0, 1)),
        skew=rng.uniform(-1.0, 1.0),
    )
    quality = replace(quality, hint=hint(quality))
    page: Page = assemble_page(width, height, boxes, lines, quality)
    document = Document((page,))
    return Reading(with_fields(document, extract_fields(document)), READER)


def _line(text: str, corners: list[list[float]], lean: float, size: tuple[int, int], rng: random.Random) -> Line:
    score = 1 - min(0.4, rng.expovariate(60))
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = ((x / size[0], (y + lean * x) / size[1]) for x, y in corners)
    confidence = min(0.99, max(0.05, 1 - 8 * (1 - score) * rng.uniform(0.4, 1.6)))
    return Line("", text, ((ax, ay), (bx, by), (cx, cy), (dx, dy)), score, confidence)


def _box(corners: list[list[float]], width: int, height: int) -> tuple[float, float, float, float]:
    xs, ys = [x / width for x, _ in corners], [y / height for _, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _median_size(packed: Sequence[bytes], dictionary: zstandard.ZstdCompressionDict | None) -> float:
    compressor = zstandard.ZstdCompressor(level=19, dict_data=dictionary, write_dict_id=False)
    return median(len(compressor.compress(data)) for data in packed)


if __name__ == "__main__":
    main()
