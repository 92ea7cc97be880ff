"""A formula answer: out of its delimiters, and checked to be LaTeX that shows something and does nothing. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from docferry.document import Mark

LONGEST = 20_000
"""Characters of one formula."""

_DELIMITERS = (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$"), ("$", "$"))
_SCAN = re.compile(r"\\(?:[A-Za-z]+\*?|.)|[{}$%]|&|<|>", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+\*?)\}")
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

_ACTING = frozenset(
    f"\\{name}"
    for name in (
        *(
            "catcode",
            "class",
            "closein",
            "closeout",
            "csname",
            "cssId",
            "data",
            "def",
            "directlua",
            "edef",
            "endcsname",
        ),
        *("everymath", "expandafter", "gdef", "href", "htmlClass", "htmlData", "htmlId", "htmlStyle", "immediate"),
        *("include", "includegraphics", "input", "let", "loop", "newcommand", "newenvironment", "openin", "openout"),
        *(
            "providecommand",
            "read",
            "renewcommand",
            "require",
            "special",
            "style",
            "url",
            "usepackage",
            "write",
            "xdef",
        ),
    )
)
"""Commands that read, write, define, link or style instead of showing."""


@dataclass(frozen=True, slots=True)
class Formula:
    """LaTeX without delimiters, fit to be shown, or None and a mark that says why; `raw` is what was said."""

    latex: str | None
    raw: str
    marks: tuple[Mark, ...] = ()


def parse_formula(answer: str) -> Formula:
    """Read a formula answer. Of what only looks like markup `<` and `>` are made into commands."""
    raw = answer.strip()
    body = _INVISIBLE.sub("", _bare(raw)).strip()
    if not body:
        return Formula(None, raw, (Mark("EMPTY", "the model answered nothing for this formula"),))
    wrong = _wrong(body)
    if wrong:
        return Formula(None, raw, (Mark("MALFORMED", f"the answer is no LaTeX that can be shown: {wrong}"),))
    return Formula(" ".join(_without_markup(body).split()), raw)


def _bare(text: str) -> str:
    for start, end in _DELIMITERS:
        if text.startswith(start) and text.endswith(end) and len(text) >= len(start) + len(end):
            return text[len(start) : -len(end)].strip()
    return text


def _wrong(body: str) -> str:
    """Why it cannot be shown; empty if it can."""
    if len(body) > LONGEST:
        return f"it has more than {LONGEST} characters"
    # A backslash at the end would act on what follows the formula.
    if (len(body) - len(body.rstrip("\\"))) % 2:
        return "it ends in a backslash"
    depth, sides = 0, 0
    for found in _SCAN.finditer(body):
        mark = found[0]
        depth += (mark == "{") - (mark == "}")
        sides += (mark == "\\left") - (mark == "\\right")
        if depth < 0 or sides < 0:
            return "it closes what was not opened"
        if mark in _ACTING or mark in {"$", "%"}:
            return f"it holds {mark}"
    if depth:
        return "a brace stays open"
    return "\\left and \\right do not match" if sides else _environments(body)


def _environments(body: str) -> str:
    open_ones: list[str] = []
    for kind, name in _ENVIRONMENT.findall(body):
        if kind == "begin":
            open_ones.append(name)
        elif not open_ones or open_ones.pop() != name:
            return f"\\end{{{name}}} closes nothing"
    return f"\\begin{{{open_ones[-1]}}} stays open" if open_ones else ""


def _without_markup(body: str) -> str:
    """`<` and `>` outside of commands as `\\lt` and `\\gt`: a page that shows the formula must see no tag in it."""
    ends = [0]
    parts: list[str] = []
    for found in _SCAN.finditer(body):
        # `\\<` too: it is no command, and what shows the page would see the mark all the same.
        if found[0][-1] in "<>":
            parts.append("\\lt " if found[0][-1] == "<" else "\\gt ")
            ends += [found.start(), found.end()]
    ends.append(len(body))
    between = [body[start:end] for start, end in list(pairwise(ends))[::2]]
    return "".join(piece for pair in zip(between, [*parts, ""], strict=True) for piece in pair)
