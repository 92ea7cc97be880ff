"""Candidates for total and date: every amount and every date on the paper, each with the traits a scorer weighs."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from docferry.fields.amounts import Amount, find_amounts, plain_decimal
from docferry.fields.checks import Sums, sums_of
from docferry.fields.dates import PrintedDate, find_dates
from docferry.fields.folding import contains_any, fold, words
from docferry.fields.labels import Label, label_of, opens_tax_summary
from docferry.fields.rows import Piece, Row


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible answer for one field.

    Attributes:
        value, normalized: As in `Field`; candidates with equal `key` support each other.
        key: What makes two candidates the same answer.
        pieces: The lines it was read from.
        features: Trait name to strength; absent means 0.
    """

    value: str
    normalized: str
    key: str
    pieces: tuple[Piece, ...]
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LabelledAmount:
    """An amount with what stands around it.

    Attributes:
        label: What the words to its left say, or, where there are none, the row above or below.
        direct: The label stands in the amount's own row.
        summary: It belongs to a table of tax rates.
        place: From the right within its row, 0 is the last.
        implied: The decimal point was not read (`1895`) and was put where all other amounts have it.
    """

    row: Row
    piece: Piece
    amount: Amount
    label: Label
    direct: bool
    summary: bool
    place: int
    count: int
    implied: bool = False


_TIME = re.compile(r"(?<!\d)\d{1,2}\s?[:.]\s?\d{2}(?:\s?[:.]\s?\d{2})?\s?(?:[AP]\.?M\b)?|\d\s?[AP]M\b", re.IGNORECASE)
_CLOCK = re.compile(r"(?<!\d)\d{1,2}\s?:\s?\d{2}(?:\s?:\s?\d{2})?(?!\d)")


def labelled_amounts(rows: tuple[Row, ...]) -> tuple[LabelledAmount, ...]:
    """Every amount of the document with its label, top to bottom, left to right. Dates and times are no amounts."""
    found: list[LabelledAmount] = []
    summary = 0
    for row in rows:
        # A summary of tax rates is a heading and a few rows; it seldom runs on.
        summary = 6 if opens_tax_summary(row.text) else max(summary - 1, 0)
        found.extend(_amounts_of_row(rows, row, summary > 0))
    return _with_implied_points(found)


_MONEY = frozenset(Label) - {Label.OTHER, Label.NONE, Label.QUANTITY}


def _with_implied_points(found: list[LabelledAmount]) -> tuple[LabelledAmount, ...]:
    """Puts back decimal points that the reader lost, its commonest slip on receipts at full confidence.

    Only where at least three amounts and most of those labelled as money have two decimals, and only in an integer
    of three digits or more that is so labelled.
    """
    money = [item for item in found if item.label in _MONEY]
    pointed = sum(item.amount.decimals == 2 for item in found)
    if pointed < 3 or 2 * sum(item.amount.decimals == 2 for item in money) <= len(money):
        return tuple(found)
    return tuple(_with_implied_point(item) if item.label in _MONEY else item for item in found)


def _with_implied_point(item: LabelledAmount) -> LabelledAmount:
    amount = item.amount
    if amount.decimals or abs(amount.value) < 100 or "," in amount.text or item.place:
        return item
    return replace(item, amount=replace(amount, value=amount.value / 100, decimals=2), implied=True)


def _amounts_of_row(rows: tuple[Row, ...], row: Row, summary: bool) -> list[LabelledAmount]:
    hits: list[tuple[Piece, Amount, str]] = []
    left: list[str] = []
    for piece in row.pieces:
        text = _without_dates(piece.line.text)
        at = 0
        for amount in find_amounts(text):
            left.append(text[at : amount.start])
            hits.append((piece, amount, " ".join(left)))
            at = amount.end
        left.append(text[at:])
    labelled: list[LabelledAmount] = []
    for number, (piece, amount, before) in enumerate(hits):
        label, direct = label_of(before), True
        if label is Label.NONE and number == 0:
            label, direct = _label_nearby(rows, row, piece), False
        if label is Label.ROUNDING and abs(amount.value) >= _LEAST_SUM:
            label = Label.PAYABLE
        place = len(hits) - 1 - number
        labelled.append(LabelledAmount(row, piece, amount, label, direct, summary, place, len(hits)))
    return labelled


