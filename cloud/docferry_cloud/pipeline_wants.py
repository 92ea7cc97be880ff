"""What else the embedded engine would need from the device to read a page better. Pure; no pixels here.

The rule for lines is the edge's own: of the lines that are taken as they are at most the stated share may be wrong. The
riskiest are set apart until the mean risk of the rest meets that target, and of those set apart the ones are asked for
that the device can show markedly sharper than anything that was read of them. Lines that came without pixels and lines
that were read again are judged apart: the edge has met the target with the former by itself, as a rule, and doubts
about the latter are no reason to ask for others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from docferry.document import Box, Line, Page, Region, RegionType
from docferry.rectangles import around, overlap_area
from docferry_cloud.engine import Task, Want
from docferry_cloud.pipeline_geometry import within

SHARPER = 1.25
"""A picture with fewer pixels than this many times those that were read shows nothing new."""

TALL = 24.0
"""Pixels of line height beyond which nothing more is repaired: so the edge's table of prices says, which is measured
(`benchmarks.fit_prices`: of wrong lines as many are repaired at 24 pixels as at 32)."""

READABLE = 16.0
"""Pixels of line height from which on a picture of a region can be read."""

_SLACK = 0.002
_ROUNDING = 0.5 / 255
"""What rounding confidences for the wire may add to a mean risk that met the target before it."""
_TASKS: Mapping[RegionType, Task] = {RegionType.TABLE: Task.TABLE, RegionType.EQUATION: Task.FORMULA}


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of the page that was read from pixels: its box, and its pixels along a side for one of the page's."""

    box: Box
    scale: float


@dataclass(frozen=True, slots=True)
class _Place:
    """A place to ask for, and how much it matters: the sum of its lines' risks, or more for a whole region."""

    box: Box
    scale: float
    weight: float
    lines: int
    why: str


def whole_page(original: float) -> Want:
    """The page itself, where nothing can be built on what the edge has read of it."""
    return Want(None, min(1.0, original), "nothing certain was read, or which way is up is in doubt")


def wanted(
    page: Page,
    shown: Sequence[Shown],
    *,
    overview: float,
    original: float,
    target_risk: float | None,
    tasks: Collection[Task],
) -> tuple[Want, ...]:
    """The pictures to ask for, the most telling first; none of two overlap.

    Args:
        page: As it was read, with calibrated confidences where there are any.
        shown: What it was read from, besides the edge's reading.
        overview: Pixels of the overview along a side for one of the page's; 0 without one.
        original: The same for the original that the device keeps.
        target_risk: Of the lines that are taken at most this share may be wrong; None asks for no lines.
        tasks: What the engine can do: pixels of a table are of use only to one that reads tables.
    """
    places = [
        *_regions(page, shown, overview, original, tasks),
        *(() if target_risk is None else _lines(page, shown, original, target_risk)),
    ]
    merged = sorted(_merged(places), key=lambda place: -place.weight)
    return tuple(Want(place.box, place.scale, _why(place)) for place in merged)


def in_doubt(lines: Sequence[Line], target_risk: float) -> tuple[Line, ...]:
    """The fewest lines, the riskiest first, without which the mean risk of the rest meets the target."""
    known = [(1.0 - line.confidence, line) for line in lines if line.confidence is not None]
    known.sort(key=lambda pair: -pair[0])
    total = sum(risk for risk, _ in known)
    taken = 0
    while taken < len(known) and total > target_risk * (len(known) - taken):
        total -= known[taken][0]
        taken += 1
    return tuple(line for _, line in known[:taken])


def _lines(page: Page, shown: Sequence[Shown], original: float, target_risk: float) -> list[_Place]:
    places: list[_Place] = []
    unseen = [line for line in page.lines if not _sharpest(line.box, shown)]
    seen = [line for line in page.lines if _sharpest(line.box, shown)]
    for line in (*in_doubt(unseen, target_risk + _ROUNDING), *in_doubt(seen, target_risk)):
        tall = _height(line, page)
        scale = min(original, TALL / tall)
        if scale < SHARPER * _sharpest(line.box, shown):
            continue
        box = _margin(line.box, page)
        places.append(_Place(box, scale, 1.0 - (line.confidence or 0.0), 1, ""))
    return places


def _regions(
    page: Page, shown: Sequence[Shown], overview: float, original: float, tasks: Collection[Task]
) -> list[_Place]:
    places: list[_Place] = []
    for region in page.regions:
        if _TASKS.get(region.type) not in tasks:
            continue
        seen = max(overview, _sharpest(region.box, shown))
        tall = _text_height(region, page)
        # Without a line to measure the prepared page itself is the measure.
        readable = seen * tall >= READABLE if tall else seen >= 1.0 / SHARPER
        scale = min(original, TALL / tall if tall else 1.0)
        if not readable and scale >= SHARPER * seen:
            # A whole region weighs more than any line that might be read anew.
            why = f"{region.type.value} region without pixels that can be read"
            places.append(_Place(region.box, scale, 1000.0, 0, why))
    return places


def _merged(places: Sequence[_Place]) -> list[_Place]:
    merged: list[_Place] = []
    for place in places:
        current = place
        while touching := next((other for other in merged if overlap_area(current.box, other.box) > 0), None):
            merged.remove(touching)
            current = replace(
                current,
                box=around((current.box, touching.box)),
                scale=max(current.scale, touching.scale),
                weight=current.weight + touching.weight,
                lines=current.lines + touching.lines,
                why=current.why or touching.why,
            )
        merged.append(current)
    return merged


def _why(place: _Place) -> str:
    doubt = f"{place.lines} lines stay in doubt, {place.weight % 1000.0:.2f} of them expected to be wrong"
    return "; ".join(text for text in (place.why, doubt if place.lines else "") if text)


def _sharpest(box: Box, shown: Sequence[Shown]) -> float:
    """Pixels along a side for one of the page's, in the sharpest picture that shows all of a box; 0 if none does."""
    return max((piece.scale for piece in shown if within(box, piece.box, _SLACK)), default=0.0)


def _height(line: Line, page: Page) -> float:
    """A line's height in pixels of the prepared page, at least 1."""
    (x0, y0), (x1, y1) = line.polygon[0], line.polygon[3]
    return max(1.0, math.hypot((x1 - x0) * page.width, (y1 - y0) * page.height))


def _text_height(region: Region, page: Page) -> float:
    """The median height of a region's lines in pixels of the prepared page, or of the page's; 0 if nothing was read."""
    heights = sorted(_height(line, page) for line in region.lines)
    return heights[len(heights) // 2] if heights else page.quality.text_height


def _margin(box: Box, page: Page) -> Box:
    """Half a line's height around it on every side: the detector needs some paper."""
    dy = 0.5 * (box[3] - box[1])
    dx = dy * page.height / max(1, page.width)
    return max(0.0, box[0] - dx), max(0.0, box[1] - dy), min(1.0, box[2] + dx), min(1.0, box[3] + dy)
