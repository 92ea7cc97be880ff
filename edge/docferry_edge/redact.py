"""Masking what must not leave the device, in text and in pixels, before anything is planned or packed.

Only what was read can be found. So a page on which nothing was read, or whose top is in doubt, sends no picture at all,
and a line of digits that the reader is not sure of is masked whole. A match is painted over with a margin; where its
place within the line cannot be told from the text alone, the whole line is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from docferry.document import Document, Field, Line, Page, Polygon
from docferry.fields import find_rows
from docferry.fields.checksums import compact
from docferry.fields.sensitive import MASK, Match, Sensitive, find_sensitive, mask_all, mask_text
from docferry.route import Reason
from docferry.vision.images import Pixels
from docferry.vision.orientation import DOUBTFUL_ORIENTATION
from docferry.vision.quads import absolute, cut_out
from docferry_edge.assess import Assessment
from docferry_edge.examine import Examined

_NUMBERS = frozenset({Sensitive.CARD, Sensitive.IBAN, Sensitive.NATIONAL_ID})
_UNSURE = 0.9
"""Below this confidence a long run of digits is masked whole: a misread digit must not unmask a number."""
_LONG_RUN = 9
_MARGIN = 1.5
"""Characters on either side of a match that are painted over too."""
_APART = 2.5
"""Characters by which two ways of telling a place may differ before neither is believed."""
_GAP = 2.0
"""Blank columns, in line heights, after which places within a line are no longer those within its text."""
_TALLER = 0.2
"""Share of a line's height that is painted over above and below."""

_Spans = dict[tuple[int, str], list[Match]]
"""Matches by page number and line id."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A document as it may leave.

    Attributes:
        examined: Page, reading and assessment without what was masked; lines that were masked whole are no longer in
            the assessment, for nobody could read them again.
        reasons: What was done, with counts by kind; empty if nothing was.
        blind: Pictures must not go at all, for what is on them is not known.
    """

    examined: Examined
    reasons: tuple[Reason, ...] = ()
    blind: bool = False


def redact(examined: Examined, kinds: Collection[Sensitive]) -> Redaction:
    """Mask these kinds in text and pixels; with no kind nothing is touched."""
    if not kinds:
        return Redaction(examined)
    assessment = examined.assessment
    document = assessment.reading.document
    blind = any(not page.lines or not page.quality.orientation_score >= DOUBTFUL_ORIENTATION for page in document.pages)
    spans = _found(document, kinds)
    whole = _whole_lines(document, kinds, spans)
    counts = Counter(match.kind.value for matches in spans.values() for match in matches)
    if unsure := len(whole):
        counts["unsure_digits"] = unsure
    reasons = [Reason("REDACTED", ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())), counts.total())]
    if blind:
        detail = "no picture leaves the device: what was not read cannot be masked"
        reasons.append(Reason("NOT_REDACTABLE", detail))
    if not counts:
        return Redaction(replace(examined, frame=None if blind else examined.frame), tuple(reasons[1:]), blind)
    places, hidden = _places(examined.page.pixels, document, spans, whole)
    masked = _masked(document, spans, whole)
    return Redaction(
        Examined(
            replace(examined.page, pixels=_painted(examined.page.pixels, places)),
            _assessed(assessment, masked, hidden),
            examined.timings,
            # The frame has not been painted: crops come from the page.
            None,
        ),
        tuple(reasons),
        blind,
    )


def masked_name(name: str, kinds: Collection[Sensitive]) -> str:
    """A file's name without what must not leave."""
    return mask_text(name, [replace(match, keep=0) for match in find_sensitive(name, kinds)])


def _found(document: Document, kinds: Collection[Sensitive]) -> _Spans:
    """Matches in single lines, and in rows that a reader cut into several."""
    spans: _Spans = defaultdict(list)
    for number, page in enumerate(document.pages):
        for line in page.lines:
            spans[number, line.id] += find_sensitive(line.text, kinds)
    for row in find_rows(document):
        if len(row.pieces) < 2:
            continue
        starts, start = [], 0
        for piece in row.pieces:
            starts.append(start)
            start += len(piece.line.text) + 1
        for match in find_sensitive(row.text, kinds):
            for piece, begin in zip(row.pieces, starts, strict=True):
                first, last = max(match.start - begin, 0), min(match.end - begin, len(piece.line.text))
                own = spans[row.page, piece.line.id]
                if first < last and not any(each.start <= first and last <= each.end for each in own):
                    ends_here = match.end - begin <= len(piece.line.text)
                    own.append(Match(match.kind, first, last, match.keep if ends_here else 0))
    return {key: found for key, found in spans.items() if found}


def _whole_lines(document: Document, kinds: Collection[Sensitive], spans: _Spans) -> set[tuple[int, str]]:
    """Lines with many digits that the reader is not sure of, and no match."""
    if not _NUMBERS & set(kinds):
        return set()
    return {
        (number, line.id)
        for number, page in enumerate(document.pages)
        for line in page.lines
        if (number, line.id) not in spans
        and (line.confidence or 0.0) < _UNSURE
        and sum(character.isdigit() for character in line.text) >= _LONG_RUN
    }


def _places(
    pixels: Pixels, document: Document, spans: _Spans, whole: Collection[tuple[int, str]]
) -> tuple[list[Polygon], set[tuple[int, str]]]:
    """What is painted over, and the lines of which nothing is left to be read."""
    places: list[Polygon] = []
    hidden = set(whole)
    for number, page in enumerate(document.pages):
        for line in page.lines:
            key = (number, line.id)
            if key in whole:
                places.append(line.polygon)
            for match in spans.get(key, ()):
                piece = _piece(pixels, page, line, match)
                places.append(piece or line.polygon)
                if piece is None:
                    hidden.add(key)
    return places, hidden


