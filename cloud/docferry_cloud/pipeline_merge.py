"""Bringing a second reading of sharp crops into the edge's tree. Pure; no pixels here.

Every line of the edge stays in its region under its id; its text gives way to what a vote made of it, in which the edge
had its say, where that is more probably right. Lines that the edge missed are added. Nothing is ever taken away.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from docferry.document import Box, Line, Page, Polygon, Region, RegionType
from docferry_cloud.pipeline_geometry import box_around, centre, inside, overlap, reach, within

FULLY_INSIDE = 0.002
"""How far, relative to the page, a line may stick out of a crop that shows it whole; the wire rounds to 1/4096."""

SAME_PLACE = 0.5
"""Share of the smaller of two lines that must lie under the other for both to be the same print."""

WHOLE_LINE = 0.85
"""Share of a line's length that found pieces must cover before they may stand for it."""

LONGER = 1.15
"""A found line this many times longer than the edge's shows print that the edge cut off."""

DOUBT = 0.95
"""A line with a calibrated confidence from here on is not read again; its crop shows it only as a neighbour."""

LEAST_ADDED = 0.5
"""A line that only the second reader saw is added from this confidence on."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a line reads after the vote: `score` raw and `confidence` calibrated, both 0..1."""

    text: str
    score: float
    confidence: float
    provenance: str


@dataclass(frozen=True, slots=True)
class Reread:
    """What the second reader found in one crop.

    Attributes:
        box: The crop's box, relative to the page.
        again: For the edge's lines in doubt that the crop shows whole, by id, the vote on them.
        found: Further lines that the crop shows, in page coordinates, with their confidence; their ids are empty.
    """

    box: Box
    again: Mapping[str, Opinion] = field(default_factory=dict)
    found: tuple[Line, ...] = ()


def shown_whole(page: Page, box: Box) -> tuple[Line, ...]:
    """The page's lines that a crop with that box shows from end to end."""
    return tuple(line for line in page.lines if within(line.box, box, FULLY_INSIDE))


def in_doubt(page: Page, box: Box) -> tuple[Line, ...]:
    """The lines a crop was sent for: shown whole, and not known to be right already."""
    return tuple(line for line in shown_whole(page, box) if line.confidence is None or line.confidence < DOUBT)


def merge(page: Page, rereads: Iterable[Reread]) -> Page:
    """The page with every crop's second reading brought in.

    Each of the page's lines comes back under its id and in its region; further lines may be added to a region, or in
    regions of their own. Ids stay unique on the page.
    """
    for reread in rereads:
        page = _merge_one(page, reread)
    return page


def settle(line: Line, opinion: Opinion) -> Line:
    """One line after the vote: whichever text is more probably right, by both calibrated confidences.

    A line that another crop has settled before keeps what it is surer of. A text that stays although the vote reads
    something else is believed less: of two texts at most one is right, so with p and q for the edge's and the vote's
    confidence, taken as independent, p (1 - q) / (1 - p q) is left of p.
    """
    if not opinion.text.strip():
        return line
    sure = line.confidence or 0.0
    if line.provenance == opinion.provenance and sure >= opinion.confidence:
        return line
    if line.text == opinion.text:
        return replace(line, confidence=opinion.confidence)
    if line.provenance != opinion.provenance and sure > opinion.confidence:
        return replace(line, confidence=sure * (1.0 - opinion.confidence) / (1.0 - sure * opinion.confidence))
    return replace(
        line,
        text=opinion.text,
        score=opinion.score,
        confidence=opinion.confidence,
        provenance=opinion.provenance,
    )


def _merge_one(page: Page, reread: Reread) -> Page:
    whole = {line.id: line for line in shown_whole(page, reread.box)}
    uncut = tuple(line for line in reread.found if not _cut_off(line.box, reread.box))
    groups = _groups(page.lines, uncut)
    settled: dict[str, Line] = {}
    for identity, line in whole.items():
        again = reread.again.get(identity)
        joined = _joined(line, groups.of_line.get(identity, ()), groups.of_found)
        settled[identity] = _best(line, again, joined)
    missed = [
        line
        for line in uncut
        if not groups.of_found[line] and line.text.strip() and (line.confidence or 0.0) >= LEAST_ADDED
    ]
    page = replace(page, regions=tuple(_with_settled(region, settled) for region in page.regions))
    for line in missed:
        page = _added(page, line)
    return page


@dataclass(frozen=True, slots=True)
class _Groups:
    """Which of the page's lines and which found lines show the same print: ids by found line, found lines by id."""

    of_line: Mapping[str, tuple[Line, ...]]
    of_found: Mapping[Line, tuple[str, ...]]


def _groups(lines: Sequence[Line], found: Sequence[Line]) -> _Groups:
    of_line: dict[str, tuple[Line, ...]] = {}
    of_found: dict[Line, tuple[str, ...]] = dict.fromkeys(found, ())
    for line in lines:
        for other in found:
            if overlap(line.polygon, other.polygon) >= SAME_PLACE:
                of_line[line.id] = (*of_line.get(line.id, ()), other)
                of_found[other] = (*of_found[other], line.id)
    return _Groups(of_line, of_found)


