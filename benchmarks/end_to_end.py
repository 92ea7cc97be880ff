"""The whole way, file → edge → gRPC → cloud → event, on documents with truth.

    python -m benchmarks.end_to_end --data DIR [--limit N] [--json FILE]

Files are put into a watched folder one at a time, as at a kiosk, with agent, service and webhook receiver on this
machine. Times count from the moment the file appears to the signed webhook's arrival. Fields are compared as letters
and digits, case folded; amounts as decimals; dates as ISO. `near` counts texts that differ by at most a tenth of
their characters: some truths have slips of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.metrics import WordCounts, folded, same_field, word_counts
from benchmarks.reading_data import Sample, datasets
from docferry.embedded import Embedded, running
from docferry.errors import DocferryError

FIELDS = {"company": "merchant", "address": "address", "date": "date", "total": "total"}
"""The truth's names and ours."""


@dataclass(slots=True)
class Tally:
    """What adds up over one data set."""

    documents: int = 0
    completed: int = 0
    words: WordCounts = field(default_factory=WordCounts)
    edge_words: WordCounts = field(default_factory=WordCounts)
    asked: Counter[str] = field(default_factory=Counter)
    exact: Counter[str] = field(default_factory=Counter)
    near: Counter[str] = field(default_factory=Counter)
    original_bytes: int = 0
    sent_bytes: int = 0
    ms: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="documents of each dataset; 0 means all")
    parser.add_argument("--settings", default="", help="more lines for the agent's TOML file")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {}
    for name, samples in datasets(options.data).items():
        chosen = samples[: options.limit] if options.limit else samples
        tally = asyncio.run(measure(chosen, options.settings.replace("\\n", "\n")))
        report[name] = summary(tally)
        show(name, tally, report[name])
    line = json.dumps(report)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


async def measure(samples: Sequence[Sample], settings: str) -> Tally:
    """Send every sample through one running system."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="docferry-bench-") as folder:
        async with running(Path(folder), settings) as system:
            for sample in samples:
                await _one(system, sample, tally)
    return tally


def summary(tally: Tally) -> dict[str, Any]:
    """The stable keys, and those that explain them."""
    everything = [ms for group in tally.ms.values() for ms in group]
    return {
        "documents": tally.documents,
        "completed": tally.completed,
        "fields": {name: _rate(tally.exact[name], tally.asked[name]) for name in FIELDS if tally.asked[name]},
        "near": {name: _rate(tally.near[name], tally.asked[name]) for name in FIELDS if tally.asked[name]},
        "word_f1": round(tally.words.f1, 4),
        "edge_word_f1": round(tally.edge_words.f1, 4),
        "bytes_share": _rate(tally.sent_bytes, tally.original_bytes),
        "p50_ms": _p50(everything),
        "p95_ms": _p95(everything),
        "routes": {
            route: {"documents": len(ms), "p50_ms": _p50(ms), "p95_ms": _p95(ms)} for route, ms in tally.ms.items()
        },
    }


def show(name: str, tally: Tally, result: dict[str, Any]) -> None:
    """The same for people."""
    print(f"{name}: {result['completed']} of {result['documents']} documents came back")
    for message in tally.errors:
        print(f"  failed: {message}")
    print(f"  word F1 {result['word_f1']:.4f} (the edge alone {result['edge_word_f1']:.4f})")
    for key in result["fields"]:
        print(f"  {key:<8} exact {result['fields'][key]:.3f}   near {result['near'][key]:.3f}")
    print(f"  bytes sent / original {result['bytes_share']:.4f}")
    print(f"  file to event: p50 {result['p50_ms']} ms, p95 {result['p95_ms']} ms")
    for route, times in result["routes"].items():
        print(f"    {route:<9} {times['documents']:>3} documents, p50 {times['p50_ms']} ms, p95 {times['p95_ms']} ms")


async def _one(system: Embedded, sample: Sample, tally: Tally) -> None:
    tally.documents += 1
    own: list[dict[str, Any]] = []
    try:
        tree = await system.process(sample.image, on_edge=own.append)
    except DocferryError as error:
        tally.errors.append(f"{sample.image.name}: {error}")
        return
    if tree["status"] != "done":
        tally.errors.append(f"{sample.image.name}: {tree.get('error')}")
        return
    tally.completed += 1
    tally.words += word_counts(sample.texts, _texts(tree))
    tally.edge_words += word_counts(sample.texts, _texts(own[0]) if own else ())
    tally.original_bytes += tree["traffic"]["original_bytes"]
    tally.sent_bytes += tree["traffic"]["sent_bytes"]
    tally.ms[tree["route"]["decision"]].append(tree["notified"][0]["ms"])
    _count_fields(sample.image, tree, tally)


def _count_fields(image: Path, tree: dict[str, Any], tally: Tally) -> None:
    truth = json.loads((image.parents[1] / "gt" / f"{image.stem}.json").read_text(encoding="utf-8"))
    found = {field["name"]: field for field in tree["fields"]}
    for name, ours in FIELDS.items():
        wanted = (truth.get("fields") or {}).get(name)
        if not isinstance(wanted, str) or not wanted:
            continue
        tally.asked[name] += 1
        read = found.get(ours, {}).get("normalized", "")
        exact = same_field(name, wanted, read)
        tally.exact[name] += exact
        tally.near[name] += exact or (
            name in {"company", "address"}
            and difflib.SequenceMatcher(None, folded(wanted), folded(read), autojunk=False).ratio() >= 0.9
        )


def _texts(tree: dict[str, Any]) -> list[str]:
    return [line["text"] for page in tree["pages"] for region in page["regions"] for line in region["lines"]]


def _rate(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _p50(values: list[int]) -> int:
    return round(median(values)) if values else 0


def _p95(values: list[int]) -> int:
    return round(quantiles(values, n=20, method="inclusive")[-1]) if len(values) > 1 else _p50(values)


if __name__ == "__main__":
    main()