def _piece(pixels: Pixels, page: Page, line: Line, match: Match) -> Polygon | None:
    """The part of a line's polygon that shows a match with its margin; None where that cannot be told."""
    count = len(line.text)
    even = match.start / count, match.end / count
    widths = np.cumsum([0.0, *map(_width, line.text)])
    proportional = float(widths[match.start] / widths[-1]), float(widths[match.end] / widths[-1])
    if max(abs(a - b) for a, b in zip(even, proportional, strict=True)) * count > _APART:
        return None
    first = min(even[0], proportional[0]) - _MARGIN / count
    last = max(even[1], proportional[1]) + _MARGIN / count
    if last - first > 0.6 or _has_gap(pixels, page, line):
        return None
    return _along(line.polygon, max(0.0, first), min(1.0, last))


def _width(character: str) -> float:
    """About how wide a character is set, in letters."""
    if not character.isascii():
        return 1.7
    if character in " .,:;'`|!ijlI()[]":
        return 0.6
    return 1.35 if character in "mwMW@%" else 1.0


def _has_gap(pixels: Pixels, page: Page, line: Line) -> bool:
    """Whether a wide blank runs through the line: one space in the text stands for it, and places in it are off."""
    strip = cut_out(pixels, absolute(line.polygon, page.width, page.height), 32)
    grey = np.asarray(cv2.cvtColor(strip, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
    _, ink = cv2.threshold(grey, 0, 1, cv2.THRESH_BINARY_INV + cv2.THRESH_OTSU)
    if float(ink.mean()) > 0.5:
        ink = 1 - ink
    columns = np.flatnonzero(np.asarray(ink).sum(axis=0) > 1)
    return len(columns) < 2 or int(np.diff(columns).max()) > _GAP * 32


def _along(polygon: Polygon, first: float, last: float) -> Polygon:
    """A slice of a polygon along its text, a little taller than the text."""
    a, b, c, d = (np.array(point) for point in polygon)
    up, down = (1 + _TALLER), -_TALLER

    def at(along: float, across: float) -> tuple[float, float]:
        top, bottom = a + along * (b - a), d + along * (c - d)
        x, y = bottom + across * (top - bottom)
        return float(x), float(y)

    return at(first, up), at(last, up), at(last, down), at(first, down)


def _painted(pixels: Pixels, places: Iterable[Polygon]) -> Pixels:
    """A copy with every place black."""
    height, width = pixels.shape[:2]
    copy = np.ascontiguousarray(pixels.copy())
    for polygon in places:
        corners: npt.NDArray[np.float64] = np.array(_along(polygon, -0.005, 1.005)) * (width, height)
        # Outwards to whole pixels: a rim of a glyph is a glyph.
        middle = corners.mean(axis=0)
        cv2.fillConvexPoly(copy, np.round(corners + np.sign(corners - middle)).astype(np.int32), (0, 0, 0))
    return copy


def _masked(
    document: Document, spans: Mapping[tuple[int, str], Sequence[Match]], whole: set[tuple[int, str]]
) -> Document:
    secrets = {
        compact(line.text[match.start : match.end])
        for number, page in enumerate(document.pages)
        for line in page.lines
        for match in spans.get((number, line.id), ())
    } | {
        compact(line.text)
        for number, page in enumerate(document.pages)
        for line in page.lines
        if (number, line.id) in whole
    }

    def line(number: int, line: Line) -> Line:
        if (number, line.id) in whole:
            return replace(line, text=mask_all(line.text))
        return replace(line, text=mask_text(line.text, spans.get((number, line.id), ())))

    pages = tuple(
        replace(
            page,
            regions=tuple(
                replace(region, lines=tuple(line(number, each) for each in region.lines)) for region in page.regions
            ),
        )
        for number, page in enumerate(document.pages)
    )
    texts = {(number, each.id): each.text for number, page in enumerate(pages) for each in page.lines}
    return Document(pages, tuple(_field(field, secrets, texts) for field in document.fields))


def _field(field: Field, secrets: Collection[str], texts: Mapping[tuple[int, str], str]) -> Field:
    """A field whose value holds something secret says what its masked lines say."""
    own = (compact(field.value), compact(field.normalized))
    if not any(_overlap(value, secret) for value in own for secret in secrets if secret):
        return field
    value = " ".join(texts.get((each.page, each.line), "") for each in field.evidence).strip() or MASK
    return replace(field, value=value, normalized=value)


def _overlap(value: str, secret: str) -> bool:
    """Whether one holds the other, or a run of eight characters of it."""
    if not value:
        return False
    if value in secret or secret in value:
        return True
    return any(secret[at : at + 8] in value for at in range(len(secret) - 7))


def _assessed(assessment: Assessment, masked: Document, hidden: Collection[tuple[int, str]]) -> Assessment:
    texts = {(number, line.id): line for number, page in enumerate(masked.pages) for line in page.lines}
    lines = tuple(
        replace(each, line=texts[each.page, each.line.id])
        for each in assessment.lines
        if (each.page, each.line.id) not in hidden
    )
    return replace(
        assessment,
        reading=replace(assessment.reading, document=masked),
        lines=lines,
        must_see=frozenset(key for key in assessment.must_see if key not in hidden),
    )
