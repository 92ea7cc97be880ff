"""What every benchmark counts alike: words, lines, decimal points, fields."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from docferry_edge.calibrating.matching import TextLine, line_groups

_WORD = re.compile(r"[a-z0-9.]+|[\u3400-\u9fff]")
_AMOUNT = re.compile(r"\d+[.,]\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Words in common, in the truth, in the reading; add them up over a data set before taking the F1."""

    common: int = 0
    truth: int = 0
    read: int = 0

    def __add__(self, other: WordCounts) -> WordCounts:
        return WordCounts(self.common + other.common, self.truth + other.truth, self.read + other.read)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0..1; 1 where there was nothing to read and nothing was read."""
        both = self.truth + self.read
        return 2 * self.common / both if both else 1.0


def words(text: str) -> list[str]:
    """Lower-case runs of `[a-z0-9.]`, and single Chinese characters."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def word_counts(truth: Iterable[str], read: Iterable[str]) -> WordCounts:
    """Compare two texts, given as lines, as bags of words: position does not count."""
    wanted = Counter(word for line in truth for word in words(line))
    found = Counter(word for line in read for word in words(line))
    return WordCounts((wanted & found).total(), wanted.total(), found.total())


def word_f1(pairs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> float:
    """Word F1 of a data set: `(lines of the truth, lines read)` for each document, summed before dividing."""
    return sum((word_counts(truth, read) for truth, read in pairs), WordCounts()).f1


def folded(text: str) -> str:
    """Only letters and digits, in one case and one width."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


@dataclass(frozen=True, slots=True)
class LineCounts:
    """How lines fared.

    Attributes:
        lines: Lines of the truth that hold a letter or digit.
        found: Those that some read line covers.
        right: Those found whose text, folded, is right.
        amounts: Amounts with two decimals in the lines found.
        lost: Amounts whose digits were read but whose decimal point was not.
    """

    lines: int = 0
    found: int = 0
    right: int = 0
    amounts: int = 0
    lost: int = 0

    def __add__(self, other: LineCounts) -> LineCounts:
        return LineCounts(
            self.lines + other.lines,
            self.found + other.found,
            self.right + other.right,
            self.amounts + other.amounts,
            self.lost + other.lost,
        )

    @property
    def right_rate(self) -> float:
        """Right among found, 0..1."""
        return self.right / self.found if self.found else 0.0

    @property
    def found_rate(self) -> float:
        """Found among all, 0..1."""
        return self.found / self.lines if self.lines else 1.0

    @property
    def lost_rate(self) -> float:
        """Decimal points lost among amounts, 0..1."""
        return self.lost / self.amounts if self.amounts else 0.0


def line_counts(truth: Sequence[TextLine], read: Sequence[TextLine]) -> LineCounts:
    """Match lines by place and compare them.

    Truth and readers cut lines differently at wide gaps, so what covers one another forms one group
    (see `line_groups`), and the group's texts, each joined from left to right, are compared as one.
    """
    truth = [line for line in truth if folded(line[1])]
    counts = LineCounts(lines=len(truth))
    for wanted, found in line_groups(truth, read):
        if not wanted or not found:
            continue
        expected, got = (" ".join(text for _, text in sorted(side, key=_left)) for side in (wanted, found))
        amounts = _AMOUNT.findall(expected)
        counts += LineCounts(
            found=len(wanted),
            right=len(wanted) if folded(expected) == folded(got) else 0,
            amounts=len(amounts),
            lost=_lost_points(amounts, got),
        )
    return counts


def _lost_points(amounts: Sequence[str], got: str) -> int:
    present = Counter(amount.replace(",", ".") for amount in _AMOUNT.findall(got))
    bare = Counter(re.findall(r"\d+", re.sub(r"(?<=\d) (?=\d\d(?!\d))", "", got)))
    lost = 0
    for amount in amounts:
        if present[amount.replace(",", ".")] > 0:
            present[amount.replace(",", ".")] -= 1
        elif bare[re.sub(r"\D", "", amount)] > 0:
            bare[re.sub(r"\D", "", amount)] -= 1
            lost += 1
    return lost


def _left(line: TextLine) -> float:
    return min(x for x, _ in line[0])


def parse_amount(text: str) -> Decimal | None:
    """The last amount in `text` as a plain decimal, whichever of `.` and `,` marks the decimals; None without one."""
    found = re.findall(r"-?\d[\d.,]*", unicodedata.normalize("NFKC", text).replace(" ", ""))
    if not found:
        return None
    digits = found[-1].rstrip(".,")
    marks = [character for character in digits if character in ".,"]
    if marks and (len(digits) - 1 - digits.rfind(marks[-1]) != 3 or (len(set(marks)) == 2)):
        whole, _, decimals = digits.rpartition(marks[-1])
        return Decimal(f"{re.sub(r'[.,]', '', whole)}.{decimals}")
    return Decimal(re.sub(r"[.,]", "", digits))


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_date(text: str, *, month_first: bool = False) -> dt.date | None:
    """The first date in `text`, day before month unless `month_first`; None if there is none that exists."""
    plain = unicodedata.normalize("NFKC", text).lower()
    for pattern, order in (
        (r"(?<!\d)(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})", "ymd"),
        (r"(?<!\d)(\d{1,2})\s*[-/. ]?\s*([a-z]{3})[a-z]*\.?,?\s*[-/. ']?\s*(\d{4}|\d{2})(?!\d)", "dmy"),
        (r"\b([a-z]{3})[a-z]*\.?\s*(\d{1,2}),?\s*(\d{4})(?!\d)", "mdy"),
        (r"(?<!\d)(\d{1,2})\s*[-/.]\s*(\d{1,2})\s*[-/.]\s*(\d{4}|\d{2})(?!\d)", "mdy" if month_first else "dmy"),
    ):
        for match in re.finditer(pattern, plain):
            parts = dict(zip(order, match.groups(), strict=True))
            month = _MONTHS.index(parts["m"]) + 1 if parts["m"] in _MONTHS else None
            if month is None and parts["m"].isdigit():
                month = int(parts["m"])
            year = int(parts["y"]) + (2000 if len(parts["y"]) == 2 else 0)
            try:
                return dt.date(year, month or 0, int(parts["d"]))
            except ValueError:
                continue
    return None


def same_field(name: str, truth: str, read: str, *, month_first: bool = False) -> bool:
    """Whether a field was read right: amounts as decimals, dates as ISO, the rest by letters and digits, case folded.

    Args:
        name: `total`, `subtotal`, `tax` and other amounts; `date`; anything else is text.
    """
    if name in {"total", "subtotal", "tax", "discount", "rounding", "cash", "change"}:
        wanted = parse_amount(truth)
        return wanted is not None and wanted == parse_amount(read)
    if name == "date" or name.endswith("_date"):
        day = parse_date(truth, month_first=month_first)
        return day is not None and day == parse_date(read, month_first=month_first)
    return bool(folded(truth)) and folded(truth) == folded(read)
