"""A check of its own for numbers: decimal points that every recogniser lost. No digit is ever changed.

Recognisers lose a point at full score. Mostly they leave a gap, "3 00", and the column says what it was: another line
that ends (or, for a bare number, starts) at the same place is an amount with two decimals. Where no gap is left,
"300", the column is not enough, since counts stand in columns too: the page's arithmetic has to ask for the point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from docferry.document import Line, Page
from docferry.vision.quads import Quad, absolute, size

Placed = tuple[str, Quad]
"""A line's text and its quad in pixels."""

_AMOUNT = re.compile(r"(?:.*[^\w.,])?(?P<digits>[0-9][0-9,.]*)(?P<mark>[.,])(?P<cents>[0-9][0-9])\W*")
_GAP = re.compile(r"(?P<head>(?:.*[^0-9.,])?[0-9]{1,4}) (?P<tail>[0-9][0-9]\W*)")
_BARE = re.compile(r"(?P<head>\W*[0-9]{1,5})(?P<tail>[0-9][0-9]\W*)")

_MOST_ITEMS = 40
"""Rows above or below a number that a sum may run over."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number with two decimals, or one that may have lost its point.

    Attributes:
        start, end, middle: Pixels: where its line starts and ends, and the height on the page of its middle.
        height: Of its line, pixels.
        mark: The mark before the decimals.
        cents: Its value times a hundred.
    """

    start: float
    end: float
    middle: float
    height: float
    mark: str
    cents: int


def with_points(lines: Sequence[Placed]) -> list[str]:
    """The texts of one page's lines, with the points put back that columns and sums ask for."""
    amounts = [amount for line in lines if (amount := _amount(line)) is not None]
    return [_with_point(line, amounts) if amounts else line[0] for line in lines]


def page_with_points(page: Page, provenance: str) -> Page:
    """The page with points put back; a line that gained one says by `provenance` who did it."""
    placed = [(line.text, absolute(line.polygon, page.width, page.height)) for line in page.lines]
    texts = iter(with_points(placed))

    def line(old: Line) -> Line:
        text = next(texts)
        return old if text == old.text else replace(old, text=text, provenance=provenance)

    regions = tuple(replace(region, lines=tuple(map(line, region.lines))) for region in page.regions)
    return replace(page, regions=regions)


def _with_point(line: Placed, amounts: Sequence[_Amount]) -> str:
    text, quad = line
    if gap := _GAP.fullmatch(text):
        here = _at(quad, "", 0)
        alone = _digits(gap["head"]) == gap["head"]
        mark = next((other.mark for other in amounts if _ends_level(here, other)), None)
        if mark is None and alone:
            mark = next((other.mark for other in amounts if _starts_level(here, other)), None)
        return text if mark is None else f"{gap['head']}{mark}{gap['tail']}"
    if bare := _BARE.fullmatch(text):
        here = _at(quad, "", int(_digits(text)))
        column = sorted((other for other in amounts if _ends_level(here, other)), key=lambda other: other.middle)
        if column and (_stands_elsewhere(here, amounts) or _adds_up(here, column)):
            return f"{bare['head']}{column[0].mark}{bare['tail']}"
    return text


def _amount(line: Placed) -> _Amount | None:
    found = _AMOUNT.fullmatch(line[0])
    return _at(line[1], found["mark"], int(_digits(found["digits"]) + found["cents"])) if found else None


def _at(quad: Quad, mark: str, cents: int) -> _Amount:
    xs, ys = quad[:, 0], quad[:, 1]
    return _Amount(float(xs.min()), float(xs.max()), float(ys.mean()), size(quad)[1], mark, cents)


def _ends_level(one: _Amount, other: _Amount) -> bool:
    return abs(one.end - other.end) < max(one.height, other.height)


def _starts_level(one: _Amount, other: _Amount) -> bool:
    return abs(one.start - other.start) < max(one.height, other.height)


def _stands_elsewhere(one: _Amount, amounts: Sequence[_Amount]) -> bool:
    """Whether the page has the same digits with a point: an item and its total, a total and the cash that paid it."""
    return any(other.cents == one.cents for other in amounts)


def _adds_up(one: _Amount, column: Sequence[_Amount]) -> bool:
    """Whether it is the sum of two or more amounts right above, or such a sum comes out with it among them."""
    above = [other.cents for other in column if other.middle < one.middle][::-1][:_MOST_ITEMS]
    below = [other.cents for other in column if other.middle > one.middle][:_MOST_ITEMS]
    sums = _running(above)
    if one.cents in sums[2:]:
        return True
    return any(
        down < len(below) and upper + one.cents + lower == below[down]
        for up, upper in enumerate(sums)
        for down, lower in enumerate(_running(below))
        if up + down >= 1
    )


def _running(values: Sequence[int]) -> list[int]:
    """Sums of the first 0, 1, 2, ... values."""
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _digits(text: str) -> str:
    return re.sub(r"[^0-9]", "", text)
