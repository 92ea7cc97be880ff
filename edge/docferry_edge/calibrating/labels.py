"""Labels: what a reading's signals were, and whether it was right. They hold numbers, never a text."""

from __future__ import annotations

import enum
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from docferry.errors import InputError
from docferry_edge.calibrating.matching import TextLine, line_groups


class Comparison(enum.StrEnum):
    """When two texts are the same.

    EXACT: character by character, spaces apart (spaces carry little, and readers and truths set them freely).
    LOOSE: letters in one case, digits, and the decimal points between digits; for truths that are all upper case or
        set punctuation as they like. A lost decimal point is wrong either way.
    """

    EXACT = "exact"
    LOOSE = "loose"


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One line.

    Attributes:
        signals: As `docferry.confidence.signals.NAMES`.
        score: The recogniser's own.
        right: The text is right.
        wrong: Wrong, missing and surplus characters; 0 if it is right.
        characters: The text's length.
    """

    signals: tuple[float, ...]
    score: float
    right: bool
    wrong: int
    characters: int


@dataclass(frozen=True, slots=True)
class LabelledField:
    """One field that was found.

    Attributes:
        name: Its name.
        choice: The extractor's confidence in its choice, were every line read right, 0..1.
        evidence: Numbers of the lines it was read from, in the order of the document's.
        ill_formed, backed: As `docferry.confidence.estimates.field_traits`.
        right: The value is right.
    """

    name: str
    choice: float
    evidence: tuple[int, ...]
    ill_formed: bool
    backed: bool
    right: bool


@dataclass(frozen=True, slots=True)
class LabelledDocument:
    """One document.

    Attributes:
        id: Names it; splits and resamples go by it.
        reader: Who read it: labels of one reader say nothing about another.
        lines: Every line that was read.
        printed, found: Lines that stand on the paper, and those of them that were read right.
        quality: The signals of the picture, `PAGE_SIGNALS` after the first two.
        layout: Score of each layout box, and whether box and type are right; where the truth has boxes.
        fields: Every field that was found and that the truth knows.
    """

    id: str
    reader: str
    lines: tuple[LabelledLine, ...]
    printed: int
    found: int
    quality: tuple[float, ...] = ()
    layout: tuple[tuple[float, bool], ...] = ()
    fields: tuple[LabelledField, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the truth says of one read line: right or not, and how many characters are wrong."""

    right: bool
    wrong: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts in the order of the read lines; lines printed, and those of them that were read right."""

    lines: tuple[Verdict, ...]
    printed: int
    found: int


def plain(text: str, comparison: Comparison) -> str:
    """What of a text is compared."""
    text = unicodedata.normalize("NFKC", text)
    if comparison is Comparison.EXACT:
        return "".join(text.split())
    text = re.sub(r"(?<=\d)\s?[.,]\s?(?=\d)", _POINT, text.casefold().replace("×", "x"))
    return "".join(glyph for glyph in text if glyph.isalnum() or glyph == _POINT)


_POINT = "\u00b7"


def judge(truth: Sequence[TextLine], read: Sequence[TextLine], comparison: Comparison) -> Verdicts:
    """Compare by place; where truth and reader cut a row differently, a line is right if it stands there as read.

    A read line that stands where the truth has nothing is wrong. Lines without anything to compare are left out of
    `printed`, and are right where the truth has nothing to compare either.
    """
    at = {id(line): number for number, line in enumerate(read)}
    verdicts: list[Verdict | None] = [None] * len(read)
    found = 0
    for wanted, got in line_groups(truth, read):
        printed = [line for line in wanted if plain(line[1], comparison)]
        alone = {plain(text, comparison) for _, text in printed}
        whole = plain("".join(text for _, text in _across(printed)), comparison)
        joined = plain("".join(text for _, text in _across(got)), comparison)
        same = whole == joined
        for line in got:
            text = plain(line[1], comparison)
            right = same or (len(printed) + len(got) > 2 and text in alone)
            verdicts[at[id(line)]] = Verdict(right, 0 if right else max(1, _distance_within(whole, text)))
        if got:
            texts = {plain(text, comparison) for _, text in got}
            found += len(printed) if same else sum(plain(text, comparison) in texts for _, text in printed)
    lines = tuple(verdict for verdict in verdicts if verdict is not None)
    return Verdicts(lines, sum(bool(plain(text, comparison)) for _, text in truth), found)


def _across(lines: Sequence[TextLine]) -> list[TextLine]:
    return sorted(lines, key=lambda line: min(x for x, _ in line[0]))


def _distance_within(whole: str, piece: str) -> int:
    """Fewest edits that turn `piece` into some stretch of `whole` (Sellers, 1980); all of it where `whole` is empty."""
    row = [0] * (len(whole) + 1)
    for count, glyph in enumerate(piece, 1):
        before, row[0] = row[0], count
        for place, other in enumerate(whole, 1):
            before, row[place] = row[place], min(before + (glyph != other), row[place] + 1, row[place - 1] + 1)
    return min(row)


def labels_sha256(documents: Iterable[LabelledDocument]) -> str:
    """Hash of a set of labels, whatever their order."""
    digests = sorted(hashlib.sha256(dump_label(document).encode()).hexdigest() for document in documents)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def dump_label(document: LabelledDocument) -> str:
    """One line of JSON."""
    return json.dumps(asdict(document), separators=(",", ":"))


def load_label(text: str, source: str) -> LabelledDocument:
    """The inverse of `dump_label`.

    Raises:
        InputError: It is not a label; `source` names it in the error.
    """
    try:
        tree: dict[str, Any] = json.loads(text)
        return LabelledDocument(
            id=str(tree["id"]),
            reader=str(tree["reader"]),
            lines=tuple(_line(line) for line in tree["lines"]),
            printed=int(tree["printed"]),
            found=int(tree["found"]),
            quality=tuple(map(float, tree["quality"])),
            layout=tuple((float(score), bool(right)) for score, right in tree["layout"]),
            fields=tuple(
                LabelledField(
                    str(one["name"]),
                    float(one["choice"]),
                    tuple(map(int, one["evidence"])),
                    bool(one["ill_formed"]),
                    bool(one["backed"]),
                    bool(one["right"]),
                )
                for one in tree["fields"]
            ),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{source}: not a label: {error}", remedy="remove it, and label the document again") from None


def _line(tree: dict[str, Any]) -> LabelledLine:
    return LabelledLine(
        tuple(map(float, tree["signals"])),
        float(tree["score"]),
        bool(tree["right"]),
        int(tree["wrong"]),
        int(tree["characters"]),
    )
