"""Pages with their text and where it stands, from one evaluation folder or a folder of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import NotFound
from docferry_edge.calibrating.matching import TextLine


@dataclass(frozen=True, slots=True)
class Sample:
    """One page: its picture and what stands on it, as lines or words in any order.

    Attributes:
        lines: Those of the truth that say where they stand, in the picture's pixels; empty where the truth does not.
    """

    image: Path
    texts: tuple[str, ...]
    lines: tuple[TextLine, ...] = ()


def datasets(data: Path) -> dict[str, tuple[Sample, ...]]:
    """Samples by dataset name; `data` is one dataset or a folder of them.

    Datasets without a transcription of whole pages are left out.

    Raises:
        NotFound: No dataset with text is there.
    """
    folders = [data] if (data / "gt").is_dir() else sorted(path for path in data.iterdir() if (path / "gt").is_dir())
    found = {folder.name: samples for folder in folders if (samples := _samples(folder))}
    if not found:
        raise NotFound(f"{data}: no dataset with transcribed pages", remedy="give a folder that holds gt/*.json")
    return found


def _samples(folder: Path) -> tuple[Sample, ...]:
    truths = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "gt").glob("*.json"))]
    pages = [(truth, _texts(truth)) for truth in truths if "image" in truth]
    return tuple(
        Sample(folder / truth["image"], texts, tuple(_lines(truth)))
        for truth, texts in pages
        if texts and not truth["image"].lower().endswith(".pdf")
    )


def _texts(truth: dict[str, Any]) -> tuple[str, ...]:
    """The page's text in whichever form the dataset gives it."""
    for key, texts in _FORMS.items():
        if truth.get(key):
            return texts(truth[key])
    return ()


def _lines(truth: dict[str, Any]) -> Iterator[TextLine]:
    """Lines or words with a place; blocks give their lines."""
    items = truth.get("lines") or truth.get("words")
    if not items:
        items = [line for block in truth.get("blocks") or () for line in block.get("lines") or ()]
    for item in items:
        flat = item.get("poly") or item.get("bbox")
        if item.get("text") and flat:
            yield _polygon(flat), item["text"]


def _polygon(flat: Sequence[float]) -> tuple[tuple[float, float], ...]:
    if len(flat) == 4:
        x0, y0, x1, y1 = flat
        return (x0, y0), (x1, y0), (x1, y1), (x0, y1)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _of_items(items: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(item["text"] for item in items if item.get("text"))


def _of_blocks(blocks: list[dict[str, Any]]) -> tuple[str, ...]:
    """Blocks by their lines where they have them; tables and formulas have none and are left out."""
    return tuple(text for block in blocks for text in _of_items(block.get("lines") or [block]))


_FORMS: dict[str, Callable[[Any], tuple[str, ...]]] = {
    "lines": _of_items,
    "words": _of_items,
    "blocks": _of_blocks,
    "text": lambda text: tuple(text.splitlines()) if isinstance(text, str) else (),
}
