"""What in a line of text must not leave a device: card and account numbers, national numbers, e-mail, telephone.

A reader misreads a digit now and then, and then no check digit is right. What is written like such a number is
therefore taken for one even so: a card's digits in fours, a country's account number at its full length. Check digits
decide where the shape alone says little. Faces are not looked for.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from docferry.fields import checksums
from docferry.fields.checksums import compact
from docferry.fields.folding import narrow

MASK = "█"


class Sensitive(enum.StrEnum):
    """Kinds that can be masked."""

    CARD = "card"
    IBAN = "iban"
    NATIONAL_ID = "national_id"
    EMAIL = "email"
    PHONE = "phone"


@dataclass(frozen=True, slots=True)
class Match:
    """A piece of text from `start` to `end`, and how many of its last letters and digits may stay readable."""

    kind: Sensitive
    start: int
    end: int
    keep: int = 0


_DIGIT = "[0-9OoQDIl|SBZ]"
_TO_DIGITS = str.maketrans("OoQDIl|SBZ", "0000111582")
_DIGITS = re.compile(rf"(?<![\w]){_DIGIT}(?:[ \-.·]{{0,2}}{_DIGIT}){{12,18}}(?![\w])")
_FOURS = re.compile(
    rf"(?<!\w)(?:{_DIGIT}{{4}}[ \-.·]{{1,2}}){{3}}{_DIGIT}{{2,4}}(?:[ \-.·]{_DIGIT}{{1,3}})?(?!\w)"
    rf"|(?<!\w)3[47]{_DIGIT}{{2}}[ \-.·]{_DIGIT}{{6}}[ \-.·]{_DIGIT}{{5}}(?!\w)"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[ ]?[0-9OIl]{2}(?:[ \-]?[A-Za-z0-9]){11,30}")
_EMAIL = re.compile(r"[\w.+\-]+ ?@ ?[\w\-]+(?: ?\. ?[\w\-]+)+")
_PHONE = re.compile(
    r"(?:(?<!\w)(?:tel|telephone|phone|ph|hp|h/p|mobile|mob|fax|call|whatsapp|telefon|tél|联系电话|电话|手机|传真)"
    r"\.?(?:[ ]?no)?[ .:：#]{0,4}|(?=\+\d)|(?=\(0))(?P<number>[+(]{0,2}\d[\d ().\-/]{5,20}\d)",
    re.IGNORECASE,
)
_MOBILE_CN = re.compile(r"(?<!\d)1[3-9]\d(?:[ \-]?\d{4}){2}(?!\d)")

_Rule = tuple[re.Pattern[str], Callable[[str], bool]]

_NATIONAL: tuple[_Rule, ...] = (
    (re.compile(r"(?<!\w)(?:\d{8}|[XYZ][ \-]?\d{7})[ \-]?[A-Z](?!\w)"), checksums.is_spanish),
    (
        re.compile(r"(?<!\w)[12][ ]?\d{2}[ ]?\d{2}[ ]?(?:\d{2}|2[AB])[ ]?\d{3}[ ]?\d{3}[ ]?\d{2}(?!\w)"),
        checksums.is_french,
    ),
    (re.compile(r"(?<!\w)\d{2}[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}(?!\w)"), checksums.is_german),
    (
        re.compile(r"(?<!\w)[A-Z]{6}[ ]?\d{2}[A-EHLMPRST]\d{2}[ ]?[A-Z]\d{3}[A-Z](?!\w)"),
        checksums.is_italian,
    ),
    (re.compile(r"(?<!\w)[STFGM]\d{7}[A-Z](?!\w)"), checksums.is_singaporean),
    # Malaysia, China: a day of birth in a number of its own shape; a misread digit must not unmask it.
    (re.compile(r"(?<!\w)\d{6}-\d{2}-\d{4}(?!\w)"), lambda text: checksums.has_date(text, 0, century=False)),
    (re.compile(r"(?<!\w)[1-9]\d{16}[\dX](?!\w)"), lambda text: checksums.has_date(text, 6, century=True)),
    # United States, Great Britain, Brazil with its points: shape alone.
    (re.compile(r"(?<![\w\-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w\-])"), lambda _: True),
    (re.compile(r"(?<!\w)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?:[ ]?\d{2}){3}[ ]?[A-D](?!\w)"), lambda _: True),
    (re.compile(r"(?<!\w)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)"), lambda _: True),
    (re.compile(r"(?<!\w)\d{11}(?!\w)"), checksums.is_brazilian),
)


def find_sensitive(text: str, kinds: Collection[Sensitive]) -> tuple[Match, ...]:
    """Everything of these kinds in one line, from left to right; overlapping finds are joined. Never raises."""
    plain = narrow(text)
    if len(plain) != len(text):
        # Widths fold one character to one; should they not, places in the two would differ.
        plain = text
    found: list[Match] = []
    for kind in Sensitive:
        if kind in kinds:
            found += _FINDERS[kind](plain)
    return _joined(sorted(found, key=lambda match: (match.start, -match.end)))


def mask_text(text: str, matches: Collection[Match]) -> str:
    """The text with every letter and digit of the matches replaced, but for those that may stay."""
    characters = list(text)
    for match in matches:
        places = [place for place in range(match.start, match.end) if text[place].isalnum()]
        for place in places[: len(places) - match.keep]:
            characters[place] = MASK
    return "".join(characters)


def mask_all(text: str) -> str:
    """The text with every letter and digit replaced."""
    return "".join(MASK if character.isalnum() else character for character in text)


def _cards(text: str) -> Iterator[Match]:
    for match in _DIGITS.finditer(text):
        if _mostly_digits(match[0]) and checksums.is_card(_as_digits(match[0])):
            yield Match(Sensitive.CARD, *match.span(), keep=4)
    for match in _FOURS.finditer(text):
        if _mostly_digits(match[0]) and _as_digits(match[0])[0] in "23456":
            yield Match(Sensitive.CARD, *match.span(), keep=4)


def _ibans(text: str) -> Iterator[Match]:
    for match in _IBAN.finditer(text):
        length = checksums.iban_length(match[0][:2])
        end = _end_after(text, match.start(), length)
        if not length or end is None or end > match.end():
            continue
        account = compact(text[match.start() : end])
        digits = sum(character.isdigit() for character in account[4:])
        # A misread digit breaks the check; words ("NO 12 HIGH STREET") and numbers ("NO 1234...") never had one.
        likely = match[0][2] != " " and digits >= max(8, 0.6 * len(account[4:]))
        if likely or checksums.is_iban(account):
            yield Match(Sensitive.IBAN, match.start(), end, keep=4)


def _national(text: str) -> Iterator[Match]:
    for pattern, right in _NATIONAL:
        for match in pattern.finditer(text):
            if right(compact(match[0])):
                yield Match(Sensitive.NATIONAL_ID, *match.span())


def _emails(text: str) -> Iterator[Match]:
    return (Match(Sensitive.EMAIL, *match.span()) for match in _EMAIL.finditer(text))


def _phones(text: str) -> Iterator[Match]:
    for match in _PHONE.finditer(text):
        if 7 <= sum(character.isdigit() for character in match["number"]) <= 15:
            yield Match(Sensitive.PHONE, *match.span("number"))
    for match in _MOBILE_CN.finditer(text):
        yield Match(Sensitive.PHONE, *match.span())


_FINDERS: dict[Sensitive, Callable[[str], Iterator[Match]]] = {
    Sensitive.CARD: _cards,
    Sensitive.IBAN: _ibans,
    Sensitive.NATIONAL_ID: _national,
    Sensitive.EMAIL: _emails,
    Sensitive.PHONE: _phones,
}


def _joined(matches: list[Match]) -> tuple[Match, ...]:
    joined: list[Match] = []
    for match in matches:
        if joined and match.start < joined[-1].end:
            before = joined[-1]
            # Of two kinds in one place the stricter one decides what may stay.
            joined[-1] = Match(before.kind, before.start, max(before.end, match.end), min(before.keep, match.keep))
        else:
            joined.append(match)
    return tuple(joined)


def _as_digits(text: str) -> str:
    return "".join(character for character in text.translate(_TO_DIGITS) if character.isdigit())


def _mostly_digits(text: str) -> bool:
    """Whether at most a quarter of the signs are letters that a reader takes digits for."""
    signs = [character for character in text if character.isalnum() or character == "|"]
    return sum(character.isdigit() for character in signs) >= 0.75 * len(signs)


def _end_after(text: str, start: int, count: int) -> int | None:
    """Where the so-manieth letter or digit from `start` ends; None if the text is shorter."""
    for place in range(start, len(text)):
        count -= text[place].isalnum()
        if count == 0:
            return place + 1
    return None