def _joined(line: Line, pieces: Sequence[Line], of_found: Mapping[Line, tuple[str, ...]]) -> Line | None:
    """The found pieces of one line as one line, or None where they do not stand for it alone and whole."""
    if not pieces or any(len(of_found[piece]) > 1 for piece in pieces):
        return None
    spans = sorted((*reach(line.polygon, piece.polygon), index) for index, piece in enumerate(pieces))
    # Pieces that overlap along the line stand above each other: two rows that the edge took for one.
    if any(left[1] - right[0] > 0.25 for left, right in pairwise(spans)):
        return None
    covered = sum(max(0.0, min(end, 1.0) - max(start, 0.0)) for start, end, _ in spans)
    if covered < WHOLE_LINE:
        return None
    parts = [pieces[index] for _, _, index in spans]
    weight = sum(len(part.text) for part in parts)
    if not weight:
        return None
    return Line(
        id=line.id,
        text=" ".join(part.text for part in parts),
        polygon=_hull(line.polygon, parts),
        score=sum(part.score * len(part.text) for part in parts) / weight,
        # All of them must be right; they were read from one picture, so the weakest says most.
        confidence=min(part.confidence or 0.0 for part in parts),
        provenance=parts[0].provenance,
    )


def _hull(polygon: Polygon, parts: Sequence[Line]) -> Polygon:
    """The polygon of several pieces in a row: the first one's start and the last one's end."""
    if not parts:
        return polygon
    first, last = parts[0].polygon, parts[-1].polygon
    return first[0], last[1], last[2], first[3]


def _best(line: Line, again: Opinion | None, joined: Line | None) -> Line:
    """The line by its own polygon's vote or by the pieces found in its place, whichever is surer."""
    if joined is None:
        return settle(line, again) if again else line
    found = Opinion(joined.text, joined.score, joined.confidence or 0.0, joined.provenance)
    start, end = reach(line.polygon, joined.polygon)
    if end - start >= LONGER and _extends(line.text, joined.text):
        # The edge's box cut the line short: what its own polygon reads again is short as well.
        return joined
    if again is None:
        return settle(line, found)
    if _folded(again.text) == _folded(found.text):
        more_spaces = found.text.count(" ") > again.text.count(" ")
        return settle(line, found if more_spaces else again)
    return settle(line, found if found.confidence > again.confidence else again)


def _folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _extends(part: str, whole: str) -> bool:
    short = _folded(part)
    return bool(short) and len(_folded(whole)) > len(short) and short in _folded(whole)


def _cut_off(box: Box, crop: Box) -> bool:
    """Whether a found line touches an edge of the crop that is no edge of the page, so that it may go on outside."""
    touches = (
        box[0] - crop[0] <= FULLY_INSIDE and crop[0] > FULLY_INSIDE,
        box[1] - crop[1] <= 0.0 and crop[1] > FULLY_INSIDE,
        crop[2] - box[2] <= FULLY_INSIDE and crop[2] < 1.0 - FULLY_INSIDE,
        crop[3] - box[3] <= 0.0 and crop[3] < 1.0 - FULLY_INSIDE,
    )
    return any(touches)


def _with_settled(region: Region, settled: Mapping[str, Line]) -> Region:
    lines = tuple(settled.get(line.id, line) for line in region.lines)
    moved = any(new.polygon != old.polygon for new, old in zip(lines, region.lines, strict=True))
    changed = replace(region, lines=lines)
    return _grown(changed) if moved else changed


def _grown(region: Region) -> Region:
    """The region with a box that holds all of its lines."""
    return replace(region, box=box_around([region.box, *(line.box for line in region.lines)]))


def _added(page: Page, line: Line) -> Page:
    """The page with one line more: in the smallest region that holds its centre, or in a new one."""
    point = centre(line.polygon)
    homes = [region for region in page.regions if inside(point, region.box)]
    if not homes:
        return _with_region(page, line)
    home = min(homes, key=lambda region: (region.box[2] - region.box[0]) * (region.box[3] - region.box[1]))
    named = replace(line, id=_free_line_id(page, home.id))
    place = next((at for at, other in enumerate(home.lines) if _before(named, other)), len(home.lines))
    lines = (*home.lines[:place], named, *home.lines[place:])
    grown = _grown(replace(home, lines=lines))
    return replace(page, regions=tuple(grown if region.id == home.id else region for region in page.regions))


def _with_region(page: Page, line: Line) -> Page:
    taken = {region.id for region in page.regions}
    identity = next(name for number in range(1, len(taken) + 2) if (name := f"r{number}") not in taken)
    named = replace(line, id=_free_line_id(page, identity))
    region = Region(identity, RegionType.TEXT, line.box, 0, lines=(named,), provenance=line.provenance)
    middle = centre(line.polygon)[1]
    place = next(
        (at for at, other in enumerate(page.regions) if other.box[1] > middle and _same_column(other.box, line.box)),
        len(page.regions),
    )
    regions = (*page.regions[:place], region, *page.regions[place:])
    return replace(page, regions=tuple(replace(each, order=order) for order, each in enumerate(regions)))


def _same_column(one: Box, other: Box) -> bool:
    return min(one[2], other[2]) > max(one[0], other[0])


def _before(line: Line, other: Line) -> bool:
    """Whether `line` is read before `other`: higher up, or further left in the same row."""
    box, beside = line.box, other.box
    shared = min(box[3], beside[3]) - max(box[1], beside[1])
    if shared > 0.5 * min(box[3] - box[1], beside[3] - beside[1]):
        return box[0] < beside[0]
    return box[1] + box[3] < beside[1] + beside[3]


def _free_line_id(page: Page, region: str) -> str:
    taken = {line.id for line in page.lines}
    return next(name for number in range(1, len(taken) + 2) if (name := f"{region}.l{number}") not in taken)
