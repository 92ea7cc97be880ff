"""The line that a person reads: what happened to which document, in the subscriber's language.

Pure and total: whatever a document holds, the title is one line of at most `MAX_TITLE` characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

LANGUAGES: Final = ("en", "zh")
MAX_TITLE: Final = 120
"""Characters."""
_MAX_VALUE = 40
_AMOUNT = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,4})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a title may say of a document.

    Attributes:
        table: Whether it holds a table.
        fields: Normalized values by the fields' names.
    """

    table: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Words:
    table: str
    document: str
    happened: Mapping[str, str]
    other: str
    invoice: str
    total: str
    about: str
    colon: str
    comma: str


_WORDS: Final[Mapping[str, _Words]] = {
    "en": _Words(
        table="Table",
        document="Document",
        happened={
            "accepted": "{thing} received",
            "succeeded": "{thing} recognised",
            "version_added": "{thing} corrected",
            "failed": "{thing} could not be read",
            "cancelled": "{thing} cancelled",
            "deleted": "{thing} deleted",
            "wants_changed": "{thing}: a picture was asked for",
        },
        other="{thing} changed",
        invoice="invoice",
        total="total",
        about="Analysis {analysis_id}, version {version}",
        colon=": ",
        comma=", ",
    ),
    "zh": _Words(
        table="表格",
        document="文档",
        happened={
            "accepted": "{thing}已收到",
            "succeeded": "{thing}已识别",
            "version_added": "{thing}已更正",
            "failed": "{thing}无法识别",
            "cancelled": "{thing}已取消",
            "deleted": "{thing}已删除",
            "wants_changed": "{thing}需要补充图片",
        },
        other="{thing}有变化",
        invoice="发票",
        total="合计",
        about="分析 {analysis_id}，版本 {version}",
        colon="：",
        comma="，",
    ),
}
_TELLING = frozenset({"succeeded", "version_added"})
"""What is told with a document's own values; everything else is told without."""


def title(happened: str, facts: Facts, language: str) -> str:
    """The title of one event, such as "Table recognised: invoice 4711, total 1,204.50 EUR".

    Args:
        happened: The event's type in lower case, `succeeded`; one that is not known is "changed".
        language: One of `LANGUAGES`; another is English.
    """
    words = _WORDS.get(language, _WORDS["en"])
    telling = happened in _TELLING
    thing = words.table if telling and facts.table else words.document
    line = words.happened.get(happened, words.other).format(thing=thing)
    details = _details(facts.fields, words) if telling else []
    if details:
        line += words.colon + words.comma.join(details)
    return shortened(line, MAX_TITLE)


def details(analysis_id: str, version: int, link: str, language: str) -> str:
    """What a person reads below the title, line by line: the link, if there is one, and what the message is about."""
    line = _WORDS.get(language, _WORDS["en"]).about.format(analysis_id=analysis_id, version=version)
    return f"{link}\n{line}" if link else line


def shortened(text: str, most: int) -> str:
    """One line of visible characters, at most `most` of them; what is cut off ends in an ellipsis."""
    # Controls, line and paragraph separators, surrogates and the marks that turn a line's direction go.
    kept = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in text[: most * 8])
    line = " ".join(kept.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def amount(normalized: str, currency: str = "") -> str:
    """A plain decimal with its thousands set apart, and the currency's code; empty for anything else."""
    if not _AMOUNT.fullmatch(normalized):
        return ""
    shown = f"{Decimal(normalized):,f}"
    return f"{shown} {currency}" if _CURRENCY.fullmatch(currency) else shown


def _details(fields: Mapping[str, str], words: _Words) -> list[str]:
    details = []
    number = shortened(fields.get("invoice_number", ""), _MAX_VALUE)
    merchant = shortened(fields.get("merchant", ""), _MAX_VALUE)
    if number:
        details.append(f"{words.invoice} {number}")
    elif merchant:
        details.append(merchant)
    total = amount(fields.get("total", ""), fields.get("currency", ""))
    if total:
        details.append(f"{words.total} {total}")
    return details