_LEAST_SUM = Decimal("0.5")
"""Nobody rounds by as much: an amount like this beside `ROUNDING` is the rounded sum itself."""


def _without_dates(text: str) -> str:
    """`text` with dates and clock times blanked out, lengths kept."""
    for date in find_dates(text):
        text = text[: date.start] + " " * (date.end - date.start) + text[date.end :]
    return _CLOCK.sub(lambda match: " " * len(match[0]), text)


def _label_nearby(rows: tuple[Row, ...], row: Row, piece: Piece) -> Label:
    """The label of a bare amount: a row of words alone right above it, within two text heights, or half a row off."""
    for index in (row.index - 1, row.index + 1):
        if not 0 <= index < len(rows) or rows[index].page != row.page:
            continue
        other = rows[index]
        reach = 2.0 if index < row.index else 0.9
        bare = not any(find_amounts(_without_dates(near.line.text)) for near in other.pieces)
        if bare and abs(other.middle - piece.middle) <= reach * piece.height:
            label = label_of(other.text)
            if label not in {Label.OTHER, Label.NONE}:
                return label
    return Label.NONE


def total_candidates(rows: tuple[Row, ...], amounts: tuple[LabelledAmount, ...]) -> tuple[Candidate, ...]:
    """Every amount that could be the total, with its traits."""
    likely = [item for item in amounts if item.amount.value >= 0 and not (item.amount.decimals > 2)]
    if not likely:
        return ()
    setting = _Setting(
        sums_of([(item.label, item.amount.value) for item in amounts if not item.summary], _column(amounts)),
        statistics.median(item.piece.height for item in likely),
        Counter(item.amount.value for item in likely),
        max(item.amount.value for item in likely),
        max((item.amount.value for item in likely if item.label in _SUMS), default=Decimal(0)),
        tuple(label_of(_words_left(row)) for row in rows),
    )
    return tuple(
        Candidate(
            item.amount.text,
            plain_decimal(item.amount.value),
            str(item.amount.value.normalize()),
            (item.piece,),
            _total_features(item, setting),
        )
        for item in likely
    )


def _column(amounts: tuple[LabelledAmount, ...]) -> list[tuple[Label, Decimal]]:
    """The last amount of each row: what a column of prices adds up from."""
    return [(item.label, item.amount.value) for item in amounts if item.place == 0 and not item.summary]


def _words_left(row: Row) -> str:
    text = _without_dates(row.text)
    amounts = find_amounts(text)
    return text[: amounts[0].start] if amounts else text


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a candidate for the total is compared with: the document's other amounts, and the label of each row."""

    sums: Sums
    height: float
    repeats: Counter[Decimal]
    largest: Decimal
    largest_sum: Decimal
    labels: tuple[Label, ...]


def _total_features(item: LabelledAmount, setting: _Setting) -> dict[str, float]:
    amount, row, sums = item.amount, item.row, setting.sums
    value = amount.value
    features: dict[str, float] = {"bias": 1.0, f"label_{item.label}": 1.0}
    if not item.direct and item.label is not Label.NONE:
        features["label_nearby"] = 1.0
    if item.summary:
        features["summary"] = 1.0
    features[f"decimals_{min(amount.decimals, 2)}"] = 1.0
    features["implied"] = float(item.implied)
    if amount.currency:
        features["currency"] = 1.0
    if value == 0:
        features["zero"] = 1.0
    features["last_in_row"] = float(item.place == 0)
    features["alone_in_row"] = float(item.count == 1)
    features["tall"] = min(max(item.piece.height / setting.height - 1.0, 0.0), 1.0)
    features["depth"] = row.index / max(len(setting.labels) - 1, 1)
    features["largest"] = float(value == setting.largest)
    features["small"] = float(value * 2 < setting.largest_sum)
    features["repeated"] = min(setting.repeats[value] - 1, 3) / 3
    features["paid_minus_change"] = float(value in sums.paid_minus_change)
    features["subtotal_plus_tax"] = float(value in sums.with_tax)
    features["after_rounding"] = float(value in sums.rounded)
    features["before_rounding"] = float(value in sums.unrounded)
    features["items_sum"] = float(value in sums.items)
    for at, side in ((row.index - 1, "above"), (row.index + 1, "below")):
        if 0 <= at < len(setting.labels) and setting.labels[at] in _TELLING:
            features[f"{side}_{setting.labels[at]}"] = 1.0
    return features


