"""The line crop as the unit of routing: how much of what a second reading can gain comes for how many pixels.

Every line of a document is cut out and goes up as in service, with the confidence that the shipped calibration gives
it; the engine reads it again, or lets a sure one stand. Reading it again gains one line where it was wrong and
is right afterwards, and loses one where it was right and is wrong. Lines are then sent in a router's order; the rate is
the share of all crop pixels that has been sent, the gain the share of the most that any order could have kept.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.routing_data import Case, frame_size, labels_of
from benchmarks.routing_runs import Bench
from docferry.calibration import Calibration
from docferry.vision.crops import crop
from docferry.vision.images import encode_webp
from docferry_cloud.engine import Crop, PageInput
from docferry_edge.assess import assess
from docferry_edge.examine import default_calibration
from docferry_edge.selection import with_margin

Floats = npt.NDArray[np.float64]
RATES = np.linspace(0.0, 1.0, 101)
QUALITY = 65


@dataclass(frozen=True, slots=True)
class Unit:
    """One line.

    Attributes:
        pixels: Of its crop.
        gain: 1, 0 or -1.
        score: The recogniser's raw score.
        value: What our router expects of it: the calibrated probability that it is wrong.
        key: A number that knows nothing, for the random order.
    """

    document: str
    pixels: int
    gain: int
    score: float
    value: float
    key: float


Order = Callable[[Unit], float]
"""Lines are sent in falling order of this."""

ORDERS: dict[str, Order] = {
    "ours": lambda unit: unit.value / unit.pixels,
    "threshold": lambda unit: -unit.score,
    "random": lambda unit: unit.key,
    "oracle": lambda unit: unit.gain / unit.pixels,
}


def units(case: Case, calibration: Calibration, bench: Bench) -> list[Unit]:
    """The lines of a document that can be compared before and after."""
    after = _read_again(case, bench)
    risks = {line.line.id: line.risk for line in assess(case.reading, calibration).lines}
    found = []
    for line in case.reading.document.pages[0].lines:
        if line.id in case.labels and line.id in after:
            pixels, _ = crop(case.page.pixels, with_margin(line.box))
            gain = int(after[line.id]) - int(case.labels[line.id])
            key = random.Random(f"{case.name}/{line.id}").random()
            area = pixels.shape[0] * pixels.shape[1]
            found.append(Unit(case.name, area, gain, line.score, risks[line.id], key))
    return found


def curve(lines: Sequence[Unit], order: Order) -> Floats:
    """Gain in lines at each of `RATES`."""
    ranked = sorted(lines, key=lambda unit: (-order(unit), unit.key))
    pixels = np.cumsum([0.0, *(unit.pixels for unit in ranked)])
    gains = np.cumsum([0.0, *(unit.gain for unit in ranked)])
    return np.asarray(np.interp(RATES, pixels / max(1.0, pixels[-1]), gains), dtype=np.float64)


def summary(lines: Sequence[Unit], resamples: int = 300) -> dict[str, Any]:
    """Curves, the share of the oracle's gain at a rate of a quarter, and areas with a paired bootstrap by document."""
    curves = {name: curve(lines, order) for name, order in ORDERS.items()}
    top = max(1e-9, float(curves["oracle"].max()))
    quarter = int(np.argmin(abs(RATES - 0.25)))
    areas = {name: round(float(values.mean()) / top, 4) for name, values in curves.items()}
    return {
        "lines": len(lines),
        "gain": int(curves["oracle"].max()),
        "at_25": {
            name: round(float(values[quarter]) / max(1e-9, float(curves["oracle"][quarter])), 4)
            for name, values in curves.items()
        },
        "area": areas,
        "better_than": {name: _paired(lines, name, resamples) for name in ("threshold", "random")},
        "curves": {name: [round(float(value) / top, 4) for value in values[::5]] for name, values in curves.items()},
    }


def _paired(lines: Sequence[Unit], other: str, resamples: int) -> dict[str, float]:
    """By how much our area is larger, with its 95 % interval, documents drawn with replacement."""
    by_document: dict[str, list[Unit]] = {}
    for unit in lines:
        by_document.setdefault(unit.document, []).append(unit)
    names = sorted(by_document)
    rng = random.Random(0)
    gaps = []
    for _ in range(resamples):
        drawn = [unit for name in rng.choices(names, k=len(names)) for unit in by_document[name]]
        gaps.append(_gap(drawn, other))
    low, high = np.quantile(gaps, (0.025, 0.975))
    return {"mean": round(_gap(lines, other), 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def _gap(lines: Sequence[Unit], other: str) -> float:
    top = max(1e-9, float(curve(lines, ORDERS["oracle"]).max()))
    return float((curve(lines, ORDERS["ours"]) - curve(lines, ORDERS[other])).mean()) / top


def _read_again(case: Case, bench: Bench) -> dict[str, bool]:
    """Which lines are right once each was read again from a crop of its own; kept in the cache."""
    file = bench.cache / f"unit-{bench.label}-{case.name}.json".replace("/", "_")
    if file.exists():
        labels: dict[str, bool] = json.loads(file.read_text(encoding="utf-8"))
        return labels
    page = assess(case.reading, default_calibration()).reading.document.pages[0]
    crops = []
    for line in page.lines:
        pixels, box = crop(case.page.pixels, with_margin(line.box))
        crops.append(Crop(line.id, box, encode_webp(pixels, QUALITY, grey=True)))
    again = bench.engine.read(PageInput(page, crops=tuple(crops)), bench.effort, lambda: False)
    labels = labels_of(case.truth, case.page, again, frame_size(case))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(labels), encoding="utf-8")
    return labels
