"""Fit the calibration that ships: all signals to P(line is exactly right), on generated documents only.

    python -m benchmarks.fit_calibration [--documents 240] [--judge 100] [--labels DIR] [--out FILE]

Two of three documents are of the generator's CALIBRATE split, one of its TRAIN split: more fonts, layouts and words.
On the JUDGE split, never fitted on and of other fonts, layouts and words, it prints what the calibration is worth;
`benchmarks.calibration` does so at length.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from benchmarks.calibration_data import Readers, generated, lines_of, only_labels
from benchmarks.calibration_worth import judged_by, worth
from benchmarks.generator.truth import Split
from docferry.calibration import dump_calibration
from docferry.model_store import default_store
from docferry_edge.calibrating.command import told
from docferry_edge.calibrating.fit import Claim, fit

CLAIMS = (
    *(Claim(risk) for risk in (0.02, 0.05, 0.10)),
    *(Claim(risk, 0.95) for risk in (0.02, 0.05, 0.10)),
)
"""The thresholds that ship: on average, and with a probability of 95 %."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=240)
    parser.add_argument("--judge", type=int, default=100)
    parser.add_argument("--labels", type=Path, help="keep the labels in this folder, and take them from there again")
    parser.add_argument("--out", type=Path, default=Path("edge/docferry_edge/calibration.json"))
    options = parser.parse_args()
    readers = cache(lambda: Readers.load(default_store()))
    third = options.documents // 3
    labels = only_labels(
        [
            *generated(readers, Split.CALIBRATE, range(options.documents - third), options.labels),
            *generated(readers, Split.TRAIN, range(third), options.labels),
        ]
    )
    fitted = fit(
        labels,
        CLAIMS,
        data="benchmarks.generator, splits CALIBRATE and TRAIN: receipts, invoices and pages in English and Chinese",
        date=datetime.now(UTC).date().isoformat(),
    )
    options.out.write_text(dump_calibration(fitted.calibration), encoding="utf-8")
    for line in told(fitted):
        print(line)
    judge = only_labels(generated(readers, Split.JUDGE, range(options.judge), options.labels))
    report = worth(judged_by(fitted.calibration, judge), fitted.calibration.thresholds)
    print(json.dumps({"fit_calibration": {"documents": len(judge), "lines": lines_of(judge), **report}}))


if __name__ == "__main__":
    main()