_SUMS = frozenset({Label.PAYABLE, Label.TOTAL, Label.INCLUSIVE, Label.SUBTOTAL})
_TELLING = frozenset(
    {Label.ROUNDING, Label.CASH, Label.CHANGE, Label.TAX, Label.SUBTOTAL, Label.TOTAL, Label.PAYABLE, Label.QUANTITY}
)

_DATE_WORDS = ("DATE", "TARIKH", "DATUM", "日期", "开票日期", "时间", "TGL")
_OTHER_DATES = (
    "DUE",
    "EXPIR",
    "VALID",
    "UNTIL",
    "BEFORE",
    "DELIVERY",
    "EFFECTIVE",
    "ENTRY",
    "BIRTH",
    "有效",
    "到期",
    "PRINTED",
    "SINCE",
    "FROM",
)


def date_candidates(rows: tuple[Row, ...]) -> tuple[Candidate, ...]:
    """Every date on the paper, with its traits."""
    found = _dates(rows, day_first=_day_first(rows))
    repeats = Counter(item.date.value for item in found)
    return tuple(
        Candidate(
            item.date.text,
            item.date.value.isoformat(),
            item.date.value.isoformat(),
            item.pieces,
            _date_features(rows, item, number, repeats[item.date.value]),
        )
        for number, item in enumerate(found)
    )


@dataclass(frozen=True, slots=True)
class _FoundDate:
    """A date in a row's text, and the pieces it covers."""

    row: Row
    pieces: tuple[Piece, ...]
    date: PrintedDate


def _dates(rows: tuple[Row, ...], *, day_first: bool) -> list[_FoundDate]:
    """All dates, looked for in whole rows: a reader may put `30`, `DEC` and `17` into three boxes."""
    found: list[_FoundDate] = []
    for row in rows:
        for date in find_dates(row.text, day_first=day_first):
            at, pieces = 0, []
            for piece in row.pieces:
                end = at + len(piece.line.text)
                if at < date.end and date.start < end:
                    pieces.append(piece)
                at = end + 1
            found.append(_FoundDate(row, tuple(pieces), date))
    return found


_US_ADDRESS = re.compile(r"\b[A-Z]{2}[ ,.]+\d{5}(?:-\d{4})?\b")
_DAY_FIRST_CURRENCIES = frozenset({"MYR", "EUR", "GBP", "SGD", "AUD", "INR", "THB", "IDR"})


def _day_first(rows: tuple[Row, ...]) -> bool:
    """How this document writes its dates: by a date that proves it, else by its currency and address."""
    dates = [item.date for item in _dates(rows, day_first=True)]
    if any(date.day_first for date in dates):
        return True
    if any(date.month_first for date in dates):
        return False
    currencies = {amount.currency for row in rows for amount in find_amounts(row.text)}
    if currencies & _DAY_FIRST_CURRENCIES:
        return True
    return not ("USD" in currencies and any(_US_ADDRESS.search(row.text) for row in rows))


def _date_features(rows: tuple[Row, ...], item: _FoundDate, number: int, repeats: int) -> dict[str, float]:
    row, date = item.row, item.date
    text = row.text
    before = text[: date.start]
    above = rows[row.index - 1].text if row.index and rows[row.index - 1].page == row.page else ""
    features: dict[str, float] = {"bias": 1.0, f"style_{date.style}": 1.0}
    if contains_any(fold(before), _DATE_WORDS):
        features["word_left"] = 1.0
    elif contains_any(fold(above), _DATE_WORDS):
        features["word_above"] = 1.0
    if contains_any(fold(before), _OTHER_DATES):
        features["other_date"] = 1.0
    rest = f"{before} {text[date.end :]}"
    features["time"] = float(bool(_TIME.search(rest)) or "TIME" in words(rest))
    features["first"] = float(number == 0)
    features["later"] = min(number, 4) / 4
    features["depth"] = row.index / max(len(rows) - 1, 1)
    features["repeated"] = min(repeats - 1, 2) / 2
    features["year_unlikely"] = float(not 2000 <= date.value.year < 2100)
    follows = text[date.end : date.end + 3].strip()[:1]
    features["glued"] = float(before[-1:].isalpha() or follows in set("-/"))
    features["alone"] = float(date.text == text.strip())
    return features
