"""A model's answer about one region, read and scored: content, marks, and how far it is to be believed. Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from docferry.document import Mark
from docferry.tables import Grid
from docferry_cloud.vlm.latex import parse_formula
from docferry_cloud.vlm.otsl import parse_table
from docferry_cloud.vlm.picture import markdown_table, parse_picture
from docferry_cloud.vlm.prompts import Ask
from docferry_cloud.vlm.repetition import find_loop, without_loop

_UNSCORED = 0.9
"""Score of a clean answer from a server that gives no probabilities; cautious, until a calibration says better."""
_MARKED = 0.5
"""What every mark leaves of a score."""
_LEAST_AREA = 12.0
"""Square pixels of a crop that a character needs at least: 3 x 4 is the smallest print that anyone reads."""

_SPECIAL = re.compile(r"<\|[a-z_]{1,40}\|>")
_TOKENS = re.compile(r"<(?:fcel|ecel|lcel|ucel|xcel|nl)>")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model gave back for one question.

    Attributes:
        text: With its special tokens; those of the chat's frame removed.
        finished: It ended by itself, and not at its token limit.
        logprobs: Of each token that was emitted, natural, at most 0; None where the server does not tell.
        tokens_in, tokens_out: Tokens of the prompt, picture included, and of the answer; 0 where nobody counts.
        seconds: From asking to the whole answer.
        failure: Why there is no answer; empty as a rule.
    """

    text: str
    finished: bool = True
    logprobs: tuple[float, ...] | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """A region as the model read it.

    Attributes:
        lines: Its text, line by line, without special tokens; of a table or formula only where nothing else says it.
        grid: A table's cells; none where there are none.
        latex: A formula fit to be shown, or None.
        marks: What to know of the answer; empty where nothing is amiss.
        score: How far it is to be believed, 0..1: from token probabilities where there are any, less for every mark.
        kind: The model's class of a picture, or empty.
    """

    lines: tuple[str, ...] = ()
    grid: Grid = field(default_factory=Grid)
    latex: str | None = None
    marks: tuple[Mark, ...] = ()
    score: float = 0.0
    kind: str = ""


def read_answer(ask: Ask, reply: Reply, pixels: int = 0) -> Content:
    """Read one answer about one region. Whatever is wrong with it ends in a mark, never in an empty text alone.

    Args:
        pixels: Area of the crop that was shown, for judging the length; 0 if nobody knows.
    """
    if reply.failure:
        return Content(marks=(Mark("FAILED", reply.failure),))
    text, marks = _whole(reply)
    content = _content(ask, text)
    marks += content.marks
    said = _TOKENS.sub("", _SPECIAL.sub("", text)).strip()
    if not said and not content.grid.cells and not any(mark.code == "EMPTY" for mark in marks):
        marks.append(Mark("EMPTY", "the model answered nothing for this region"))
    elif pixels and len(said) * _LEAST_AREA > pixels:
        marks.append(Mark("TOO_LONG", f"{len(said)} characters from a crop of {pixels} pixels"))
    every = tuple(dict.fromkeys(marks))
    return replace(content, marks=every, score=_score(reply.logprobs, every))


def _whole(reply: Reply) -> tuple[str, list[Mark]]:
    """The answer without its loop, and the marks for what is amiss with it as a whole."""
    text = _CONTROLS.sub("", unicodedata.normalize("NFC", reply.text))
    marks = []
    loop = find_loop(text, finished=reply.finished)
    if loop is not None:
        marks.append(Mark("LOOP", f"the answer repeats {loop.piece[:60]!r} {loop.times} times; it is kept once"))
        text = without_loop(text, loop)
    if not reply.finished:
        marks.append(Mark("CUT", "the answer reached its token limit and broke off"))
    return text, marks


def _content(ask: Ask, text: str) -> Content:
    if ask is Ask.TABLE:
        return _table(text)
    if ask is Ask.FORMULA:
        return _formula(text)
    if ask is Ask.PICTURE:
        return _picture(text)
    return Content(lines=_lines(text))


def _table(text: str) -> Content:
    table = parse_table(_SPECIAL.sub(" ", text))
    # Tags that are no cells are print: whoever shows them escapes them.
    whole = table.grid.cells and not any("outside" in mark.detail for mark in table.marks if mark.code == "MALFORMED")
    return Content(() if whole else _lines(table.raw), table.grid, marks=table.marks)


def _formula(text: str) -> Content:
    formula = parse_formula(_SPECIAL.sub(" ", text))
    return Content(() if formula.latex else _lines(formula.raw), latex=formula.latex, marks=formula.marks)


def _picture(text: str) -> Content:
    picture = parse_picture(text)
    if picture.kind == "pure_formula" and picture.content:
        formula = _formula(picture.content)
        return replace(formula, kind=picture.kind, marks=picture.marks + formula.marks)
    grid = markdown_table(picture.content)
    if picture.kind == "pure_table" and not grid.cells and _TOKENS.search(picture.content):
        grid = parse_table(picture.content).grid
    said = "\n".join((picture.caption, picture.rest)) if grid.cells else picture.text
    return Content(_lines(said), grid, marks=picture.marks, kind=picture.kind)


def _lines(text: str) -> tuple[str, ...]:
    plain = (" ".join(_SPECIAL.sub(" ", line).split()) for line in text.splitlines())
    return tuple(line for line in plain if line)


def _score(logprobs: Sequence[float] | None, marks: Sequence[Mark]) -> float:
    """The tokens' geometric mean probability, halved by every mark; 0 for an answer that says nothing."""
    if any(mark.code in {"EMPTY", "FAILED"} for mark in marks):
        return 0.0
    sure = _UNSCORED
    if logprobs:
        # A probability that is none is worth nothing.
        real = all(math.isfinite(value) for value in logprobs)
        sure = math.exp(min(0.0, sum(logprobs) / len(logprobs))) if real else 0.0
    return sure * _MARKED ** len(marks)
