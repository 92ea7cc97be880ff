"""Measure what parts cost and are worth, on generated pages: the planner's table of prices.

    python -m benchmarks.fit_prices [--documents 40] [--bytes-only] [--out edge/docferry_edge/prices.json]

The documents are of the generator's CALIBRATE split. Each is read by the edge; then, for every grade (how high a line
is in the picture, WebP quality), some of its wrong lines and of its right ones are cut out, encoded, and read by the
cloud's engine through the same call as in service. `repair` is the share of wrong lines that are right afterwards, less
the right lines that are spoilt, for as many as stand beside a wrong one in a crop; it is made to rise with height and
with quality, as a finite sample need not. Bytes are those of the encoded crops and pages and of real requests, by least
squares. The engine decides what is repaired: after a change of engine the table is fitted again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import cv2
import numpy as np

from benchmarks.generator.make import generate
from benchmarks.generator.truth import Split
from benchmarks.line_labels import right_lines
from benchmarks.metrics import TextLine
from benchmarks.train_dictionary import MIX
from docferry.document import Page, Reading, with_fields
from docferry.fields import extract_fields
from docferry.model_store import default_store
from docferry.packing import pack_reading
from docferry.route import Decision, Plan, Reason, Route
from docferry.vision.crops import crop
from docferry.vision.images import encode_webp
from docferry_cloud.engine import Crop, Effort, PageInput
from docferry_cloud.pipeline import PipelineEngine
from docferry_edge.assess import assess
from docferry_edge.examine import Examined, default_calibration
from docferry_edge.offers import text_height
from docferry_edge.pack import Identity, Pictures, pack, resized
from docferry_edge.preparation.geometry import apply
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.prices import Grade, Prices
from docferry_edge.read import Reader
from docferry_edge.selection import with_margin

HEIGHTS = (10.0, 14.0, 18.0, 24.0, 32.0)
QUALITIES = (20, 40, 65)
BESIDE = 0.5
"""Right lines that are read again for each wrong one: neighbours in the same crop, and lines wrongly doubted."""

MOST = 6
"""About as many wrong lines of a document are read again, and half as many right ones: pages that were read badly must
not make up the table alone."""

_MESSAGE = 110
"""Bytes of a part's message around its picture: id, box, media type, size, SHA-256."""

Sizes = list[tuple[int, int]]
"""Pixels and bytes of pictures."""


@dataclass(slots=True)
class Tally:
    """What adds up for one grade."""

    wrong: int = 0
    repaired: int = 0
    right: int = 0
    spoilt: int = 0
    crops: Sizes = field(default_factory=list)
    pages: Sizes = field(default_factory=list)

    @property
    def repair(self) -> float:
        """The net share of wrong lines repaired."""
        spoilt = BESIDE * self.spoilt / max(1, self.right)
        return max(0.0, self.repaired / max(1, self.wrong) - spoilt)


