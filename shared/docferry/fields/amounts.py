"""Printed amounts: finding them in a line and turning them into decimals.

Understood: `1,234.56`, `1.234,56`, `1'234.56`, `RM 9.00`, `¥9.00`, `9.00元`, `(9.00)`, `9.00-`, `-RM 0.01`, and what a
reader makes of them: `9 .00`, `9.OO`, `1l.50`. Percentages, and digits inside words such as `A4`, are no amounts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from docferry.fields.folding import narrow

CURRENCIES: dict[str, str] = {
    "RM": "MYR",
    "MYR": "MYR",
    "US$": "USD",
    "USD": "USD",
    "S$": "SGD",
    "SGD": "SGD",
    "HK$": "HKD",
    "HKD": "HKD",
    "NT$": "TWD",
    "TWD": "TWD",
    "A$": "AUD",
    "AUD": "AUD",
    "C$": "CAD",
    "CAD": "CAD",
    "RMB": "CNY",
    "CNY": "CNY",
    "CN¥": "CNY",
    "¥": "CNY",
    "￥": "CNY",
    "元": "CNY",
    "圆": "CNY",
    "圓": "CNY",
    "JPY": "JPY",
    "円": "JPY",
    "€": "EUR",
    "EUR": "EUR",
    "£": "GBP",
    "GBP": "GBP",
    "CHF": "CHF",
    "₹": "INR",
    "INR": "INR",
    "RS.": "INR",
    "RP": "IDR",
    "IDR": "IDR",
    "THB": "THB",
    "฿": "THB",
    "₩": "KRW",
    "KRW": "KRW",
    "₫": "VND",
    "VND": "VND",
    "PHP": "PHP",
    "₱": "PHP",
    "$": "USD",
}
"""What is printed beside an amount, and its ISO 4217 code; `$` and `¥` alone stand for their commonest use."""

# Where a single dot before three digits parts thousands, not decimals.
_DOT_GROUPS = frozenset({"EUR", "IDR", "VND"})

_MARK = "|".join(re.escape(mark) for mark in sorted(CURRENCIES, key=len, reverse=True))
_GROUPED = r"\d{1,3}(?:(?P<group>[,.'’\u00a0\u202f])\d{3})(?:(?P=group)\d{3})*(?:\s?[.,]\s?\d{1,2})?"
_NUMBER = rf"(?:{_GROUPED}|\d+(?:\s?[.,]\s?\d{{1,4}})?)"
_AMOUNT = re.compile(
    rf"(?P<open>\(\s?)?(?P<sign>[-−–]\s?)?(?P<mark>{_MARK})?[:\s]{{0,2}}(?P<sign2>[-−–]\s?)?(?P<number>{_NUMBER})"
    rf"(?!\d)(?P<close>\s?\))?(?P<after>\s?(?:{_MARK})(?![A-Z]))?(?P<minus>\s?[-−–](?![\d\w]))?(?P<percent>\s?[%％])?",
    re.IGNORECASE,
)

# A token with a decimal point in it in which some digits came out as letters; needs a true digit somewhere.
_SLIPPED = re.compile(r"(?<![A-Z])(?=[^\s]*\d)[\dOoQDIl|]+\s?[.,]\s?[\dOoQDIl|SB]{2}(?![A-Z\d])")
_GLYPHS_TO_DIGITS = str.maketrans("OoQDIl|SB", "000011158")

_MAX_INTEGER_DIGITS = 7
"""A longer bare run of digits is a telephone, bar code or document number."""


@dataclass(frozen=True, slots=True)
class Amount:
    """One printed amount.

    Attributes:
        value: The number; negative for `-9.00`, `9.00-` and `(9.00)`.
        text: As printed, currency mark included.
        start, end: Where `text` stands in the line.
        currency: ISO 4217 code of the mark beside it, or None.
        decimals: Digits after the decimal separator.
    """

    value: Decimal
    text: str
    start: int
    end: int
    currency: str | None
    decimals: int


def find_amounts(text: str) -> tuple[Amount, ...]:
    """Every amount in one line of text, from left to right. Never raises."""
    repaired = _SLIPPED.sub(lambda match: match[0].translate(_GLYPHS_TO_DIGITS), narrow(text))
    found = (_amount(match, text) for match in _AMOUNT.finditer(repaired))
    return tuple(amount for amount in found if amount is not None)


def parse_amount(text: str) -> Decimal | None:
    """The number in `text` if it is one amount and nothing else, otherwise None. Never raises."""
    amounts = find_amounts(text.strip())
    if len(amounts) != 1 or amounts[0].text.strip() != text.strip():
        return None
    return amounts[0].value


def plain_decimal(value: Decimal) -> str:
    """`value` as the plain decimal of `Field.normalized`: no exponent, at least two decimals."""
    exponent = value.as_tuple().exponent
    decimals = -exponent if isinstance(exponent, int) else 0
    return f"{value:.{max(decimals, 2)}f}"


def _amount(match: re.Match[str], original: str) -> Amount | None:
    if match["percent"]:
        return None
    mark = match["mark"] or (match["after"] or "").strip() or None
    currency = CURRENCIES[mark.upper()] if mark else None
    digits, decimals = _digits(match["number"], currency)
    if not _stands_alone(match, original, decimals, currency):
        return None
    value = Decimal(digits)
    bracketed = bool(match["open"]) and bool(match["close"])
    if match["sign"] or match["sign2"] or match["minus"] or bracketed:
        value = -value
    start, end = match.span()
    if match["open"] and not match["close"]:
        start = match.end("open")
    if match["close"] and not match["open"]:
        end = match.start("close")
    printed = original[start:end]
    start += len(printed) - len(printed.lstrip(" :"))
    return Amount(value, original[start:end].rstrip(), start, end, currency, decimals)


def _digits(number: str, currency: str | None) -> tuple[str, int]:
    """The number's digits with a point as decimal separator, and how many decimals there are."""
    compact = re.sub(r"\s", "", number.replace("\u00a0", "'").replace("\u202f", "'"))
    separators = [glyph for glyph in compact if not glyph.isdigit()]
    if not separators:
        return compact, 0
    last = separators[-1]
    whole, _, tail = compact.rpartition(last)
    grouped = last in "'’" or separators.count(last) > 1
    if len(tail) == 3 and not grouped:
        grouped = last == "," or currency in _DOT_GROUPS
    if grouped and len(tail) == 3:
        return re.sub(r"\D", "", compact), 0
    return f"{re.sub(r'[^0-9]', '', whole)}.{tail}", len(tail)


def _stands_alone(match: re.Match[str], text: str, decimals: int, currency: str | None) -> bool:
    """Whether the digits are an amount of their own and not a piece of a word, code, time or date."""
    number = match["number"]
    at, end = match.start("number"), match.end("number")
    before = text[at - 1] if at else " "
    after = text[end] if end < len(text) else " "
    if before.isdigit() or (before in ".,:/#*" and at > 1 and text[at - 2].isdigit()):
        return False
    if after in ":/" and end + 1 < len(text) and text[end + 1].isdigit():
        return False
    if currency is not None or decimals == 2:
        return not (after.isascii() and after.isalpha() and currency is None and decimals == 0)
    glued = (before.isalnum() and before.isascii()) or (after.isalnum() and after.isascii()) or before in "-/#_"
    bare = number.isdigit()
    too_long = bare and (len(number) > _MAX_INTEGER_DIGITS or (len(number) > 1 and number[0] == "0"))
    return not glued and not too_long and not (bare and after in "-/")
