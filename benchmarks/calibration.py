"""What the shipped calibration is worth, and what one fitted on a data set's own documents is worth there.

    python -m benchmarks.calibration [--data DIR] [--labels DIR] [--plots DIR] [--json FILE]

Generated documents are the generator's JUDGE split. `shipped` takes the calibration that ships as it is. `fitted`
fits on some of the data set's documents (weights drawn towards the shipped ones) and judges on the others: five
random splits by document into halves, and five into fifths (four to fit on), each part judged once. A claim that the
fitted documents are too few for accepts nothing and counts with coverage 0. Intervals: of `shipped` from resampled
documents; of `fitted` the mean over all fits plus and minus 1.96 of its standard error, fits taken as independent,
which they are not quite.

Real truths have slips. `raw` takes them as they are. `adjudicated` takes a wrong line for right where a second
network of another family (PP-OCRv5) reads the same text: two readers against one truth. Lines are compared loosely
there: letters in one case, digits, decimal points.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration_data import Labelled, Readers, folders, from_folder, generated, lines_of, only_labels
from benchmarks.calibration_plots import draw
from benchmarks.calibration_worth import auroc, columns, expected_error, heads_worth, judged_by, kept, worth
from benchmarks.generator.truth import Split
from docferry.calibration import Calibration
from docferry.confidence.guarantees import Judged
from docferry.model_store import default_store
from docferry_edge.calibrating.fit import LEAST_DOCUMENTS, Claim, fit
from docferry_edge.calibrating.labels import LabelledDocument
from docferry_edge.examine import default_calibration

RISKS = (0.02, 0.05, 0.10)
SPLITS = 5
PARTS = {"halves": 2, "fifths": 5}
"""Parts that the documents are split into; each is judged by a fit on the others."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="one data set, or a folder of them; without it only generated ones")
    parser.add_argument("--judge", type=int, default=100, help="generated documents")
    parser.add_argument("--labels", type=Path, help="keep the labels in this folder, and take them from there again")
    parser.add_argument("--plots", type=Path, help="write reliability and risk-coverage plots there")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    readers = cache(lambda: Readers.load(default_store()))
    sets: dict[str, list[LabelledDocument]] = {
        "generated": only_labels(generated(readers, Split.JUDGE, range(options.judge), options.labels))
    }
    for folder in folders(options.data) if options.data is not None else ():
        labels = from_folder(readers, folder, options.labels)
        sets[folder.name] = only_labels(labels)
        sets[f"{folder.name} adjudicated"] = _adjudicated(labels)
    shipped = default_calibration()
    report: dict[str, Any] = {}
    for name, documents in sets.items():
        judged = judged_by(shipped, documents)
        report[name] = {
            "documents": len(documents),
            "lines": lines_of(documents),
            "score_auroc": round(auroc(*_scores(documents)), 4),
            "shipped": worth(judged, shipped.thresholds),
            "heads": heads_worth(shipped, documents, judged),
            "fitted": {
                name_of: over_splits(documents, parts, shipped)
                for name_of, parts in PARTS.items()
                if len(documents) >= LEAST_DOCUMENTS * 2
            },
        }
        show(name, report[name])
        if options.plots is not None:
            draw(name, *columns(judged), options.plots)
    line = json.dumps({"calibration": report})
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def over_splits(documents: Sequence[LabelledDocument], parts: int, prior: Calibration) -> dict[str, Any]:
    """Fit on all parts but one and judge on that one, for every part of every split; means with intervals."""
    rows: list[dict[str, float]] = []
    for split in range(SPLITS):
        part_of = np.random.default_rng(split).permutation(len(documents)) % parts
        for part in range(parts):
            fitted = fit(
                [one for one, where in zip(documents, part_of, strict=True) if where != part],
                [Claim(risk) for risk in RISKS],
                data="a split",
                date="",
                prior=prior,
            )
            held_out = [one for one, where in zip(documents, part_of, strict=True) if where == part]
            rows.append(_row(judged_by(fitted.calibration, held_out), fitted.calibration))
    keys = ("auroc", "ece", *(f"{name} {risk:g}" for risk in RISKS for name in ("risk", "coverage")))
    return {key: _mean([row[key] for row in rows if key in row]) for key in keys}


def _row(judged: Sequence[Judged], calibration: Calibration) -> dict[str, float]:
    sure, right = columns(judged)
    row = {"auroc": auroc(sure, right), "ece": expected_error(sure, right)}
    for risk in RISKS:
        found = next((one for one in calibration.thresholds if one.target_risk == risk), None)
        row[f"coverage {risk:g}"] = 0.0
        if found is not None:
            numbers = kept(judged, found.least)
            row[f"coverage {risk:g}"], row[f"risk {risk:g}"] = numbers["coverage"], numbers["risk"]
    return row


def _mean(values: Sequence[float]) -> dict[str, Any] | None:
    """Mean, 95 % interval and number of fits; None where no fit could make the claim."""
    if not values:
        return None
    mean = float(np.mean(values))
    error = 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": round(mean, 4), "95": [round(mean - error, 4), round(mean + error, 4)], "fits": len(values)}


def _adjudicated(labels: Sequence[Labelled]) -> list[LabelledDocument]:
    return [document.adjudicated for document in labels]


def _scores(documents: Sequence[LabelledDocument]) -> tuple[Any, Any]:
    return columns([Judged(tuple((line.score, line.right) for line in one.lines)) for one in documents])


def show(name: str, found: dict[str, Any]) -> None:
    """The table for people."""
    shipped = found["shipped"]
    print(f"{name}: {found['documents']} documents, {found['lines']} lines, {shipped['right']:.1%} right")
    print(f"  AUROC of the score alone {found['score_auroc']:.3f}")
    print(f"  shipped   AUROC {shipped['auroc']:.3f}  ECE {shipped['ece']:.3f}")
    for key, one in shipped.items():
        if isinstance(one, dict):
            print(f"    target {key:9} risk {one['risk']:.3f} {one['risk_95']}  coverage {one['coverage']:.3f}")
    for head, one in found["heads"].items():
        print(f"  {head}: {', '.join(f'{key} {value}' for key, value in one.items())}")
    for parts, one in found["fitted"].items():
        print(f"  fitted ({parts}) AUROC {one['auroc']['mean']:.3f}  ECE {one['ece']['mean']:.3f}")
        for risk in RISKS:
            kept_risk, coverage = one[f"risk {risk:g}"], one[f"coverage {risk:g}"]
            told = "refused" if kept_risk is None else f"risk {kept_risk['mean']:.3f} {kept_risk['95']}"
            fits = f"{0 if kept_risk is None else kept_risk['fits']} of {coverage['fits']} fits"
            print(f"    target {risk:<9g} {told}  coverage {coverage['mean']:.3f} {coverage['95']}  {fits}")


if __name__ == "__main__":
    main()
