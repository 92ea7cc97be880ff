"""Checks of their own for numbers: a lost decimal point has full score, but its column and its sums know better."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from docferry.confidence.place import Placed
from docferry.fields.dates import find_dates

NAMES = (
    "bare_in_column",
    "bare_in_row",
    "bare_number",
    "odd_decimals",
    "leading_zero",
    "broken_date",
    "lost_colon",
    "odd_mark",
    "currency_slip",
    "amount",
    "amount_in_column",
    "amount_repeated",
    "amount_sums",
)
"""The signals of `number_signals`, in its order; the last four speak for the line, those before against it."""

_AMOUNT = re.compile(r"(?<![\d.,])\d{1,3}(?:[,.]?\d{3})*[.,]\d\d(?!\d)")
_TAIL_AMOUNT = re.compile(r"\d[.,]\d{1,2}\s?\D{0,4}$")
# A number without a point, alone in its line but for a currency, or after `@` or `x`: a price that may have lost it.
_THREE_DIGITS = re.compile(r"\d{3}")
_TAIL_BARE = re.compile(r"(?:^|[@×x]\s?)[^\d\s]{0,3}\s?-?\d{2,5}\s?\D{0,2}$")
_POINT = re.compile(r"\d\.\d\d(?!\d|[.,/\-]\d)")
_COMMA = re.compile(r"\d,\d\d(?!\d|[.,/\-]\d)")
_COMMA_WORDS = re.compile(r"\bEUR\b|€|\bMwSt\b|\bBTW\b|\bTVA\b|\bUSt\b", re.IGNORECASE)
_CURRENCY_SLIP = re.compile(r"(?<![A-Za-z])(?:SS|[SEYLC])\s?\d+[.,]?\d\d(?!\d)|\((?:SS|E|S)\)|(?<=\d )[a-z](?= \d)")
_BARE = re.compile(r"^\D{0,4}\d{1,7}$")
_ODD_DECIMALS = re.compile(r"(?<![\d.,:/\-])\d+[.,](?:\d|\d{4,})(?![\d.,:/%])|\d[.,]\d\d[.,]\d")
_LEADING_ZERO = re.compile(r"(?<![\d.,:/\-A-Za-z])0\d{1,2}(?![\d.,:/\-])")
_DATE_LIKE = re.compile(r"(?<!\d)\d{1,4}[-/.]\d{1,2}[-/.]\d{2,4}(?!\d)|\d{1,2}/\d{3,4}(?!\d)|\d{4}/\d{2}(?!\d)")


def number_signals(texts: Sequence[str], places: Sequence[Placed]) -> list[tuple[float, ...]]:
    """The signals named in `NAMES` for every line of a page, each >= 0."""
    numeric = [any(map(str.isdigit, text)) for text in texts]
    values = [
        [_cents(amount) for amount in _AMOUNT.findall(text)] if some else []
        for text, some in zip(texts, numeric, strict=True)
    ]
    seen = Counter(value for found in values for value in set(found))
    sums = _sums([value for found in values for value in found])
    pointed = [bool(_TAIL_AMOUNT.search(text)) if some else False for text, some in zip(texts, numeric, strict=True)]
    bare = [
        some and not point and bool(_TAIL_BARE.search(text))
        for text, some, point in zip(texts, numeric, pointed, strict=True)
    ]
    rights = [place.box[2] for place, point in zip(places, pointed, strict=True) if point]
    beside = [place for place, point in zip(places, pointed, strict=True) if point]
    bare_rights = [place.box[2] for place, one in zip(places, bare, strict=True) if one]
    colons = _lost_colons(texts, places)
    marks = _odd_marks(texts, numeric)
    signals: list[tuple[float, ...]] = []
    for at, (text, place, found) in enumerate(zip(texts, places, values, strict=True)):
        slip = float("(" in text and bool(_CURRENCY_SLIP.search(text)))
        if not numeric[at]:
            signals.append((*_NONE[:6], colons[at], 0.0, slip, *_NONE[9:]))
            continue
        column = _aligned(place, rights) if pointed[at] or bare[at] else 0
        repeats = max((seen[value] - 1 for value in found), default=0)
        signals.append(
            (
                math.log1p(column) * column / (column + _aligned(place, bare_rights)) if bare[at] else 0.0,
                _in_row(place, beside) if bare[at] and _THREE_DIGITS.search(text) else 0.0,
                float(bool(_BARE.search(text))),
                math.log1p(len(_ODD_DECIMALS.findall(text))),
                math.log1p(len(_LEADING_ZERO.findall(text))),
                float(bool(_DATE_LIKE.search(text)) and not find_dates(text)),
                colons[at],
                marks[at],
                float(bool(_CURRENCY_SLIP.search(text))),
                float(bool(found)),
                math.log1p(max(0, column - 1)) if pointed[at] else 0.0,
                math.log1p(min(repeats, 3)),
                float(any(value in sums for value in found)),
            )
        )
    return signals


_NONE = (0.0,) * len(NAMES)


def _lost_colons(texts: Sequence[str], places: Sequence[Placed]) -> list[float]:
    """For words with a number to their right, and no colon at their end: how many others like them have one."""
    lost = [0.0] * len(texts)
    numbers = [place for text, place in zip(texts, places, strict=True) if text[-1:].isdigit()]
    labels = [
        at
        for at, (text, place) in enumerate(zip(texts, places, strict=True))
        if text[:1].isalpha() and not text[-1:].isdigit() and any(_beside(place, other) for other in numbers)
    ]
    with_colon = sum(texts[at].rstrip().endswith((":", "：")) for at in labels)
    for at in labels:
        if with_colon and not texts[at].rstrip().endswith((":", "：")):
            lost[at] = math.log1p(with_colon)
    return lost


def _beside(place: Placed, other: Placed) -> bool:
    """Whether `other` stands to the right of `place`, in the same row."""
    if other.box[0] < place.box[2] - place.height:
        return False
    return abs(place.box[1] + place.box[3] - other.box[1] - other.box[3]) < place.height


def _cents(amount: str) -> int:
    return int(amount.replace(",", "").replace(".", ""))


def _aligned(place: Placed, rights: Sequence[float]) -> int:
    """How many of these right edges stand where this line ends, give or take a third of its height."""
    end, reach = place.box[2], 0.35 * place.height
    return sum(-reach <= right - end <= reach for right in rights)


def _in_row(place: Placed, amounts: Sequence[Placed]) -> float:
    """How many amounts stand in the same row, as a logarithm."""
    middle, reach = place.box[1] + place.box[3], place.height
    return math.log1p(sum(-reach < other.box[1] + other.box[3] - middle < reach for other in amounts))


def _odd_marks(texts: Sequence[str], numeric: Sequence[bool]) -> list[float]:
    """1 for lines whose decimal mark is not the page's: the rarer one, or a point where the words ask for a comma."""
    points = [bool(_POINT.search(text)) if some else False for text, some in zip(texts, numeric, strict=True)]
    commas = [bool(_COMMA.search(text)) if some else False for text, some in zip(texts, numeric, strict=True)]
    if not any(points) and not any(commas):
        return [0.0] * len(texts)
    wants_commas = sum(commas) > sum(points)
    if not wants_commas and sum(commas) == 0:
        wants_commas = any(_COMMA_WORDS.search(text) for text in texts)
    return [float(point if wants_commas else comma) for point, comma in zip(points, commas, strict=True)]


def _sums(values: Sequence[int]) -> frozenset[int]:
    """Amounts that are the sum or the difference of two others nearby, or that a run of prices above adds up to."""
    found: set[int] = set()
    present = set(values)
    for at, first in enumerate(values):
        if first == 0:
            continue
        for second in values[at + 1 : at + 9]:
            if second and first + second in present:
                found |= {first, second, first + second}
        running = first
        for second in values[at + 1 : at + 13]:
            if second and second == running and running != first:
                found.add(second)
            running += second
    return frozenset(found)