@dataclass(frozen=True, slots=True)
class Case:
    """A generated document as the edge has read it.

    Attributes:
        size: Width and height of the photograph in pixels.
        truth: Its printed lines, in the photograph's pixels.
        labels: Which read lines are right, by id.
    """

    image: PageImage
    reading: Reading
    size: tuple[int, int]
    truth: list[TextLine]
    labels: dict[str, bool]

    @property
    def page(self) -> Page:
        """The page as read."""
        return self.reading.document.pages[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument(
        "--effort", choices=list(Effort), default=Effort.AUTO, help="how much work the engine may spend"
    )
    parser.add_argument("--bytes-only", action="store_true", help="keep the repair shares that are in the table")
    parser.add_argument("--out", type=Path, default=Path("edge/docferry_edge/prices.json"))
    options = parser.parse_args()
    kept = json.loads(options.out.read_text(encoding="utf-8"))["grades"] if options.bytes_only else []
    reader = Reader.load(default_store(), threads=1)
    engine = None if options.bytes_only else PipelineEngine.load(default_store(), threads=1)
    tallies: dict[tuple[float, int], Tally] = defaultdict(Tally)
    requests: list[tuple[int, int, int, int]] = []
    lines = wrong = 0
    for seed in range(options.documents):
        case = read_one(reader, seed)
        lines, wrong = lines + len(case.labels), wrong + sum(not good for good in case.labels.values())
        requests.append(request_size(case))
        print(f"{seed + 1} of {options.documents}: {len(case.labels)} lines", file=sys.stderr, flush=True)
        for height in HEIGHTS:
            for quality in QUALITIES:
                measure(tallies[height, quality], case, height, quality, engine, Effort(options.effort))
    name = "as before" if engine is None else f"{engine.name} ({options.effort})"
    data = (
        f"benchmarks.generator, split CALIBRATE, {options.documents} documents, {lines} lines of which {wrong} wrong; "
        f"edge {reader.name}, cloud {name}; {datetime.now(UTC).date().isoformat()}"
    )
    known = {(float(grade["text_height"]), int(grade["quality"])): float(grade["repair"]) for grade in kept}
    prices = fitted(tallies, requests, known or rising({key: tally.repair for key, tally in tallies.items()}), data)
    options.out.write_text(json.dumps(asdict(prices), indent=1) + "\n", encoding="utf-8")
    print(prices.data)
    for grade in prices.grades:
        tally = tallies[grade.text_height, grade.quality]
        print(
            f"  {grade.text_height:>4.0f} px, quality {grade.quality}: {tally.repaired} of {tally.wrong} repaired, "
            f"{tally.spoilt} of {tally.right} spoilt: repair {grade.repair:.3f}; "
            f"bytes a pixel {grade.crop_rate:.4f}, of a page {grade.page_rate:.4f}"
        )
    print(json.dumps({"fit_prices": asdict(prices)}))


def read_one(reader: Reader, seed: int) -> Case:
    """A generated document as the edge reads it, and which of its lines are right."""
    kind, language = MIX[seed % len(MIX)]
    sample = generate(kind, 10_000 + seed, Split.CALIBRATE, language=language)
    good, encoded = cv2.imencode(".jpg", sample.image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    assert good
    image = reader.prepare(Frame(encoded.tobytes(), f"generated-{seed}"))
    reading = reader.read_all(image)
    reading = replace(reading, document=with_fields(reading.document, extract_fields(reading.document)))
    truth: list[TextLine] = [
        ([(float(x), float(y)) for x, y in line.polygon], line.text) for line in sample.truth.lines
    ]
    height, width = sample.image.shape[:2]
    case = Case(image, reading, (width, height), truth, {})
    return replace(case, labels=labels_of(case, case.page))


def labels_of(case: Case, page: Page) -> dict[str, bool]:
    """Which lines of a reading of the case's page are right, by id."""
    read: dict[str, TextLine] = {}
    for line in page.lines:
        # The truth speaks of the photograph, the reading of the page that was made of it.
        points = apply(case.image.to_frame, np.array(line.polygon)) * case.size
        read[line.id] = ([(float(x), float(y)) for x, y in points], line.text)
    return right_lines(case.truth, read, exact=True)


def measure(
    tally: Tally, case: Case, height: float, quality: int, engine: PipelineEngine | None, effort: Effort
) -> None:
    """Cut and encode at one grade and, with an engine, read again."""
    own = text_height(case.page)
    small = resized(case.image.pixels, height / own if own else 1.0)
    tally.pages.append((small.shape[0] * small.shape[1], len(encode_webp(small, quality, grey=True))))
    wrong = [name for name, good in case.labels.items() if not good]
    right = [name for name, good in case.labels.items() if good]
    wrong = wrong[:: max(1, len(wrong) // MOST)]
    sample = {*wrong, *right[:: max(1, len(right) // (MOST // 2))]}
    crops = []
    for line in case.page.lines:
        if line.id in sample:
            pixels, box = crop(small, with_margin(line.box))
            data = encode_webp(pixels, quality, grey=True)
            tally.crops.append((pixels.shape[0] * pixels.shape[1], len(data)))
            crops.append(Crop(line.id, box, data))
    if engine is None:
        return
    again = engine.read(PageInput(doubted(case.page, sample), crops=tuple(crops)), effort, lambda: False)
    labels = labels_of(case, again)
    tally.wrong += len(wrong)
    tally.repaired += sum(labels.get(name, False) for name in wrong)
    checked = [name for name in right if name in sample]
    tally.right += len(checked)
    tally.spoilt += sum(not labels.get(name, True) for name in checked)


def doubted(page: Page, names: set[str]) -> Page:
    """The page with those lines in doubt and the others sure, so that only those are read again."""
    regions = (
        replace(
            region,
            lines=tuple(replace(line, confidence=0.5 if line.id in names else 1.0) for line in region.lines),
        )
        for region in page.regions
    )
    return replace(page, regions=tuple(regions))


def request_size(case: Case) -> tuple[int, int, int, int]:
    """Lines and characters of a document, bytes of its structure, and of a whole request that holds nothing else."""
    assessment = assess(case.reading, default_calibration())
    reason = Reason("RISK_MET", "the predicted risk meets the target without pictures", 0.01)
    plan = Plan(Route(Decision.STRUCTURE, (reason,), 0.01, 0.02))
    identity = Identity(str(uuid.uuid4()), str(uuid.uuid4()), "IMG_20260101_120000.jpg", 400_000, time.time())
    packed = pack(identity, Examined(case.image, assessment, {}), plan, Pictures())
    payload = pack_reading(assessment.reading)
    texts = [line.text for line in assessment.reading.document.lines]
    return len(texts), sum(map(len, texts)), len(payload.data) + len(payload.texts), len(packed.request)


def fitted(
    tallies: Mapping[tuple[float, int], Tally],
    requests: Sequence[tuple[int, int, int, int]],
    repairs: Mapping[tuple[float, int], float],
    data: str,
) -> Prices:
    """The table: one head for all pictures, a rate for each grade, three numbers for the structure."""
    keys = sorted(tallies)
    # One row a crop: 1 for the head, and its pixels in its grade's column.
    rows = [(at, *sample) for at, key in enumerate(keys) for sample in tallies[key].crops]
    design = np.zeros((len(rows), 1 + len(keys)))
    design[:, 0] = 1.0
    for number, (at, pixels, _) in enumerate(rows):
        design[number, 1 + at] = pixels
    head, *rates = np.linalg.lstsq(design, np.array([size for _, _, size in rows], dtype=float), rcond=None)[0]
    counts = np.array([(1, lines, characters) for lines, characters, _, _ in requests], dtype=float)
    base, line, character = np.linalg.lstsq(counts, np.array([row[2] for row in requests], dtype=float), rcond=None)[0]
    envelope = float(np.mean([row[3] - row[2] for row in requests]))
    return Prices(
        grades=tuple(
            Grade(height, quality, round(repairs[height, quality], 4), round(float(rates[at]), 5), _rate(tally, head))
            for at, (height, quality) in enumerate(keys)
            for tally in [tallies[height, quality]]
        ),
        picture=round(float(head) + _MESSAGE, 1),
        envelope=round(envelope, 1),
        structure=round(float(base), 1),
        line=round(float(line), 3),
        character=round(float(character), 4),
        data=data,
    )


def rising(shares: Mapping[tuple[float, int], float]) -> dict[tuple[float, int], float]:
    """The shares made to rise with both keys: neighbours that fall are pooled, in turn, until none does."""
    fixed = dict(shares)
    for _ in range(100):
        before = dict(fixed)
        for height in {height for height, _ in fixed}:
            _pool(fixed, sorted(key for key in fixed if key[0] == height))
        for quality in {quality for _, quality in fixed}:
            _pool(fixed, sorted(key for key in fixed if key[1] == quality))
        if all(abs(before[key] - fixed[key]) < 1e-6 for key in fixed):
            break
    return fixed


def _pool(shares: dict[tuple[float, int], float], keys: Iterable[tuple[float, int]]) -> None:
    """Pool adjacent violators along one row of the table."""
    blocks: list[tuple[list[tuple[float, int]], float]] = []
    for key in keys:
        block = ([key], shares[key])
        while blocks and blocks[-1][1] > block[1]:
            lower = blocks.pop()
            members = [*lower[0], *block[0]]
            block = (members, (lower[1] * len(lower[0]) + block[1] * len(block[0])) / len(members))
        blocks.append(block)
    for members, share in blocks:
        shares.update(dict.fromkeys(members, share))


def _rate(tally: Tally, head: float) -> float:
    """Bytes a pixel of whole pages."""
    pixels, sizes = sum(p for p, _ in tally.pages), sum(size - head for _, size in tally.pages)
    return round(max(0.0, sizes / max(1, pixels)), 5)


if __name__ == "__main__":
    main()
