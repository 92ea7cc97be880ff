"""How often the field rules are right on perfect text: the truth transcriptions of receipts.

    python -m benchmarks.fields_text --data DIR [--json FILE]

DIR holds `receipts.jsonl` or `gt/*.json` (or is a folder of such folders). Prints exact-match rates per field, and one
JSON line last.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.metrics import folded, same_field
from docferry.document import Document, Field, Line, Page, Region, RegionType
from docferry.fields.candidates import Candidate
from docferry.fields.extract import extract_fields

TRUTH_NAMES = {"merchant": "company", "address": "address", "date": "date", "total": "total"}
"""Our field names and those of the truth."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One transcription as a document, and its true fields by the truth's names."""

    id: str
    document: Document
    truth: dict[str, str | None]


def load(folder: Path) -> Iterator[Labelled]:
    """All labelled transcriptions of one dataset folder."""
    jsonl = folder / "receipts.jsonl"
    if jsonl.exists():
        records = [json.loads(text) for text in jsonl.read_text(encoding="utf-8").splitlines() if text]
    else:
        records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "gt").glob("*.json"))]
    for record in records:
        if "lines" in record and "company" in record.get("fields", {}):
            yield Labelled(str(record["id"]), _document(record["lines"]), record["fields"])


def _document(lines: list[dict[str, Any]]) -> Document:
    """A one-page document with the transcription's lines at their true places."""
    xs = [value for line in lines for value in line["poly"][0::2]]
    ys = [value for line in lines for value in line["poly"][1::2]]
    width, height = max(xs) + 1, max(ys) + 1
    made = tuple(
        Line(f"r0.l{number}", line["text"], _polygon(line["poly"], width, height), 1.0)
        for number, line in enumerate(lines)
    )
    return Document((Page(width, height, (Region("r0", RegionType.TEXT, (0, 0, 1, 1), 0, lines=made),)),))


def _polygon(poly: list[int], width: int, height: int) -> Any:
    return tuple((x / width, y / height) for x, y in zip(poly[0::2], poly[1::2], strict=True))


def half(record: Labelled) -> int:
    """0 (fit) or 1 (held out), by a hash of the document's id."""
    return hashlib.sha256(record.id.encode()).digest()[0] % 2


def is_right(name: str, truth: str, answer: Field | Candidate) -> bool:
    """The project's comparison of the normalized value; the very print of the truth is right too (`20180428`)."""
    return same_field(name, truth, answer.normalized) or folded(answer.value) == folded(truth)


def measure(records: list[Labelled]) -> dict[str, float]:
    """Share of documents whose field is exactly right, by the truth's names; those without the truth are left out."""
    right: dict[str, list[bool]] = {}
    for record in records:
        ours = {field.name: field for field in extract_fields(record.document)}
        for name, truth_name in TRUTH_NAMES.items():
            truth = record.truth.get(truth_name)
            if truth:
                right.setdefault(truth_name, []).append(name in ours and is_right(truth_name, truth, ours[name]))
    return {name: sum(flags) / len(flags) for name, flags in right.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folders = [options.data] if _is_dataset(options.data) else sorted(filter(_is_dataset, options.data.iterdir()))
    result: dict[str, dict[str, Any]] = {}
    for folder in folders:
        records = list(load(folder))
        if records:
            result[folder.name] = {"documents": len(records), "fields": measure(records)}
            rates = "  ".join(f"{name} {share:6.1%}" for name, share in result[folder.name]["fields"].items())
            print(f"{folder.name:20} {len(records):4} documents  {rates}")
    line = json.dumps(result, separators=(",", ":"))
    if options.json:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def _is_dataset(folder: Path) -> bool:
    return (folder / "receipts.jsonl").exists() or (folder / "gt").is_dir()


if __name__ == "__main__":
    main()
