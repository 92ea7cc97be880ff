"""Text folded for matching keywords: no case, no spaces, no punctuation, look-alike glyphs made one.

A reader may run words together or swap `0` and `O`; both sides of every keyword match are folded the same way,
so `T0TAL RM` and `TotalRM` meet the keyword `TOTAL`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable

REMEMBERED = 1024
"""Answers kept about a document's texts. Several rules ask the same of each line of one page; a next page is other
text, and keeping more let a process that reads for months grow by 20 MB and hold what people had long cleared away."""

# One representative for each group of glyphs that readers confuse on receipts.
_LOOK_ALIKES = str.maketrans({"0": "O", "Q": "O", "1": "I", "L": "I", "|": "I", "5": "S", "8": "B"})

# Only the characters that occur in our keywords; a full conversion table would be a dependency.
_SIMPLIFIED = str.maketrans(
    "據總計價稅應實額數優惠減免現號單電話統編發購買銷開間時區縣鎮鄉樓室廣東國門點飯館藥業務貨舖鋪",
    "据总计价税应实额数优惠减免现号单电话统编发购买销开间时区县镇乡楼室广东国门点饭馆药业务货铺铺",
)


def plain(text: str) -> str:
    """Upper case, compatibility forms resolved, traditional characters of our keywords made simplified."""
    return unicodedata.normalize("NFKC", text).upper().translate(_SIMPLIFIED)


def narrow(text: str) -> str:
    """`text` with full-width and foreign digits and signs made plain, glyph by glyph, so that places in it stay."""
    return text if text.isascii() else "".join(map(_narrow_glyph, text))


@functools.lru_cache(maxsize=4096)
def _narrow_glyph(glyph: str) -> str:
    if glyph.isdecimal():
        return str(unicodedata.decimal(glyph))
    # A no-break space parts thousands where a plain one parts two numbers.
    folded = glyph if glyph in "\u00a0\u202f" else unicodedata.normalize("NFKC", glyph)
    return folded if len(folded) == 1 else glyph


@functools.lru_cache(maxsize=4 * REMEMBERED)
def fold(text: str) -> str:
    """The form in which keywords are compared: `plain`, look-alikes unified, only letters and digits kept."""
    return "".join(glyph for glyph in plain(text).translate(_LOOK_ALIKES) if glyph.isalnum())


def contains_any(folded: str, keywords: Iterable[str]) -> bool:
    """Whether `folded` (already folded) contains any of `keywords` (plain text)."""
    return any(fold(keyword) in folded for keyword in keywords)


def words(text: str) -> tuple[str, ...]:
    """The words of `text` in upper case, look-alikes kept apart, split at everything that is no letter or digit."""
    spaced = "".join(glyph if glyph.isalnum() else " " for glyph in plain(text))
    return tuple(spaced.split())


def within_one_edit(a: str, b: str) -> bool:
    """Whether one insertion, deletion or substitution (or none) turns `a` into `b`."""
    if abs(len(a) - len(b)) > 1:
        return False
    short, long = sorted((a, b), key=len)
    at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    if len(short) == len(long):
        return short[at + 1 :] == long[at + 1 :]
    return short[at:] == long[at + 1 :]


def is_cjk(glyph: str) -> bool:
    """Whether `glyph` is a Chinese character (the unified ideographs and their first extension)."""
    return "\u3400" <= glyph <= "\u9fff"
