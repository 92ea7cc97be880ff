"""What a question asks for: its operation, and the words that must name something in the document. English, Chinese."""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass


class Operation(enum.Enum):
    """What is to be done with the values that the question names."""

    VALUE = enum.auto()
    LIST = enum.auto()
    SUM = enum.auto()
    MEAN = enum.auto()
    MOST = enum.auto()
    LEAST = enum.auto()
    COUNT = enum.auto()
    DIFFERENCE = enum.auto()
    LARGER = enum.auto()


_OPERATIONS: Mapping[Operation, re.Pattern[str]] = {
    Operation.COUNT: re.compile(r"\bhow many (?:rows|entries|items|lines)\b|\bnumber of rows\b|多少行|几行|多少条"),
    Operation.DIFFERENCE: re.compile(
        r"\bdifference between\b|\bhow much (?:more|less|higher|lower|larger|greater)\b"
        r"|\bhow many more\b|相差|差额|差多少"
    ),
    Operation.LARGER: re.compile(
        r"\bwhich (?:is|was|one is) (?:larger|higher|greater|bigger|more)\b"
        r"|\b(?:larger|higher|greater|bigger)\b.*\bor\b"
        r"|哪个(?:更|较)(?:大|高|多)"
    ),
    Operation.MEAN: re.compile(r"\b(?:average|mean)\b|平均"),
    Operation.LIST: re.compile(
        r"\b(?:all|every|list|each of the)\b.*\b(?:values?|entries|cells|figures)\b|\blist the\b|\bas json\b"
        r"|所有|全部|列出|各(?:个|项)?的?值"
    ),
    Operation.SUM: re.compile(
        r"\bsum\b|\badd(?:ed)? up\b|\b(?:in total|altogether|combined)\b|\btotal of (?:all|the|column)\b"
        r"|\btotal .* column\b"
        r"|之和|总和|求和|合计是多少|一共"
    ),
    Operation.MOST: re.compile(r"\b(?:highest|largest|most|maximum|max|greatest|biggest)\b|最大|最高|最多"),
    Operation.LEAST: re.compile(r"\b(?:lowest|smallest|least|minimum|min|fewest)\b|最小|最低|最少"),
}

# fmt: off
_FILLERS = frozenset({
    "a", "add", "added", "all", "altogether", "amount", "an", "and", "are", "as", "at", "average", "be",
    "between", "bigger", "biggest", "by", "can", "cell", "cells", "column", "columns", "combined", "did",
    "difference", "do", "document", "does", "each", "entries", "entry", "every", "fewest", "figure", "figures",
    "find", "for", "from", "get", "give", "greater", "greatest", "had", "has", "have", "higher", "highest",
    "how", "i", "in", "is", "it", "item", "items", "its", "json", "larger", "largest", "least", "less", "list",
    "listed", "lower", "lowest", "many", "max", "maximum", "me", "mean", "min", "minimum", "more", "most",
    "much", "my", "name", "number", "numbers", "of", "on", "one", "or", "our", "out", "page", "per", "please",
    "read", "row", "rows", "show", "shown", "smallest", "sum", "table", "tell", "than", "that", "the", "their",
    "there", "this", "to", "total", "under", "up", "value", "values", "was", "we", "were", "what", "whats",
    "when", "where", "which", "who", "whose", "with", "you",
})
# fmt: on
_CJK_FILLERS = re.compile(
    r"是多少|多少|什么|哪个|哪些|请问|请|列出|所有|全部|的|是|了|吗|呢|列|行|表格|表|中|里|值|数据|之和|总和|求和|平均|最大|最高|最多"
    r"|最小|最低|最少|相差|以|用|格式|输出|一共|给出|和|与|在|为|各|个|项|年度"
)
_WORD = re.compile(r"[a-z0-9]+(?:[.,'][0-9]+)*|[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart.

    Attributes:
        text: Folded, as names are compared in it.
        operations: What it may ask to do, the most telling first; VALUE is always among them.
        as_json: Whether the answer is wanted as JSON.
    """

    text: str
    operations: tuple[Operation, ...]
    as_json: bool


def understood(question: str) -> Question:
    """Take a question apart. Never raises."""
    text = folded(question)
    found = [operation for operation, pattern in _OPERATIONS.items() if pattern.search(text)]
    return Question(text, (*found, Operation.VALUE), "json" in text)


def folded(text: str) -> str:
    """The form in which names and questions are compared: one width, one case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("_", " ").split())


def words_of(text: str) -> list[str]:
    """Words of a folded text; a Chinese character is one, and plurals lose their s."""
    return [_stem(word) for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """The words that must name something: without question words, articles, and names of the operations."""
    return [word for word in words_of(_CJK_FILLERS.sub(" ", text)) if word not in _STEMMED]


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


_STEMMED = frozenset(_stem(word) for word in _FILLERS)
