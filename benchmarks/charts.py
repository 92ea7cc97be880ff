"""How well the values of generated bar, line and pie charts are measured.

    python -m benchmarks.charts [--count 60] [--pies] [--worst N] [--json FILE]

Charts are drawn by matplotlib in styles that nothing was adjusted to (the generator's judging split). A value counts
where its category and series are found and it is within 5 % of what was drawn; one that is missing, or an extra series,
is wrong. Keys: charts, found (share of charts that gave any values), within_5 (share of all values), shapes {name: the
same}, ms (median a chart).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Any

from rapidfuzz.distance import Levenshtein

from benchmarks.generator.charts import ChartShape, ChartTruth, draw_chart
from benchmarks.generator.truth import Split
from docferry.model_store import default_store
from docferry_cloud.charts.chart import Chart, Series
from docferry_cloud.charts.reader import read_chart
from docferry_cloud.deep.reader import DeepReader

_CLOSE = 0.05
_ALIKE = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--split", default=Split.JUDGE.value, choices=[split.value for split in Split])
    parser.add_argument("--pies", action="store_true", help="pie charts instead of those with an axis of values")
    parser.add_argument("--worst", type=int, default=10, help="how many charts to list, the worst first")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    reader = DeepReader.load(default_store(), threads=2)
    rights: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ms, notes, found = [], [], 0
    for seed in range(options.count):
        drawn = draw_chart(seed, Split(options.split), ChartShape.PIE if options.pies else None)
        began = time.perf_counter()
        chart = read_chart(drawn.pixels, reader, lambda: False)
        ms.append((time.perf_counter() - began) * 1000)
        found += chart is not None
        right, count = judged(drawn.truth, chart)
        rights[drawn.truth.shape.value].append((right, count))
        notes.append((right / count, f"{seed}: {drawn.truth.shape.value}, {right} of {count}; {chart}; {drawn.truth}"))
    report: dict[str, Any] = {
        "charts": options.count,
        "found": round(found / options.count, 4),
        "within_5": _share([pair for pairs in rights.values() for pair in pairs]),
        "shapes": {name: _share(pairs) for name, pairs in sorted(rights.items())},
        "ms": round(median(ms)),
    }
    for _, note in sorted(notes)[: options.worst]:
        print(f"  {note}")
    print(f"{report['within_5']:.3f} of the values are within 5 %, by shape {report['shapes']}")
    line = json.dumps(report)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def judged(truth: ChartTruth, chart: Chart | None) -> tuple[int, int]:
    """How many of a chart's values are right, of how many."""
    count = len(truth.categories) * len(truth.series)
    if chart is None:
        return 0, count
    best = 0
    # Where the legend was not read, any order of the series is taken.
    for order in permutations(range(len(chart.series)), min(len(truth.series), len(chart.series))):
        right = sum(
            _right(truth, name, drawn, chart, chart.series[at])
            for (name, drawn), at in zip(truth.series, order, strict=False)
        )
        best = max(best, right)
    return best, max(count, len(truth.categories) * len(chart.series))


def _right(truth: ChartTruth, name: str, drawn: tuple[float, ...], chart: Chart, series: Series) -> int:
    if series.name and name and not _alike(series.name, name):
        return 0
    right = 0
    for category, value in zip(truth.categories, drawn, strict=True):
        at = next((place for place, text in enumerate(chart.categories) if _alike(text, category)), None)
        measured = None if at is None else series.values[at]
        right += measured is not None and abs(measured - value) <= _CLOSE * abs(value)
    return right


def _alike(one: str, other: str) -> bool:
    return Levenshtein.normalized_distance(one.casefold(), other.casefold()) <= (0 if other.isdigit() else _ALIKE)


def _share(pairs: list[tuple[int, int]]) -> float:
    return round(sum(right for right, _ in pairs) / max(1, sum(count for _, count in pairs)), 4)


if __name__ == "__main__":
    main()
