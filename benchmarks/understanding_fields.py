"""Judging fields by exact match after normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.metrics import same_field
from benchmarks.understanding_data import Judged, Truth
from docferry_cloud.interpret import Interpretation

RECEIPT = {"company": "merchant", "address": "address", "date": "date", "total": "total"}
"""sroie's names and ours."""


def judge_receipt(truth: Truth, answer: Interpretation) -> Judged:
    """The four fields of a receipt."""
    found = {field.name: field.normalized for field in answer.document.fields}
    right: dict[str, bool] = {}
    notes = []
    for name, ours in RECEIPT.items():
        wanted, read = truth.truth["fields"][name], found.get(ours, "")
        right[name] = same_field(name, wanted, read)
        if not right[name]:
            notes.append(f"{name}: {wanted!r} read as {read!r}")
    return Judged(truth.id, sum(right.values()) / len(right), tuple(notes), right)


def summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Share right of each field, among the documents that have it."""
    names = sorted({name for one in judged for name in one.values})
    fields = {name: [one.values[name] for one in judged if name in one.values] for name in names}
    return {"fields": {name: round(sum(right) / len(right), 4) for name, right in fields.items()}}
