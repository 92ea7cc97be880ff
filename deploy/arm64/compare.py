"""Whether two runs of `docferry read --json` over the same files say the same, up to rounding.

    python deploy/arm64/compare.py HERE.jsonl THERE.jsonl

The same: pages of the same size, the same regions in the same order, the same lines with the same text, the same
fields and Markdown; every score and region confidence within 0.01; every corner within what one pixel of the detector's
map makes. A line's calibrated confidence is a step function of its score and is shown, not judged. The exit status is 3
when they differ.

A pixel of that map whose probability lies at the threshold falls on this side here and on the other there. It moves an
edge of the line's core, w by h, by one pixel, and with it the distance wh/(w+h) by which the core is grown back
(docferry/vision/detector.py): by less than one more. So a corner may move by two pixels of the map, which on a page
larger than the map are more of the page's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from docferry.vision.detector import DetectorSettings, input_size

MAP_PIXELS = 2.0
SCORE = 0.01
DIFFERENT = 3


@dataclass(slots=True)
class Comparison:
    """What was found in one document.

    Attributes:
        lines: How many lines were compared.
        differences: What is not the same, in words.
        pixels: The largest distance of a coordinate, in pixels of the prepared page.
        score: The largest difference of a score.
        confidence: The largest difference of a line's calibrated confidence.
    """

    lines: int = 0
    differences: list[str] = field(default_factory=list)
    pixels: float = 0.0
    score: float = 0.0
    confidence: float = 0.0

    def same(self, what: str, here: Any, there: Any) -> None:
        """Note it when two values are not equal."""
        if here != there:
            self.differences.append(f"{what}: {here!r} here, {there!r} there")

    def near(self, what: str, here: Iterable[float], there: Iterable[float], size: tuple[int, int]) -> None:
        """Compare coordinates x, y, x, y, ..., 0..1, of a page of this width and height in pixels."""
        seen = input_size(*size, DetectorSettings())
        pairs = list(zip_longest(here, there, fillvalue=float("inf")))
        for axis in (0, 1):
            apart = max((abs(a - b) for a, b in pairs[axis::2]), default=0.0)
            self.pixels = max(self.pixels, apart * size[axis])
            if apart * seen[axis] > MAP_PIXELS:
                self.differences.append(f"{what} is {apart * size[axis]:.2f} pixels apart")

    def scored(self, what: str, here: float | None, there: float | None) -> None:
        """Compare two scores, 0..1; None where there is none."""
        if here is None or there is None:
            self.same(what, here, there)
            return
        self.score = max(self.score, abs(here - there))
        if abs(here - there) > SCORE:
            self.differences.append(f"{what} is {here} here, {there} there")


def compare(here: dict[str, Any], there: dict[str, Any]) -> Comparison:
    """Compare one document's JSON objects."""
    found = Comparison()
    found.same("status", here["status"], there["status"])
    if here["status"] == there["status"] == "failed":
        found.same("error", here["error"], there["error"])
        return found
    found.same("number of pages", len(here["pages"]), len(there["pages"]))
    for number, (one, other) in enumerate(zip(here["pages"], there["pages"], strict=False), 1):
        _pages(found, f"page {number}", one, other)
    found.same("fields", list(_fields(here)), list(_fields(there)))
    rows = zip_longest(here["markdown"].splitlines(), there["markdown"].splitlines())
    for number, (one, other) in enumerate(rows, 1):
        found.same(f"markdown, row {number}", one, other)
    return found


def _pages(found: Comparison, what: str, here: dict[str, Any], there: dict[str, Any]) -> None:
    size = (here["width"], here["height"])
    found.same(f"{what}: size", size, (there["width"], there["height"]))
    found.same(f"{what}: number of regions", len(here["regions"]), len(there["regions"]))
    for one, other in zip(here["regions"], there["regions"], strict=False):
        _regions(found, f"{what}, region {one['id']}", one, other, size)


def _regions(found: Comparison, what: str, here: dict[str, Any], there: dict[str, Any], size: tuple[int, int]) -> None:
    for name in ("type", "order", "html"):
        found.same(f"{what}: {name}", here[name], there[name])
    found.near(f"{what}: box", here["box"], there["box"], size)
    found.scored(f"{what}: score", here["score"], there["score"])
    found.scored(f"{what}: confidence", here["confidence"], there["confidence"])
    found.same(f"{what}: number of lines", len(here["lines"]), len(there["lines"]))
    for one, other in zip(here["lines"], there["lines"], strict=False):
        found.lines += 1
        line = f"{what}, line {one['id']}"
        found.same(f"{line}: text", one["text"], other["text"])
        found.same(f"{line}: reader", one["provenance"], other["provenance"])
        found.near(f"{line}: polygon", chain(*one["polygon"]), chain(*other["polygon"]), size)
        found.scored(f"{line}: score", one["score"], other["score"])
        if one["confidence"] is not None and other["confidence"] is not None:
            found.confidence = max(found.confidence, abs(one["confidence"] - other["confidence"]))


def _fields(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for entry in document["fields"]:
        yield entry["name"], entry["value"], entry["normalized"]


def main(here: Path, there: Path) -> int:
    """Print a line a document and every difference; give the exit status."""
    one, other = _documents(here), _documents(there)
    status = 0 if one.keys() == other.keys() and one else DIFFERENT
    if status:
        print(f"not the same files: {sorted(one)} here, {sorted(other)} there")
    for name in sorted(one.keys() & other.keys()):
        found = compare(one[name], other[name])
        verdict = f"{len(found.differences)} DIFFERENCES" if found.differences else "same text"
        print(
            f"{name}: {found.lines} lines, {verdict}; at most {found.pixels:.2f} pixels,"
            f" {found.score:.5f} in score, {found.confidence:.5f} in confidence apart"
            f" (read {one[name]['timings_ms']['read']} ms here, {other[name]['timings_ms']['read']} ms there)"
        )
        for difference in found.differences:
            print(f"    {difference}")
            status = DIFFERENT
    return status


def _documents(file: Path) -> dict[str, dict[str, Any]]:
    trees = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {Path(tree["file"]).name: tree for tree in trees}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
