"""Labelled readings for fitting and judging: generated documents, or folders with truth; kept in a file outside.

Reading takes a second a page, fitting none: with `--labels DIR` the labels are kept there as JSON Lines, numbers only,
and taken from there again. A stopped run goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2

from benchmarks.generator.make import generate
from benchmarks.generator.truth import Kind, Language, Split
from docferry.document import Document
from docferry.errors import NotFound
from docferry.model_store import ModelStore
from docferry.vision.images import decode
from docferry.vision.quads import absolute
from docferry.vision.recogniser import Recogniser, RecogniserSettings
from docferry.vision.sessions import open_network
from docferry_edge.calibrating.labels import Comparison, LabelledDocument, dump_label, load_label, plain
from docferry_edge.calibrating.truth import Truth, label, load_truths, truth_of
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Reader

MIX: tuple[tuple[Kind, Language], ...] = (
    *((Kind.RECEIPT, Language.EN),) * 6,
    (Kind.INVOICE, Language.EN),
    (Kind.PAGE, Language.EN),
    (Kind.RECEIPT, Language.ZH),
    (Kind.INVOICE, Language.ZH),
)
"""What generated documents are: mostly receipts."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labelled document; `suspect` marks the wrong lines that a second reader reads like the first."""

    label: LabelledDocument
    suspect: tuple[bool, ...] = ()

    @property
    def adjudicated(self) -> LabelledDocument:
        """The label with every suspect line taken for right."""
        lines = tuple(
            replace(line, right=True, wrong=0) if doubted else line
            for line, doubted in zip(self.label.lines, self.suspect, strict=True)
        )
        return replace(self.label, lines=lines, found=min(self.label.printed, self.label.found + sum(self.suspect)))


@dataclass(frozen=True, slots=True)
class Readers:
    """The reader whose scores are calibrated, and one of another network family that second-guesses truths."""

    reader: Reader
    second: Recogniser

    @classmethod
    def load(cls, store: ModelStore, threads: int = 2) -> Readers:
        """Both, from the model store."""
        keys = store.path("ppocrv5-keys").read_text(encoding="utf-8").splitlines()
        # The file's first line names CTC's blank.
        second = Recogniser(
            open_network(store.path("ppocrv5-rec"), threads=1), ("", *keys[1:], " "), RecogniserSettings(lanes=threads)
        )
        return cls(Reader.load(store, threads=threads), second)


def generated(readers: Callable[[], Readers], split: Split, seeds: range, kept: Path | None) -> list[Labelled]:
    """Labels of generated documents of one split."""
    return list(_cached(kept, f"generated_{split}", seeds, lambda seed: _generated(readers(), split, seed)))


def from_folder(readers: Callable[[], Readers], folder: Path, kept: Path | None) -> list[Labelled]:
    """Labels of a data set, compared loosely: the truths at hand are upper case, or words without punctuation."""
    truths = load_truths(folder)
    return list(_cached(kept, folder.name, range(len(truths)), lambda number: _photographed(readers(), truths[number])))


def folders(data: Path) -> list[Path]:
    """One data set, or every one below a folder of them that says where its text stands.

    Raises:
        NotFound: There is none.
    """
    candidates = [data] if (data / "gt").is_dir() else sorted(path for path in data.iterdir() if (path / "gt").is_dir())
    found = [path for path in candidates if _has_places(path)]
    if not found:
        raise NotFound(f"{data}: no data set with lines or words in place", remedy="give a folder that holds gt/*.json")
    return found


def _has_places(folder: Path) -> bool:
    first = next(iter(sorted((folder / "gt").glob("*.json"))), None)
    tree = json.loads(first.read_text(encoding="utf-8")) if first is not None else {}
    pieces = tree.get("lines") or tree.get("words") or [{}]
    return "image" in tree and bool({"poly", "bbox"} & set(pieces[0])) and not tree["image"].lower().endswith(".pdf")


def _cached(kept: Path | None, name: str, numbers: range, read: Callable[[int], Labelled | None]) -> Iterator[Labelled]:
    done: dict[int, Labelled] = {}
    file = None if kept is None else kept / f"{name}.jsonl"
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        done = _load(file)
    for number in numbers:
        if number not in done:
            found = read(number)
            if found is None:
                continue
            done[number] = found
            if file is not None:
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(f"{number}\t{json.dumps(found.suspect)}\t{dump_label(found.label)}\n")
        yield done[number]


def _load(file: Path) -> dict[int, Labelled]:
    done: dict[int, Labelled] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            number, suspect, text = line.split("\t")
            done[int(number)] = Labelled(load_label(text, str(file)), tuple(json.loads(suspect)))
    return done


def _generated(readers: Readers, split: Split, seed: int) -> Labelled | None:
    kind, language = MIX[seed % len(MIX)]
    sample = generate(kind, seed, split, language=language)
    good, encoded = cv2.imencode(".jpg", sample.image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    assert good
    truth = truth_of(sample.truth.as_dict("generated.jpg"), Path())
    return None if truth is None else _label(readers, truth, encoded.tobytes(), Comparison.EXACT)


def _photographed(readers: Readers, truth: Truth) -> Labelled:
    return _label(readers, truth, truth.image.read_bytes(), Comparison.LOOSE)


def _label(readers: Readers, truth: Truth, data: bytes, comparison: Comparison) -> Labelled:
    page = readers.reader.prepare(Frame(data, truth.id))
    reading = readers.reader.read_all(page)
    height, width = decode(data).shape[:2]
    found = label(truth, page, reading, (width, height), comparison)
    return Labelled(found, _suspects(readers.second, page, reading.document, found, comparison))


def _suspects(
    second: Recogniser, page: PageImage, document: Document, found: LabelledDocument, comparison: Comparison
) -> tuple[bool, ...]:
    """Wrong lines whose text the second reader reads too: two independent networks against the truth."""
    wrong = [number for number, line in enumerate(found.lines) if not line.right]
    suspect = [False] * len(found.lines)
    quads = [absolute(document.lines[number].polygon, page.width, page.height) for number in wrong]
    for number, other in zip(wrong, second.read(page.pixels, quads), strict=True):
        text = plain(document.lines[number].text, comparison)
        suspect[number] = bool(text) and text == plain(other.text, comparison)
    return tuple(suspect)


def only_labels(documents: Iterable[Labelled]) -> list[LabelledDocument]:
    """Without the second reader's opinion."""
    return [document.label for document in documents]


def lines_of(documents: Sequence[LabelledDocument]) -> int:
    """How many lines they hold."""
    return sum(len(document.lines) for document in documents)
