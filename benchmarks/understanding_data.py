"""Documents with their truth, and what a judgement of one holds."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docferry.errors import NotFound


@dataclass(frozen=True, slots=True)
class Truth:
    """One document's file and its ground truth as the dataset gives it."""

    id: str
    file: Path
    truth: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """How one document came out.

    Attributes:
        score: 0..1, for the list of the worst.
        notes: What is wrong, one line each.
        values: What the dataset's summary adds up, by name.
    """

    document: str
    score: float
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def truths(data: Path, known: Collection[str]) -> dict[str, tuple[Truth, ...]]:
    """Documents by dataset name; `data` is one dataset or a folder of them, those that are not known are left out.

    Raises:
        NotFound: None of them is there.
    """
    folders = [data] if (data / "gt").is_dir() else sorted(path for path in data.iterdir() if (path / "gt").is_dir())
    found = {folder.name: _documents(folder) for folder in folders if folder.name in known}
    if not found:
        raise NotFound(f"{data}: no dataset among {', '.join(sorted(known))}", remedy="give a folder that holds one")
    return found


def _documents(folder: Path) -> tuple[Truth, ...]:
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "gt").glob("*.json"))]
    return tuple(Truth(truth["id"], folder / truth["image"], truth) for truth in loaded)
