"""Every signal of every line of a page, in one fixed order: the raw material of its confidence. Pure, no numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from docferry.confidence import numbers, place, scores, shape
from docferry.document import Page, Quality, Region, RegionType

CONTEXT = ("page_doubt", "page_share", "near_doubt", "outside_layout", "layout_doubt", "in_table", "in_picture")
"""What the rest of the page says: its other lines, those next to this one, and the layout around it."""

PICTURE = ("blur", "glare", "faint", "print_size")
"""What the quality report says, the same for every line of a page."""

NAMES: tuple[str, ...] = (*scores.NAMES, *shape.NAMES, *place.NAMES, *numbers.NAMES, *CONTEXT, *PICTURE)
"""All signals, in the order of `page_signals`."""

_SUPPORTS = frozenset({"amount_in_column", "amount_repeated", "amount_sums", "print_size"})
_EITHER = frozenset(
    {"length", "short", "digits", "small_marks", "lone_marks", "repetition", "tall", "amount", "outside_layout"}
    | {"in_table", "in_picture"}
)

DIRECTIONS: tuple[int, ...] = tuple(1 if name in _SUPPORTS else 0 if name in _EITHER else -1 for name in NAMES)
"""1 where more of a signal can only speak for a line, -1 where only against it, 0 where either may be."""

_DOUBTED = math.log(0.05)


def page_signals(page: Page) -> list[tuple[float, ...]]:
    """The signals named in `NAMES` for every line of `page.lines`, in that order."""
    lines = page.lines
    texts = [line.text for line in lines]
    places = [place.placed(line, page) for line in lines]
    scored = [scores.score_signals(line) for line in lines]
    context = _context([line[0] for line in scored], page.regions)
    picture = _picture(page.quality)
    return [
        (*own, *shape.shape_signals(text), *where, *number, *around, *picture)
        for own, text, where, number, around in zip(
            scored,
            texts,
            place.place_signals(places, page),
            numbers.number_signals(texts, places),
            context,
            strict=True,
        )
    ]


def _context(doubts: Sequence[float], regions: Sequence[Region]) -> list[tuple[float, ...]]:
    if not doubts:
        return []
    middle = median(doubts)
    share = sum(doubt > _DOUBTED for doubt in doubts) / len(doubts)
    around: list[tuple[float, ...]] = []
    for region in regions:
        laid_out = (
            float(region.score == 0.0),
            1.0 - region.score if region.score else 0.0,
            float(region.type is RegionType.TABLE),
            float(region.type in {RegionType.IMAGE, RegionType.EQUATION, RegionType.CHART}),
        )
        for _ in region.lines:
            at = len(around)
            near = [doubts[n] for n in (at - 1, at + 1) if 0 <= n < len(doubts)]
            around.append((middle, share, sum(near) / len(near) if near else middle, *laid_out))
    return around


def _picture(quality: Quality) -> tuple[float, ...]:
    return (
        math.log(max(quality.blur, 0.3)) if quality.blur else 0.0,
        min(quality.glare, 1.0),
        max(0.0, 0.6 - quality.contrast) if quality.contrast else 0.0,
        math.log(quality.text_height / 24.0) if quality.text_height else 0.0,
    )
