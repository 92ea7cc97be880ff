"""Fit deep reading's calibration: from a vote's belief to P(line is exactly right), on generated documents only.

    python -m benchmarks.fit_deep_calibration [--documents 60] [--judge 30] [--labels FILE] [--out FILE]

Fitted on the generator's CALIBRATE split by pool adjacent violators; on the JUDGE split, never fitted on, it prints
what the map is worth and, last, one JSON line: `{fit_deep_calibration: {lines, right, ece, auroc, auroc_of_score,
risk_at_coverage}}`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration_worth import auroc, expected_error
from benchmarks.generated_pages import MIX, GeneratedPage, generated_page
from benchmarks.generator.truth import Split
from docferry.calibration import Calibration
from docferry.document import Line
from docferry.model_store import default_store
from docferry.vision.orientation import OrientationClassifier
from docferry.vision.quads import relative
from docferry.vision.sessions import open_network
from docferry_cloud.deep.alignment import matches
from docferry_cloud.deep.reader import DeepReader
from docferry_edge.calibrating.matching import TextLine, line_groups
from docferry_edge.calibrating.regression import isotonic

Label = tuple[float, float, bool]
"""A line's belief, the main recogniser's score, and whether its text is exactly right."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--judge", type=int, default=30)
    parser.add_argument("--labels", type=Path, help="keep the labels here, document by document, and go on from there")
    parser.add_argument("--out", type=Path, default=Path("cloud/docferry_cloud/deep/calibration.json"))
    options = parser.parse_args()
    reader = DeepReader.load(default_store(), threads=2)
    fitted = labels_of(reader, options.documents, Split.CALIBRATE, options.labels)
    judged = labels_of(reader, options.judge, Split.JUDGE, options.labels)
    pairs = [(belief, right) for belief, _, right in fitted]
    calibration = Calibration(
        knots=isotonic(pairs),
        reader=reader.provenance,
        documents=options.documents,
        lines=len(pairs),
        data="benchmarks.generator, split CALIBRATE: receipts, invoices and pages in English and Chinese",
        data_sha256=hashlib.sha256(json.dumps(pairs).encode()).hexdigest(),
        date=datetime.now(UTC).date().isoformat(),
    )
    options.out.write_text(json.dumps(asdict(calibration), indent=1) + "\n", encoding="utf-8")
    print(f"fitted on {len(pairs)} lines of {options.documents} documents: {len(calibration.knots)} knots")
    print(json.dumps({"fit_deep_calibration": report(judged, calibration)}))


def report(judged: Sequence[Label], calibration: Calibration) -> dict[str, Any]:
    """What the map is worth on lines it was not fitted on."""
    sure = np.array([calibration.confidence(belief) for belief, _, _ in judged])
    belief = np.array([belief for belief, _, _ in judged])
    score = np.array([score for _, score, _ in judged])
    right = np.array([float(right) for _, _, right in judged])
    ordered = right[np.argsort(-belief, kind="stable")]
    return {
        "lines": len(judged),
        "right": round(float(right.mean()), 4),
        "ece": round(expected_error(sure, right), 4),
        "auroc": round(auroc(belief, right), 4),
        "auroc_of_score": round(auroc(score, right), 4),
        "risk_at_coverage": {
            f"{coverage:.1f}": round(1 - float(ordered[: round(coverage * len(ordered))].mean()), 4)
            for coverage in (0.5, 0.7, 0.8, 0.9, 1.0)
        },
    }


def labels_of(reader: DeepReader, documents: int, split: Split, file: Path | None) -> list[Label]:
    """Labels of the split's first documents; those that `file` holds already are not read again."""
    kept: dict[str, list[Label]] = json.loads(file.read_text()) if file is not None and file.exists() else {}
    classifier = OrientationClassifier.of(open_network(default_store().path("page-orientation"), threads=2))
    labels: list[Label] = []
    for seed in range(documents):
        key = f"{split.value}-{seed}"
        if key not in kept:
            kind, language = MIX[seed % len(MIX)]
            kept[key] = list(labelled(reader, generated_page(kind, language, seed, split, classifier)))
            if file is not None:
                file.write_text(json.dumps(kept), encoding="utf-8")
        labels += [(float(belief), float(score), bool(right)) for belief, score, right in kept[key]]
    return labels


def labelled(reader: DeepReader, generated: GeneratedPage) -> Iterable[Label]:
    """Every line of one document, compared by place with what is printed there."""
    page = generated.page
    lines = reader.read(page.pixels, lambda: False)
    placed = [
        generated.read(Line("", line.text, relative(line.quad, page.width, page.height), line.score)) for line in lines
    ]
    by_shape = {id(shape): line for shape, line in zip(placed, lines, strict=True)}
    for printed, got in line_groups(generated.printed(), placed):
        for shape, right in zip(_across(got), rights(_across(printed), _across(got)), strict=True):
            line = by_shape[id(shape)]
            yield line.voted.belief, line.score, right


def rights(printed: Sequence[TextLine], read: Sequence[TextLine]) -> list[bool]:
    """Which of the lines read in one place are right: truth and reader may cut a row differently.

    A line is right if all of its letters stand, unbroken, where the group's texts run side by side, and if it is all
    that was read there, if nothing more is printed.
    """
    whole = "".join(plain(text) for _, text in printed)
    texts = [plain(text) for _, text in read]
    if len(texts) == 1:
        return [texts[0] == whole]
    at = {mine: theirs for theirs, mine in matches(whole, "".join(texts))}
    found: list[bool] = []
    start = 0
    for text in texts:
        places = [at.get(place) for place in range(start, start + len(text))]
        first = places[0] if places else None
        found.append(first is not None and places == list(range(first, first + len(text))))
        start += len(text)
    return found


def plain(text: str) -> str:
    """One width, no spaces."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _across(lines: Sequence[TextLine]) -> list[TextLine]:
    return sorted(lines, key=lambda line: min(x for x, _ in line[0]))


if __name__ == "__main__":
    main()
