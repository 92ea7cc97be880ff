"""Judging tables by TEDS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.teds import teds
from benchmarks.understanding_data import Judged, Truth
from docferry.tables import from_html
from docferry_cloud.interpret import Interpretation


def judge_table(truth: Truth, answer: Interpretation) -> Judged:
    """A picture of one table: the first table found against it."""
    wanted = truth.truth["html"]
    found = next((region.html for page in answer.document.pages for region in page.regions if region.html), "")
    score = teds(wanted, found)
    values = {"teds": score, "structure": teds(wanted, found, structure=True)}
    return Judged(truth.id, score, _differences(wanted, found), values)


def summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Means over tables."""
    return {
        "teds": _mean([one.values["teds"] for one in judged]),
        "teds_structure": _mean([one.values["structure"] for one in judged]),
    }


def _differences(wanted: str, found: str) -> tuple[str, ...]:
    if not found:
        return ("no table was found",)
    one, other = from_html(wanted), from_html(found)
    if (one.height, one.width) != (other.height, other.width):
        return (f"{other.height} rows of {other.width} columns instead of {one.height} of {one.width}",)
    rows = zip(one.texts(), other.texts(), strict=True)
    pairs = [pair for row in rows for pair in zip(*row, strict=True)]
    return tuple(f"{truth!r} read as {read!r}" for truth, read in pairs if truth != read)[:5]


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
