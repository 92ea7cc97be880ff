"""What the shape of a line's text says: letters among digits, broken case, stray marks, repetition.

A text is turned into a string of glyph classes by one `str.translate`, and the patterns run over that: the whole costs
a few microseconds a line.
"""

from __future__ import annotations

import math
import re
import unicodedata

NAMES = (
    "length",
    "short",
    "digits",
    "look_alikes",
    "small_marks",
    "digit_among_letters",
    "letter_among_digits",
    "broken_case",
    "joined_words",
    "odd_marks",
    "dangling",
    "unbalanced",
    "lone_marks",
    "stray_script",
    "spaced_number",
    "space_for_point",
    "missing_stop",
    "stop_inside",
    "run_together",
    "repetition",
)
"""The signals of `shape_signals`, in its order."""

_COMMON_MARKS = frozenset(".,:;-/()&'#*%$+@=\"!?<>[]_£€¥￥，。：；（）、《》“”‘’")


class _Classes(dict[int, str]):
    """Glyph to class, filled as glyphs are met; bounded by the alphabet of the network."""

    def __missing__(self, key: int) -> str:
        found = self[key] = _class_of(chr(key))
        return found


def _class_of(glyph: str) -> str:
    if glyph.isspace():
        return " "
    if glyph.isdecimal():
        return "0"
    if "\u3040" <= glyph <= "\u30ff" or "\u3400" <= glyph <= "\u9fff" or "\uac00" <= glyph <= "\ud7a3":
        return "c"
    if glyph.isalpha():
        if not unicodedata.normalize("NFKD", glyph)[0].isascii():
            return "x"
        return "A" if glyph.isupper() else "a"
    return "." if glyph in _COMMON_MARKS else "?"


_CLASSES = _Classes()
_LOOK_ALIKES = re.compile(r"[0OoQDIl1|S5B8Z2]")
_SMALL = re.compile(r"[.,'’:;`\-]")
_DIGIT_AMONG_LETTERS = re.compile(r"(?<=[aA])0(?=[aA])|(?<![aA0])0(?=[aA]{3})|(?<=[aA]{3})0(?![aA0])")
_LETTER_AMONG_DIGITS = re.compile(r"(?<=0)[aA](?=0)|(?<=0\.)[aA](?=0)|(?<=0\.0)[aA](?![aA])")
_BROKEN_CASE = re.compile(r"(?<=[aA])A(?=a*A)(?<=aA)|(?<=AA)a(?![a])|(?<![aA])aA(?=A)")
_JOINED = re.compile(r"(?<=aa)A(?=a)")
_LONE = re.compile(r"(?<![^ ])[.?](?![^ ])")
_SPACED = re.compile(r"\d ?[.,] \d|\d [.,] ?\d|[.,]\d \d(?!\d)")
_SPACE_FOR_POINT = re.compile(r"^\D{0,4}\d{1,4} \d\d\D{0,2}$")
# A sentence that ends without a stop, one that goes on after one, and words that lost the space between them.
_MISSING_STOP = re.compile(r"(?<= )a+ Aa+(?= a)|(?<= )a+ A a")
_STOP_INSIDE = re.compile(r"a\. a")
_RUN_TOGETHER = re.compile(r"a\.[aA]a|[aA]{3}0|0[aA]{4}|a{14}|A{16}")
_OPENED = re.compile(r"^(?:[^\w\s]|_){1,2}")
_HEAD_MARKS = frozenset("(#*$\"'-<[£€¥￥+=@&（《“‘")
_TAIL_MARKS = frozenset(".:)%*#!?\"'>]=-;：）。》”’")


def shape_signals(text: str) -> tuple[float, ...]:
    """The signals named in `NAMES`, each >= 0; most are counts under a logarithm, so that long lines do not drown."""
    classes = text.translate(_CLASSES)
    count = max(1, len(text))
    digits = classes.count("0")
    letters = classes.count("a") + classes.count("A")
    foreign = classes.count("c")
    stray = min(foreign, letters) if foreign and letters else 0
    return (
        math.log(count),
        float(count <= 2),
        digits / count,
        math.log1p(len(_LOOK_ALIKES.findall(text))),
        math.log1p(len(_SMALL.findall(text))),
        math.log1p(len(_DIGIT_AMONG_LETTERS.findall(classes))),
        math.log1p(len(_LETTER_AMONG_DIGITS.findall(classes))),
        math.log1p(len(_BROKEN_CASE.findall(classes))),
        math.log1p(len(_JOINED.findall(classes))),
        math.log1p(classes.count("?") + classes.count("x")),
        _dangling(text, classes),
        math.log1p(_unbalanced(text)) if "(" in text or ")" in text or "[" in text or "]" in text else 0.0,
        math.log1p(len(_LONE.findall(classes))),
        math.log1p(stray) if stray <= 2 else 0.0,
        math.log1p(len(_SPACED.findall(text))) if digits > 1 and foreign == 0 else 0.0,
        float(bool(_SPACE_FOR_POINT.search(text))) if digits > 1 else 0.0,
        math.log1p(len(_MISSING_STOP.findall(classes))),
        math.log1p(len(_STOP_INSIDE.findall(classes)) if ". " in text else 0),
        math.log1p(len(_RUN_TOGETHER.findall(classes))),
        _repetition(text),
    )


def _dangling(text: str, classes: str) -> float:
    """How many of the two ends carry a mark that print seldom begins or ends with."""
    if not text:
        return 0.0
    head = classes[0] in ".?" and text[0] not in _HEAD_MARKS
    tail = classes[-1] in ".?" and text[-1] not in _TAIL_MARKS
    return float(head) + float(tail)


def _unbalanced(text: str) -> int:
    return abs(text.count("(") - text.count(")")) + abs(text.count("[") - text.count("]"))


def _repetition(text: str) -> float:
    """Share of three-glyph pieces seen before in the line, 0..1; printed rules repeat themselves too."""
    pieces = len(text) - 2
    if pieces < 6:
        return 0.0
    return 1.0 - len({text[at : at + 3] for at in range(pieces)}) / pieces
