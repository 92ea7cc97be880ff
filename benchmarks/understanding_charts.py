"""Judging questions about charts: the measure of ChartQA, numbers within 5 %, anything else letter by letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.understanding_data import Judged, Truth
from docferry.document import RegionType
from docferry.tables import parse_number
from docferry_cloud.interpret import Interpretation
from docferry_cloud.meaning import Answerer

_CLOSE = 0.05


def judge_questions(truth: Truth, answer: Interpretation) -> Judged:
    """Every question of a chart; one that is not answered is not right."""
    answerer = Answerer(answer.document)
    right = answered = 0
    notes = []
    for asked in truth.truth["qa"]:
        found = answerer.answer(asked["question"]).answer
        answered += bool(found)
        good = _same(found, str(asked["answer"]))
        right += good
        if not good:
            notes.append(f"{asked['question'][:80]} | {found[:40]} | {asked['answer']}")
    count = len(truth.truth["qa"])
    measured = any(
        region.type is RegionType.CHART and region.html for page in answer.document.pages for region in page.regions
    )
    values = {"right": right, "answered": answered, "count": count, "measured": float(measured)}
    return Judged(truth.id, right / max(1, count), tuple(notes[:6]), values)


def questions_summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Shares of all questions, and of the charts that gave values."""
    right, answered, count = (sum(one.values[name] for one in judged) for name in ("right", "answered", "count"))
    measured = sum(one.values["measured"] for one in judged)
    return {
        "qa": round(right / max(1, count), 4),
        "qa_answered": round(answered / max(1, count), 4),
        "qa_count": count,
        "charts_measured": round(measured / max(1, len(judged)), 4),
    }


def _same(found: str, wanted: str) -> bool:
    one, other = parse_number(found), parse_number(wanted)
    if one is not None and other is not None:
        return abs(float(one - other)) <= _CLOSE * abs(float(other))
    return found.strip().casefold() == wanted.strip().casefold()
