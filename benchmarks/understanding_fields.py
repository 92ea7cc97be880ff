"""Judging fields by exact match after normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

from benchmarks.metrics import folded, same_field
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


_INVOICE = {"amount": "total", "amount_untaxed": "subtotal", "amount_tax": "tax"}
_SAME = ("date", "invoice_number", "currency")
_CHINESE = {"seller_name": "merchant", "total_amount": "total", "total": "total", "amount_without_tax": "subtotal"}


def judge_invoice(truth: Truth, answer: Interpretation) -> Judged:
    """Totals, dates and numbers of an invoice; a field that the truth gives as null must stay absent."""
    wanted = truth.truth["fields"]
    names = {**_INVOICE, **_CHINESE, **{name: name for name in _SAME}}
    found = {field.name: field.normalized for field in answer.document.fields}
    right: dict[str, bool] = {}
    notes = []
    for name, ours in names.items():
        if name not in wanted:
            continue
        read = found.get(ours, "")
        right[ours] = not read if wanted[name] is None else _same(ours, str(wanted[name]), read)
        if not right[ours]:
            notes.append(f"{ours}: {wanted[name]!r} read as {read!r}")
    return Judged(truth.id, sum(right.values()) / max(1, len(right)), tuple(notes), right)


def _same(name: str, wanted: str, read: str) -> bool:
    if name in {"total", "subtotal", "tax"}:
        # The truth's decimals are floats; both are plain decimals.
        return bool(read) and abs(float(wanted) - float(read)) < 0.005
    return same_field(name, wanted, read)


SIMILAR = 0.8
"""Edit similarity from which on a key or a value counts as read."""


def judge_form(truth: Truth, answer: Interpretation) -> Judged:
    """Key-value pairs: both sides at least 0.8 alike after folding; each pair of the truth is met once."""
    wanted = [
        (folded(pair["question"]), folded(pair["answer"]))
        for pair in truth.truth["pairs"]
        if folded(pair["question"]) and folded(pair["answer"])
    ]
    found = [(folded(field.name), folded(field.value)) for field in answer.document.fields]
    free = list(wanted)
    met = 0
    for key, value in found:
        match = next((pair for pair in free if _alike(pair[0], key) and _alike(pair[1], value)), None)
        if match is not None:
            free.remove(match)
            met += 1
    f1 = 2 * met / (len(wanted) + len(found)) if wanted or found else 1.0
    notes = tuple(f"not found: {key!r} = {value!r}" for key, value in free)[:6]
    return Judged(truth.id, f1, notes, {"met": met, "wanted": len(wanted), "found": len(found)})


def form_summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """F1 over all pairs."""
    met, wanted, found = (sum(one.values[name] for one in judged) for name in ("met", "wanted", "found"))
    return {
        "pair_f1": round(2 * met / max(1, wanted + found), 4),
        "pair_precision": round(met / max(1, found), 4),
        "pair_recall": round(met / max(1, wanted), 4),
    }


def _alike(one: str, other: str) -> bool:
    return Levenshtein.normalized_similarity(one, other) >= SIMILAR
