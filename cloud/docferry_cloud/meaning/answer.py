"""One question about one document: from its fields, its tables, or the passage that says most about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from docferry.document import Document, Evidence, Field, Region, RegionType
from docferry.markdown import joined
from docferry.tables import Cell, Joined, all_tables
from docferry_cloud.meaning.embeddings import Embedder
from docferry_cloud.meaning.passages import SENTENCES, nearest, nearest_sentence
from docferry_cloud.meaning.questions import Operation, Question, content_words, folded, understood, words_of
from docferry_cloud.meaning.tables import TableAnswer, answer_from_table

MAX_QUESTION = 2000
"""Characters of a question."""

_PASSAGE = 0.7
"""Share of a question's words, weighted by how rare they are, that a passage must hold to answer it."""

_LEAST_TOLD = 4
"""Words of a passage that may answer by its meaning; a heading is no answer."""

_LONGEST = 600
_TABLE_SHARE = 0.9
_CHART_SHARE = 0.6
_PASSAGE_SHARE = 0.6
_MEANING_SHARE = 0.5
"""What answers from tables, charts and passages are worth where every line was read right; cautious guesses."""

_FIELD_WORDS: dict[str, re.Pattern[str]] = {
    "total": re.compile(
        r"\b(?:(?:grand )?total(?: amount| price| sum)?(?: due| payable)?|amount (?:due|payable))\b"
        r"|\bhow much (?:was|is) (?:paid|due|it|the bill)\b"
        r"|总额|总计|合计|总金额|应付"
    ),
    "date": re.compile(r"\b(?:date|when)\b|日期|什么时候|何时"),
    "merchant": re.compile(
        r"\b(?:merchant|shop|store|seller|vendor|supplier|company|issuer|issued by|who (?:issued|sold|sent))\b"
        r"|商家|商店|卖方|销售方|公司"
    ),
    "address": re.compile(r"\b(?:address|where is)\b|地址"),
    "invoice_number": re.compile(r"\b(?:invoice|receipt|bill|document) (?:number|no\.?|id)\b|发票号|单号"),
    "currency": re.compile(r"\bcurrency\b|币种|货币"),
    "subtotal": re.compile(r"\b(?:sub-?total|net amount|before tax)\b|小计|不含税"),
    "tax": re.compile(r"\b(?:tax|gst|vat|sst)(?: amount)?\b|税额|税金"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """An answer; empty with confidence 0 where the document does not hold one."""

    question: str
    answer: str = ""
    confidence: float = 0.0
    evidence: tuple[Evidence, ...] = ()


class Answerer:
    """Answers questions about one document, deterministically; "I don't know" is an empty answer.

    What a question needs of the document is made once, on the first that needs it.

    Args:
        document: With its fields and tables.
        embedder: Finds passages that answer in other words than the question's; None leaves it at the words.
    """

    def __init__(self, document: Document, embedder: Embedder | None = None) -> None:
        self._document = document
        self._embedder = embedder

    def answer(self, question: str) -> Found:
        """The answer to a question in English or Chinese, at most `MAX_QUESTION` characters."""
        asked = understood(question)
        return (
            _from_tables(self._document, self._tables, asked, question)
            or _from_fields(self._document, asked, question)
            or _from_passages(self._passages, asked, question)
            or self._by_meaning(asked, question)
            or Found(question)
        )

    def _by_meaning(self, asked: Question, question: str) -> Found | None:
        # Sums and comparisons are a table's to answer: a passage about the same things does not.
        if self._embedder is None or asked.operations != (Operation.VALUE,) or not content_words(asked.text):
            return None
        telling = [passage for passage in self._passages if sum(passage.words.values()) >= _LEAST_TOLD]
        vector = self._embedder.question(question)
        found = nearest(self._embedder, vector, [passage.text for passage in telling])
        if found is None:
            return None
        at, score = found
        sentence = _cut(nearest_sentence(self._embedder, vector, telling[at].text))
        return Found(question, sentence, _MEANING_SHARE * score, _lines_of(telling[at]))

    @cached_property
    def _tables(self) -> Sequence[Joined]:
        return all_tables(self._document)

    @cached_property
    def _passages(self) -> Sequence[_Passage]:
        return _passages(self._document)


def answer(document: Document, question: str, embedder: Embedder | None = None) -> Found:
    """Answer one question about a document, as `Answerer` does."""
    return Answerer(document, embedder).answer(question)


def _from_fields(document: Document, asked: Question, question: str) -> Found | None:
    by_name = {field.name: field for field in document.fields}
    for name, pattern in _FIELD_WORDS.items():
        field = by_name.get(name)
        if field is None or not pattern.search(asked.text):
            continue
        rest = content_words(pattern.sub(" ", asked.text))
        if not rest or set(rest) <= _ABOUT_THE_PAPER:
            return _of_field(field, question)
    for field in document.fields:
        # A form's fields are named by their keys as printed.
        key = words_of(folded(field.name))
        if field.name not in _FIELD_WORDS and key and set(content_words(asked.text)) == set(key):
            return _of_field(field, question)
    return None


_ABOUT_THE_PAPER = frozenset(
    {
        "receipt",
        "invoice",
        "bill",
        "form",
        "paper",
        "letter",
        "purchase",
        "paid",
        "pay",
        "printed",
        "发",
        "票",
        "单",
        "据",
    }
)


def _of_field(field: Field, question: str) -> Found:
    return Found(question, field.normalized or field.value, field.confidence, field.evidence)


def _from_tables(document: Document, tables: Sequence[Joined], asked: Question, question: str) -> Found | None:
    for table in tables:
        regions = [(page, _region(document, page, part)) for page, part in table.parts]
        made = answer_from_table(asked, table.grid, context=_captions(document, table.parts[0][0]))
        if made is not None:
            measured = any(region.type is RegionType.CHART for _, region in regions)
            share = _CHART_SHARE if measured else _TABLE_SHARE
            return Found(question, made.text, share * _read_right(regions), _evidence(made, regions))
    return None


def _region(document: Document, page: int, name: str) -> Region:
    return next(region for region in document.pages[page].regions if region.id == name)


def _captions(document: Document, page: int) -> str:
    """Captions and titles of the page: what a question may call the table by."""
    kinds = {RegionType.TABLE_CAPTION, RegionType.TITLE}
    return " ".join(
        line.text for region in document.pages[page].regions if region.type in kinds for line in region.lines
    )


def _read_right(regions: Iterable[tuple[int, Region]]) -> float:
    confidences = [
        line.score if line.confidence is None else line.confidence for _, region in regions for line in region.lines
    ]
    return sum(confidences) / len(confidences) if confidences else 0.5


def _evidence(made: TableAnswer, regions: Sequence[tuple[int, Region]]) -> tuple[Evidence, ...]:
    """The lines that the cells were made of; the whole table where a cell cannot be told among its lines."""
    places = [place for cell in made.cells[:20] if (place := _place(cell, regions)) is not None]
    return tuple(dict.fromkeys(places)) or tuple(Evidence(page, region.box) for page, region in regions)


def _place(cell: Cell, regions: Sequence[tuple[int, Region]]) -> Evidence | None:
    wanted = "".join(cell.text.split())
    lines = [(page, line) for page, region in regions for line in region.lines]
    holding = [(page, line) for page, line in lines if wanted and wanted in "".join(line.text.split())]
    exact = [(page, line) for page, line in holding if "".join(line.text.split()) == wanted]
    chosen = exact or holding
    return Evidence(chosen[0][0], chosen[0][1].box, chosen[0][1].id) if len(chosen) == 1 else None


@dataclass(frozen=True, slots=True)
class _Passage:
    """A region's text with its words counted; `page` from 0."""

    page: int
    region: Region
    text: str
    words: Counter[str]


def _passages(document: Document) -> list[_Passage]:
    return [
        _Passage(number, region, text, Counter(words_of(folded(text))))
        for number, page in enumerate(document.pages)
        for region in page.regions
        if region.type is not RegionType.TABLE and (text := joined([line.text for line in region.lines]))
    ]


def _from_passages(passages: Sequence[_Passage], asked: Question, question: str) -> Found | None:
    """The passage that holds nearly all of the question's words, the rare ones counting most."""
    wanted = set(content_words(asked.text))
    if not wanted:
        return None
    rarity = {
        word: math.log(1 + len(passages) / (1 + sum(word in passage.words for passage in passages))) for word in wanted
    }
    whole = sum(rarity.values())
    best, share = None, 0.0
    for passage in passages:
        covered = sum(rarity[word] for word in wanted if word in passage.words) / whole if whole else 0.0
        # A heading repeats the question and says nothing more.
        if covered > share and sum(passage.words.values()) >= len(wanted) + 3:
            best, share = passage, covered
    if best is None or share < _PASSAGE:
        return None
    return Found(question, _sentence(best.text, wanted), _PASSAGE_SHARE * share, _lines_of(best))


def _lines_of(passage: _Passage) -> tuple[Evidence, ...]:
    return tuple(Evidence(passage.page, line.box, line.id) for line in passage.region.lines)


def _sentence(text: str, wanted: set[str]) -> str:
    """The sentence of a passage that holds most of the words."""
    sentences = [part for part in SENTENCES.split(text) if part.strip()]
    best = max(sentences, key=lambda part: len(wanted & set(words_of(folded(part)))), default=text)
    return _cut(best)


def _cut(best: str) -> str:
    return best if len(best) <= _LONGEST else f"{best[: _LONGEST - 1].rstrip()}…"
