"""The model's answer about a picture, chart or diagram: its class, caption and content. Pure; never raises."""

from __future__ import annotations

import re
from dataclasses import dataclass

from docferry.document import Mark
from docferry.tables import Cell, Grid, placed

_FIELDS = ("class", "sub_class", "caption", "content")
_ANY = re.compile(r"<\|(?:class|sub_class|caption|content)_(?:start|end)\|>")
_RULE = re.compile(r"\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?")


@dataclass(frozen=True, slots=True)
class Picture:
    """What the answer says; fields that it lacks are empty.

    Attributes:
        kind: The model's class: `pure_table`, `pure_formula`, `chart`, `flowchart`, `chemical`, `natural_image`, ...
        variety: Its finer class, `bar` of a chart.
        rest: What stood outside of all fields.
    """

    kind: str = ""
    variety: str = ""
    caption: str = ""
    content: str = ""
    rest: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def text(self) -> str:
        """All that is to be read as text: caption, content where it is no table, and the rest."""
        return "\n".join(part for part in (self.caption, self.content, self.rest) if part)


def parse_picture(answer: str) -> Picture:
    """Read an answer in tags; one without tags is a caption. A field that never ends holds all that follows."""
    if not answer.strip():
        return Picture(marks=(Mark("EMPTY", "the model answered nothing for this picture"),))
    if not _ANY.search(answer):
        return Picture(caption=answer.strip())
    values, rest, marks = {}, answer, []
    for name in _FIELDS:
        # A field ends at its own end, or where the next one begins.
        found = re.search(rf"<\|{name}_start\|>(.*?)(<\|{name}_end\|>|(?=<\|\w+_start\|>)|\Z)", rest, re.DOTALL)
        if found is None:
            values[name] = ""
            continue
        values[name] = _ANY.sub(" ", found[1]).strip()
        if not found[2]:
            marks.append(Mark("CUT", f"the {name} of the picture broke off"))
        rest = f"{rest[: found.start()]} {rest[found.end() :]}"
    left = _ANY.sub(" ", rest).strip()
    return Picture(values["class"], values["sub_class"], values["caption"], values["content"], left, tuple(marks))


def markdown_table(text: str) -> Grid:
    """A Markdown table as a grid, its first row the head; no cells where the text is no such table."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) < 2 or not all("|" in line for line in lines) or not _RULE.fullmatch(lines[1]):
        return Grid()
    rows = [_cells(line) for number, line in enumerate(lines) if number != 1]
    width = max(len(row) for row in rows)
    return placed(
        [Cell(0, 0, text=row[column] if column < len(row) else "", header=number == 0) for column in range(width)]
        for number, row in enumerate(rows)
    )


def _cells(line: str) -> list[str]:
    inner = line.removeprefix("|")
    inner = inner.removesuffix("|") if not inner.endswith("\\|") else inner
    return [" ".join(cell.replace("\\|", "|").split()) for cell in re.split(r"(?<!\\)\|", inner)]
