"""Documents with their truth, and the labels that a reading of them gives.

A folder of labelled documents holds one JSON file a document in `gt/`, and pictures wherever those say:

    gt/receipt-1.json
    {"id": "receipt-1", "image": "images/receipt-1.jpg",
     "lines": [{"poly": [x1, y1, x2, y2, x3, y3, x4, y4], "text": "TOTAL 9.00"}, ...],
     "fields": {"company": "...", "date": "...", "address": "...", "total": "..."}}

`poly` is clockwise from the text's top left, in pixels of the picture; `bbox` [x0, y0, x1, y1] does as well, and
`words` in place of `lines`, each a piece of a line. `fields` and `regions` ([{"type": "table", "bbox": [...]}]) may be
left out.
All text that is printed must be there: what a reader finds where the truth has nothing counts as wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from docferry.confidence.estimates import field_traits, picture_signals
from docferry.confidence.signals import page_signals
from docferry.document import Document, Field, Reading, RegionType, with_fields
from docferry.errors import InputError, NotFound
from docferry.fields import extract_fields, find_amounts, find_dates
from docferry.rectangles import area, overlap_area
from docferry_edge.calibrating.labels import (
    Comparison,
    LabelledDocument,
    LabelledField,
    LabelledLine,
    Verdict,
    Verdicts,
    judge,
    plain,
)
from docferry_edge.calibrating.matching import TextLine
from docferry_edge.preparation.geometry import apply
from docferry_edge.prepare import PageImage

_NAMES = {"company": "merchant"}
"""What truths call a field, and what we do."""

_SAME_KIND = {
    RegionType.LIST_ITEM: RegionType.TEXT,
    RegionType.CODE: RegionType.TEXT,
    RegionType.FOOTNOTE: RegionType.TEXT,
    RegionType.PAGE_NUMBER: RegionType.FOOTER,
    RegionType.CHART: RegionType.IMAGE,
}
"""Kinds that the layout network has no class for, and the one it is right to give."""

Pixels = tuple[float, float, float, float]
"""An upright box in pixels: x0, y0, x1, y1."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What stands on one document.

    Attributes:
        lines: Every printed line or word, in pixels of the picture as it comes.
        fields: By our names, as printed.
        boxes: Layout boxes with their kinds; empty where the truth has none.
    """

    id: str
    image: Path
    lines: tuple[TextLine, ...]
    fields: Mapping[str, str]
    boxes: tuple[tuple[RegionType, Pixels], ...] = ()


def load_truths(folder: Path) -> list[Truth]:
    """All labelled documents of a folder, by file name.

    Raises:
        NotFound: It holds none.
        InputError: A file is not in the format above.
    """
    files = sorted((folder / "gt").glob("*.json"))
    truths = [truth for file in files if (truth := _truth(folder, file)) is not None]
    if not truths:
        raise NotFound(
            f"{folder}: no labelled documents", remedy="give a folder that holds gt/*.json; see docs/edge.md"
        )
    return truths


def label(
    truth: Truth, page: PageImage, reading: Reading, size: tuple[int, int], comparison: Comparison = Comparison.EXACT
) -> LabelledDocument:
    """The labels of one reading.

    Args:
        page: The prepared page that was read; it knows the way back to the picture.
        reading: As the reader gave it.
        size: Width and height of the picture that `truth` speaks of.
    """
    document = reading.document
    read = [(_polygon(page, line.polygon, size), line.text) for line in document.lines]
    verdicts = judge(truth.lines, read, comparison)
    return labelled(
        truth.id,
        reading,
        verdicts,
        layout=_layout(truth, page, document, size),
        fields=_fields(truth, document),
    )


def labelled(
    name: str,
    reading: Reading,
    verdicts: Verdicts,
    *,
    layout: Sequence[tuple[float, bool]] = (),
    fields: Sequence[LabelledField] = (),
) -> LabelledDocument:
    """A reading and what is known of each of its lines, as numbers."""
    pages = reading.document.pages
    signals = [row for page in pages for row in page_signals(page)]
    lines = tuple(
        LabelledLine(tuple(round(value, 5) for value in row), line.score, verdict.right, verdict.wrong, len(line.text))
        for row, line, verdict in zip(signals, reading.document.lines, verdicts.lines, strict=True)
    )
    quality = tuple(round(value, 5) for value in picture_signals(pages[0].quality)) if len(pages) == 1 else ()
    return LabelledDocument(
        name, reading.reader, lines, verdicts.printed, verdicts.found, quality, tuple(layout), tuple(fields)
    )


def corrected(name: str, reading: Reading, texts: Mapping[str, str]) -> LabelledDocument:
    """The labels of a document that a person has looked through: lines not named in `texts` are right.

    Args:
        texts: Line id to what is really printed there; empty for a line that is none.

    Raises:
        InputError: There is no line of that id.
    """
    lines = reading.document.lines
    unknown = sorted(set(texts) - {line.id for line in lines})
    if unknown:
        raise InputError(
            f"there is no line {unknown[0]}", remedy="`docferry correct FILE` lists the lines", line=unknown[0]
        )
    verdicts = []
    for line in lines:
        printed, read = plain(texts.get(line.id, line.text), Comparison.EXACT), plain(line.text, Comparison.EXACT)
        box: TextLine = (((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)), printed)
        alone = judge([box], [(box[0], read)], Comparison.EXACT)
        verdicts.append(alone.lines[0] if printed != read else Verdict(True, 0))
    found = sum(verdict.right for verdict in verdicts)
    printed_lines = sum(1 for line in lines if texts.get(line.id, line.text).strip())
    return labelled(name, reading, Verdicts(tuple(verdicts), printed_lines, found))


def _truth(folder: Path, file: Path) -> Truth | None:
    """One document; None for a truth without places of text, which says nothing about lines."""
    try:
        return truth_of(json.loads(file.read_text(encoding="utf-8")), folder)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{file}: not a document's truth: {error}", remedy="see docs/edge.md for the format") from None


def truth_of(tree: dict[str, Any], folder: Path) -> Truth | None:
    """The truth that a JSON object in the format above tells; None if it has no places of text."""
    pieces = tree.get("lines") or tree.get("words") or ()
    lines = tuple((_corners(piece), str(piece["text"])) for piece in pieces if str(piece["text"]).strip())
    if not lines or "image" not in tree:
        return None
    return Truth(
        str(tree["id"]),
        folder / str(tree["image"]),
        lines,
        {_NAMES.get(name, name): str(value) for name, value in (tree.get("fields") or {}).items() if value},
        tuple(_box(region) for region in tree.get("regions") or ()),
    )


def _corners(piece: dict[str, Any]) -> tuple[tuple[float, float], ...]:
    if "poly" in piece:
        numbers = [float(number) for number in piece["poly"]]
        if len(numbers) != 8:
            raise ValueError("a poly has eight numbers")
        return tuple(zip(numbers[::2], numbers[1::2], strict=True))
    x0, y0, x1, y1 = (float(number) for number in piece["bbox"])
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def _box(region: dict[str, Any]) -> tuple[RegionType, Pixels]:
    x0, y0, x1, y1 = (float(number) for number in region["bbox"])
    return RegionType(region["type"]), (x0, y0, x1, y1)


def _polygon(
    page: PageImage, points: Sequence[tuple[float, float]], size: tuple[int, int]
) -> tuple[tuple[float, float], ...]:
    """Where a piece of the prepared page stands in the picture, in its pixels."""
    back = apply(page.to_frame, np.array(points)) * np.array(size)
    return tuple((float(x), float(y)) for x, y in back)


def _layout(truth: Truth, page: PageImage, document: Document, size: tuple[int, int]) -> list[tuple[float, bool]]:
    if not truth.boxes:
        return []
    found: list[tuple[float, bool]] = []
    for region in document.pages[0].regions:
        if region.score <= 0:
            continue
        x0, y0, x1, y1 = region.box
        corners = _polygon(page, ((x0, y0), (x1, y0), (x1, y1), (x0, y1)), size)
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        box = (min(xs), min(ys), max(xs), max(ys))
        kind = _SAME_KIND.get(region.type, region.type)
        right = any(_SAME_KIND.get(true, true) is kind and _iou(box, there) >= 0.5 for true, there in truth.boxes)
        found.append((region.score, right))
    return found


def _iou(one: Pixels, other: Pixels) -> float:
    common = overlap_area(one, other)
    return common / max(area(one) + area(other) - common, 1e-9)


def _fields(truth: Truth, document: Document) -> list[LabelledField]:
    """Every field that was found and that the truth knows; chosen as if every line had been read right."""
    pages = tuple(
        replace(
            page,
            regions=tuple(
                replace(region, lines=tuple(replace(line, confidence=1.0) for line in region.lines))
                for region in page.regions
            ),
        )
        for page in document.pages
    )
    sure = replace(document, pages=pages)
    sure = with_fields(sure, extract_fields(sure))
    number = {
        (at, line.id): n
        for n, (at, line) in enumerate((at, line) for at, page in enumerate(pages) for line in page.lines)
    }
    return [
        LabelledField(
            one.name,
            round(one.confidence, 5),
            tuple(number[mark.page, mark.line] for mark in one.evidence if (mark.page, mark.line) in number),
            *field_traits(one, sure),
            _same_value(one, truth.fields[one.name]),
        )
        for one in sure.fields
        if one.name in truth.fields
    ]


def _same_value(one: Field, printed: str) -> bool:
    """Amounts as decimals, dates as days, the rest by letters and digits in one case."""
    if one.name in {"total", "subtotal", "tax"}:
        amounts = find_amounts(printed)
        return bool(amounts) and format(amounts[-1].value, "f") == format(find_amounts(one.normalized)[-1].value, "f")
    if one.name == "date":
        return one.normalized in {
            date.value.isoformat() for first in (True, False) for date in find_dates(printed, day_first=first)
        }
    return plain(one.value, Comparison.LOOSE) == plain(printed, Comparison.LOOSE)
