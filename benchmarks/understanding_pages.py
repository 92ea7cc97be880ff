"""Judging whole pages: unit facts about their Markdown, and text and reading order against labelled blocks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from benchmarks.understanding_data import Judged, Truth
from docferry.markdown import joined
from docferry.tables import Grid, from_html
from docferry_cloud.interpret import Interpretation

_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~$>=:<])")
_MARKS = re.compile(r"[*_#|`]+|</?[a-z][^>]*>")


def judge_facts(truth: Truth, answer: Interpretation) -> Judged:
    """olmocr-bench unit tests on the Markdown; formulas pass only as LaTeX. Empty output is judged beside."""
    text = _plain(answer.markdown)
    grids = [
        from_html(region.html) for page in answer.document.pages for region in page.regions if region.html is not None
    ]
    passed, empty, notes = 0, 0, []
    for fact in truth.truth["tests"]:
        right = _holds(fact, text, answer.markdown, grids)
        passed += right
        empty += _holds(fact, "", "", [])
        if not right:
            notes.append(f"{fact['type']}: {str({k: v for k, v in fact.items() if k not in _DULL})[:140]}")
    count = len(truth.truth["tests"])
    values = {"passed": passed, "empty": empty, "count": count}
    return Judged(truth.id, passed / count, tuple(notes[:6]), values)


_DULL = frozenset({"page", "id", "type", "checked"})


def facts_summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Shares of all facts: ours, and what empty output would score."""
    passed, empty, count = (sum(one.values[name] for one in judged) for name in ("passed", "empty", "count"))
    return {"facts": round(passed / count, 4), "facts_empty": round(empty / count, 4), "facts_count": count}


def _holds(fact: Mapping[str, Any], text: str, markdown: str, grids: Sequence[Grid]) -> bool:
    match fact["type"]:
        case "present" | "absent":
            found = _contains(_cut(text, fact), fact["text"], fact)
            return bool(found == (fact["type"] == "present"))
        case "order":
            before, after = _place(text, fact["before"], fact), _place(text, fact["after"], fact)
            return before is not None and after is not None and before < after
        case "table":
            return any(_in_table(fact, grid) for grid in grids)
        case "baseline":
            longest = fact.get("max_length")
            return len(text) <= longest if longest is not None else bool(text)
        case "math":
            return bool(markdown) and _squeezed(fact["math"]) in _squeezed(markdown)
        case _:
            return False


def _cut(text: str, fact: Mapping[str, Any]) -> str:
    if fact.get("first_n"):
        return text[: fact["first_n"]]
    return text[-fact["last_n"] :] if fact.get("last_n") else text


def _contains(text: str, wanted: str, fact: Mapping[str, Any]) -> bool:
    return _place(text, wanted, fact) is not None


def _place(text: str, wanted: str, fact: Mapping[str, Any]) -> int | None:
    """Where a text stands, with as many wrong letters as the fact allows."""
    wanted = _plain(wanted)
    if not fact.get("case_sensitive", True):
        wanted, text = wanted.lower(), text.lower()
    if not text or not wanted:
        return None
    allowed = fact.get("max_diffs", 0)
    threshold = 1 - allowed / len(wanted)
    found = fuzz.partial_ratio_alignment(wanted, text, score_cutoff=100 * threshold - 1e-6)
    return found.dest_start if found is not None else None


_NEIGHBOURS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def _in_table(fact: Mapping[str, Any], grid: Grid) -> bool:
    """Whether some cell reads as the fact says and its neighbours and headings do too."""
    texts = [[_plain(text) for text in row] for row in grid.texts()]
    for y, row in enumerate(texts):
        for x, text in enumerate(row):
            if not _same(text, fact["cell"], fact):
                continue
            near = all(
                0 <= y + dy < len(texts) and 0 <= x + dx < len(row) and _same(texts[y + dy][x + dx], fact[name], fact)
                for name, (dy, dx) in _NEIGHBOURS.items()
                if fact.get(name)
            )
            top = not fact.get("top_heading") or any(_same(texts[up][x], fact["top_heading"], fact) for up in range(y))
            left = not fact.get("left_heading") or any(_same(row[at], fact["left_heading"], fact) for at in range(x))
            if near and top and left:
                return True
    return False


def _same(text: str, wanted: str, fact: Mapping[str, Any]) -> bool:
    wanted = _plain(wanted)
    return bool(Levenshtein.distance(text, wanted) <= fact.get("max_diffs", 0))


def judge_blocks(truth: Truth, answer: Interpretation) -> Judged:
    """omnidocbench: edit distance of text blocks, and of the order in which they are read.

    Each text block of the truth takes the regions whose middle lies in it; both texts are compared without spaces and
    markup, the distance divided by the longer one, and the mean weighted by length is given. Order is the edit distance
    between the truth's order and ours of the blocks that were found.
    """
    page = answer.document.pages[0] if answer.document.pages else None
    width, height = truth.truth["width"], truth.truth["height"]
    wanted = [
        block
        for block in truth.truth["blocks"]
        if block["type"] in {"title", "text_block"} and block.get("order") is not None and not block.get("ignore")
    ]
    wanted.sort(key=lambda block: block["order"])
    lines = [(region, line) for region in (page.regions if page else ()) for line in region.lines]
    distances: list[tuple[float, int]] = []
    places: list[tuple[int, int]] = []
    for number, block in enumerate(wanted):
        x0, y0, x1, y1 = (
            block["bbox"][0] / width,
            block["bbox"][1] / height,
            block["bbox"][2] / width,
            block["bbox"][3] / height,
        )
        inside = [
            (at, region, line)
            for at, (region, line) in enumerate(lines)
            if x0 <= (line.box[0] + line.box[2]) / 2 <= x1 and y0 <= (line.box[1] + line.box[3]) / 2 <= y1
        ]
        text = _bare(joined([line.text for _, _, line in inside]))
        expected = _bare(block.get("text") or "")
        if not expected:
            continue
        distances.append((Levenshtein.normalized_distance(expected, text), len(expected)))
        if inside:
            places.append((min(at for at, _, _ in inside), number))
    ours = [number for _, number in sorted(places)]
    order = Levenshtein.normalized_distance(ours, sorted(ours)) if ours else 1.0
    letters = sum(length for _, length in distances)
    mean = sum(distance * length for distance, length in distances) / letters if letters else 1.0
    values = {"distance": mean, "order": order}
    return Judged(truth.id, 1 - mean, (f"text {mean:.3f}, order {order:.3f}",), values)


def blocks_summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Means over pages."""
    count = max(1, len(judged))
    return {
        "edit_distance": round(sum(one.values["distance"] for one in judged) / count, 4),
        "order_distance": round(sum(one.values["order"] for one in judged) / count, 4),
    }


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", _ESCAPE.sub(r"\1", text))
    text = text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2013: "-", 0x2014: "-"})
    return " ".join(_MARKS.sub(" ", text.replace("&lt;", "<").replace("&amp;", "&")).split())


def _bare(text: str) -> str:
    return "".join(letter for letter in _plain(text).casefold() if letter.isalnum())


def _squeezed(text: str) -> str:
    return "".join(text.split())
