"""Printed dates: finding them in a line and turning them into calendar dates.

Understood: `31/12/2018`, `31-12-18`, `31.12.2018`, `2018-12-31`, `20181231`, `31122018`, `31 DEC 2018`, `31-DEC-18`,
`Dec 31, 2018`, `2018年12月31日`, `民國107年12月31日`, each with a time attached or not. Where day and month could be
either, day comes first unless the caller says otherwise.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from docferry.fields.folding import narrow

_MONTHS: dict[str, int] = {
    **dict.fromkeys(("JAN", "JANUARY", "JANUAR", "JANUARI", "JANVIER"), 1),
    **dict.fromkeys(("FEB", "FEBRUARY", "FEBRUAR", "FEBRUARI"), 2),
    **dict.fromkeys(("MAR", "MARCH", "MAC", "MAERZ", "MÄRZ", "MAART", "MARS"), 3),
    **dict.fromkeys(("APR", "APRIL", "AVRIL"), 4),
    **dict.fromkeys(("MAY", "MEI", "MAI"), 5),
    **dict.fromkeys(("JUN", "JUNE", "JUNI", "JUIN"), 6),
    **dict.fromkeys(("JUL", "JULY", "JULI", "JULAI", "JUILLET"), 7),
    **dict.fromkeys(("AUG", "AUGUST", "AUGUSTUS", "OGOS", "OGO"), 8),
    **dict.fromkeys(("SEP", "SEPT", "SEPTEMBER", "SEPTEMBRE"), 9),
    **dict.fromkeys(("OCT", "OCTOBER", "OKT", "OKTOBER", "OCTOBRE"), 10),
    **dict.fromkeys(("NOV", "NOVEMBER", "NOVEMBRE"), 11),
    **dict.fromkeys(("DEC", "DECEMBER", "DEZ", "DEZEMBER", "DIS", "DISEMBER"), 12),
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))

# A year may run into the time that follows it: `31/12/201813:45`, `31/12/1813:45`.
_YEAR = r"(?:\d\d(?=(?:[01]?\d|2[0-3]):[0-5]\d)|(?:19|20)\d\d(?=\s?\d{1,2}:\d\d)|(?:19|20)\d\d(?!\d)|\d\d(?!\d))"
_BEFORE = r"(?<![\d])(?<!\d[./-])"
_YEAR_FIRST = re.compile(
    rf"{_BEFORE}((?:19|20)\d\d)\s?([-/.年])\s?(\d{{1,2}})\s?[-/.月]\s?(\d{{1,2}})(?!\d(?!\d?:))\s?日?"
)
_ROC = re.compile(r"(?<!\d)(?:中[華华])?(?:民[國国])?\s?(\d{2,3})\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?日?")
# Hyphens and dots must be spaced alike, or `11-22 - 30` would be a date.
_YEAR_LAST = re.compile(
    rf"{_BEFORE}(\d{{1,2}})(?:\s?/\s?(\d{{1,2}})\s?/\s?|(\s?[-.]\s?)(\d{{1,2}})\3)({_YEAR})(?![./-]\d)"
)
_DAY_MONTH = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:ST|ND|RD|TH)?[\s\-/.,]{{0,2}}({_MONTH})[\s\-/.,']{{0,3}}({_YEAR})", re.IGNORECASE
)
_MONTH_DAY = re.compile(
    rf"(?<![A-Z])({_MONTH})[\s\-.]{{0,2}}(\d{{1,2}})(?:ST|ND|RD|TH)?(?:\s?[,.]\s?|[\s\-/]{{1,2}})({_YEAR})",
    re.IGNORECASE,
)
_COMPACT = re.compile(r"(?<![\dA-Z])((?:19|20)\d\d)(\d\d)(\d\d)(?![\d])", re.IGNORECASE)
_COMPACT_YEAR_LAST = re.compile(r"(?<![\dA-Z])(\d\d)(\d\d)(20\d\d)(?![\d])", re.IGNORECASE)

# Digits that came out as letters inside a numeric date.
_SLIPPED = re.compile(r"(?<![A-Z\d])[\dOoIl|]{1,4}([-/.])[\dOoIl|]{1,2}\1[\dOoIl|]{2,4}(?![A-Z\d])", re.IGNORECASE)
_GLYPHS_TO_DIGITS = str.maketrans("OoIl|", "00111")


@dataclass(frozen=True, slots=True)
class PrintedDate:
    """One printed date.

    Attributes:
        value: The calendar date.
        text: As printed, without the time.
        start, end: Where `text` stands in the line.
        ambiguous: Day and month could change places.
        month_first: The print itself proves that the month comes first (`12/31/2018`).
        day_first: The print itself proves that the day comes first (`31/12/2018`).
        style: `numeric`, `short` (two-digit year), `iso`, `named`, `compact` (20181231), `digits` (31122018) or `cjk`.
    """

    value: dt.date
    text: str
    start: int
    end: int
    ambiguous: bool = False
    month_first: bool = False
    day_first: bool = False
    style: str = "numeric"


def find_dates(text: str, *, day_first: bool = True) -> tuple[PrintedDate, ...]:
    """Every date in one line of text, from left to right, none overlapping another. Never raises.

    Args:
        day_first: How to read `03/04/2018` where nothing else decides.
    """
    repaired = _SLIPPED.sub(lambda match: match[0].translate(_GLYPHS_TO_DIGITS), narrow(text))
    found: list[PrintedDate] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(repaired):
            start, end = match.span()
            if any(start < other.end and other.start < end for other in found):
                continue
            date = read(match, day_first)
            if date is not None:
                found.append(date)
    kept = sorted(found, key=lambda date: date.start)
    return tuple(_as_printed(date, text) for date in kept)


def parse_date(text: str, *, day_first: bool = True) -> dt.date | None:
    """The first date in `text`, or None. Never raises."""
    dates = find_dates(text, day_first=day_first)
    return dates[0].value if dates else None


def _as_printed(date: PrintedDate, text: str) -> PrintedDate:
    printed = text[date.start : date.end].rstrip()
    return PrintedDate(
        date.value,
        printed,
        date.start,
        date.start + len(printed),
        date.ambiguous,
        date.month_first,
        date.day_first,
        date.style,
    )


def _date(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def _full_year(printed: str) -> int:
    """Two digits mean 1970 to 2069, as POSIX `strptime` nearly has it."""
    year = int(printed)
    if len(printed) > 2:
        return year
    return 2000 + year if year < 70 else 1900 + year


def _read_year_first(match: re.Match[str], _day_first: bool) -> PrintedDate | None:
    value = _date(int(match[1]), int(match[3]), int(match[4]))
    style = "cjk" if match[2] == "年" else "iso"
    return PrintedDate(value, match[0], *match.span(), style=style) if value else None


def _read_roc(match: re.Match[str], _day_first: bool) -> PrintedDate | None:
    year = int(match[1])
    # Two digits without the era's name are a short common year; the Republic's calendar starts in 1912.
    named = "民" in match[0] or len(match[1]) == 3
    value = _date(year + 1911 if named else 2000 + year, int(match[2]), int(match[3]))
    return PrintedDate(value, match[0], *match.span(), style="cjk") if value else None


def _read_year_last(match: re.Match[str], day_first: bool) -> PrintedDate | None:
    first, second, year = int(match[1]), int(match[2] or match[4]), _full_year(match[5])
    style = "numeric" if len(match[5]) == 4 else "short"
    day_month = _date(year, second, first)
    month_day = _date(year, first, second)
    if day_month and month_day:
        value = day_month if day_first else month_day
        return PrintedDate(value, match[0], *match.span(), ambiguous=first != second, style=style)
    if day_month:
        return PrintedDate(day_month, match[0], *match.span(), day_first=True, style=style)
    if month_day:
        return PrintedDate(month_day, match[0], *match.span(), month_first=True, style=style)
    if style == "short" and len(match[1]) == 2:
        value_short = _date(_full_year(match[1]), second, int(match[5]))
        return PrintedDate(value_short, match[0], *match.span(), style=style) if value_short else None
    return None


def _read_day_month(match: re.Match[str], _day_first: bool) -> PrintedDate | None:
    value = _date(_full_year(match[3]), _MONTHS[match[2].upper()], int(match[1]))
    return PrintedDate(value, match[0], *match.span(), style="named") if value else None


def _read_month_day(match: re.Match[str], _day_first: bool) -> PrintedDate | None:
    value = _date(_full_year(match[3]), _MONTHS[match[1].upper()], int(match[2]))
    return PrintedDate(value, match[0], *match.span(), style="named") if value else None


def _read_compact(match: re.Match[str], _day_first: bool) -> PrintedDate | None:
    value = _date(int(match[1]), int(match[2]), int(match[3]))
    return PrintedDate(value, match[0], *match.span(), style="compact") if value else None


def _read_compact_year_last(match: re.Match[str], _day_first: bool) -> PrintedDate | None:
    value = _date(int(match[3]), int(match[2]), int(match[1]))
    return PrintedDate(value, match[0], *match.span(), style="digits") if value else None


# Surest pattern first: a later one may not overlap what an earlier one took.
_READERS = (
    (_YEAR_FIRST, _read_year_first),
    (_YEAR_LAST, _read_year_last),
    (_DAY_MONTH, _read_day_month),
    (_MONTH_DAY, _read_month_day),
    (_ROC, _read_roc),
    (_COMPACT, _read_compact),
    (_COMPACT_YEAR_LAST, _read_compact_year_last),
)
