"""Documents with truth as the routing benchmark needs them: read once by the edge, kept in a cache folder."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.end_to_end import FIELDS
from benchmarks.line_labels import right_lines
from benchmarks.metrics import TextLine, WordCounts, same_field, word_counts
from benchmarks.reading_data import Sample, datasets
from docferry.document import Document, Page, Reading
from docferry.vision.images import picture_size
from docferry_edge.preparation.geometry import apply
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Reader


@dataclass(frozen=True, slots=True)
class Truth:
    """What stands on a document.

    Attributes:
        texts: Its lines or words, in any order.
        lines: The same with their places, in pixels of the file; empty where the data set gives none.
        fields: By the data set's own names; only those that we look for.
    """

    texts: tuple[str, ...]
    lines: tuple[TextLine, ...]
    fields: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One document: its file, its truth, and what the edge made of it, not yet calibrated.

    Attributes:
        page: The prepared page.
        labels: Which of the read lines are right, by id; only those that can be compared.
    """

    name: str
    data: bytes
    truth: Truth
    page: PageImage
    reading: Reading
    labels: dict[str, bool]


@dataclass(frozen=True, slots=True)
class Score:
    """How an answer compares with the truth; add them up over a data set."""

    words: WordCounts = field(default_factory=WordCounts)
    wanted: int = 0
    given: int = 0
    right: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.words + other.words,
            self.wanted + other.wanted,
            self.given + other.given,
            self.right + other.right,
        )

    @property
    def word_f1(self) -> float:
        """Word F1, 0..1."""
        return self.words.f1

    @property
    def field_f1(self) -> float:
        """F1 of the fields, a field being right or not, 0..1; 1 where none is asked for."""
        both = self.wanted + self.given
        return 2 * self.right / both if both else 1.0


def cases(data: Path, limit: int, reader: Reader, cache: Path) -> Iterator[tuple[str, list[Case]]]:
    """Data sets by name; each document is read once and remembered."""
    for name, samples in datasets(data).items():
        chosen = samples[: limit or None]
        yield name, [_case(sample, reader, cache) for sample in chosen]


def score(truth: Truth, document: Document) -> Score:
    """Compare an answer with the truth."""
    found = {each.name: each.normalized for each in document.fields}
    asked = {name: wanted for name, wanted in truth.fields.items() if wanted}
    right = sum(same_field(name, wanted, found.get(FIELDS[name], "")) for name, wanted in asked.items())
    given = sum(FIELDS[name] in found for name in asked)
    words = word_counts(truth.texts, [line.text for line in document.lines])
    return Score(words, len(asked), given, right)


def labels_of(truth: Truth, page: PageImage, read: Page, size: tuple[int, int]) -> dict[str, bool]:
    """Which lines of a reading of this page are right, by id. `size`: the file's width and height in pixels."""
    shapes: dict[str, TextLine] = {}
    for line in read.lines:
        points = apply(page.to_frame, np.array(line.polygon)) * size
        shapes[line.id] = ([(float(x), float(y)) for x, y in points], line.text)
    return right_lines(truth.lines, shapes) if truth.lines else {}


def frame_size(case: Case) -> tuple[int, int]:
    """The file's width and height in pixels."""
    return picture_size(case.data, name=case.name)


def _case(sample: Sample, reader: Reader, cache: Path) -> Case:
    data = sample.image.read_bytes()
    frame = Frame(data, sample.image.name)
    file = cache / f"read-{hashlib.sha256(data + reader.name.encode()).hexdigest()[:24]}.pickle"
    if file.exists():
        # Written by this very benchmark, from files of the person who runs it.
        png, page, reading = pickle.loads(file.read_bytes())  # noqa: S301
        page = replace(page, pixels=cv2.imdecode(np.frombuffer(png, dtype=np.uint8), cv2.IMREAD_COLOR))
    else:
        page = reader.prepare(frame)
        reading = reader.read_all(page)
        good, png = cv2.imencode(".png", page.pixels)
        assert good
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps((png.tobytes(), replace(page, pixels=page.pixels[:1, :1]), reading)))
    truth = _truth(sample)
    case = Case(sample.image.name, data, truth, page, reading, {})
    labels = labels_of(truth, page, reading.document.pages[0], frame_size(case))
    return Case(case.name, data, truth, page, reading, labels)


def _truth(sample: Sample) -> Truth:
    path = sample.image.parents[1] / "gt" / f"{sample.image.stem}.json"
    tree: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    fields = {
        name: value for name, value in (tree.get("fields") or {}).items() if name in FIELDS and isinstance(value, str)
    }
    return Truth(sample.texts, tuple(_lines(tree)), fields)


def _lines(tree: dict[str, Any]) -> Iterator[TextLine]:
    """Lines or words with places, in whichever of the known forms the data set has them."""
    for item in tree.get("lines") or tree.get("words") or ():
        text = item.get("text") or ""
        numbers: Sequence[float] = item.get("poly") or item.get("bbox") or ()
        if text and len(numbers) == 8:
            yield list(zip(numbers[::2], numbers[1::2], strict=True)), text
        elif text and len(numbers) == 4:
            x0, y0, x1, y1 = numbers
            yield [(x0, y0), (x1, y0), (x1, y1), (x0, y1)], text
