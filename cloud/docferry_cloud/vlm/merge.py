"""Bringing the model's answers into a page that was read before. Pure; no pixels here.

Nothing is taken away: where two readers differ the more probable text stands, is believed less, and what the other one
read is kept as a mark. An answer that is not whole never replaces a reading that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from docferry.document import Box, Line, Mark, Page, Polygon, Region, RegionType
from docferry.markdown import joined
from docferry.tables import from_html, to_html
from docferry_cloud.deep.alignment import matches
from docferry_cloud.pipeline_geometry import box_around, centre, inside
from docferry_cloud.vlm.answers import Content
from docferry_cloud.vlm.layout import Block

_SURE = 0.9
"""An uncalibrated score counts for no more than this as a probability."""
_ALIKE = 0.5
"""Two texts that share less of their letters than this are not the same print; lines cannot be told apart by them."""
_BROKEN = frozenset({"CUT", "LOOP", "MALFORMED", "TOO_LONG"})
_SHOWN = 400


def merged(region: Region, content: Content, provenance: str) -> Region:
    """One region with the model's reading of it."""
    if region.type is RegionType.TABLE or (content.grid.cells and not region.lines):
        return _table(region, content, provenance)
    if content.latex is not None:
        return _formula(region, content, provenance)
    if not content.lines:
        return _marked(region, content.marks)
    return _text(region, content, provenance)


def with_layout(page: Page, blocks: Sequence[Block], marks: Sequence[Mark], provenance: str) -> Page:
    """The page under a new layout: each line goes to the block that holds its middle, ids stay.

    Regions whose lines find no block stay as they are, after those that come before them on the page.
    """
    taken = {region.id for region in page.regions}
    names = (name for number in range(1, len(taken) + len(blocks) + 1) if (name := f"r{number}") not in taken)
    held: list[list[Line]] = [[] for _ in blocks]
    left: list[Region] = []
    for region in page.regions:
        stays = []
        for line in region.lines:
            home = _home(line, blocks)
            if home is None:
                stays.append(line)
            else:
                held[home].append(line)
        if len(stays) == len(region.lines):
            left.append(region)
        elif stays:
            left.append(replace(region, lines=tuple(stays), box=box_around(line.box for line in stays)))
    made = [
        Region(next(names), block.type, block.box, 0, lines=tuple(lines), provenance=provenance, marks=block.marks)
        for block, lines in zip(blocks, held, strict=True)
    ]
    # A region without lines gives way to the block in its place, unless it says something by itself.
    kept = [region for region in left if region.lines or region.html or region.latex or not made]
    regions = _placed(made, kept)
    if marks and regions:
        regions[0] = _marked(regions[0], marks)
    elif marks:
        whole = Region("r1", RegionType.UNKNOWN, (0.0, 0.0, 1.0, 1.0), 0, provenance=provenance, marks=tuple(marks))
        regions = [whole]
    return replace(page, regions=tuple(replace(region, order=order) for order, region in enumerate(regions)))


def agreement(one: str, other: str) -> float:
    """Share of the longer text's letters that stand in the other one in the same order, 0..1; spaces do not count."""
    first, second = "".join(one.split()), "".join(other.split())
    most = max(len(first), len(second))
    return len(matches(first[:_MOST], second[:_MOST])) / min(most, _MOST) if most else 1.0


_MOST = 3000
"""Letters that are compared: the table of distances grows by their square."""


def _home(line: Line, blocks: Sequence[Block]) -> int | None:
    point = centre(line.polygon)
    holding = [number for number, block in enumerate(blocks) if inside(point, block.box)]
    return min(holding, key=lambda number: _area(blocks[number].box), default=None)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _placed(made: list[Region], kept: Sequence[Region]) -> list[Region]:
    """The new regions in their order, each of the others before the first that begins below it."""
    regions = list(made)
    for region in kept:
        at = next((at for at, other in enumerate(regions) if other.box[1] > region.box[1]), len(regions))
        regions.insert(at, region)
    return regions


def _marked(region: Region, marks: Sequence[Mark]) -> Region:
    return replace(region, marks=tuple(dict.fromkeys((*region.marks, *marks))))


def _table(region: Region, content: Content, provenance: str) -> Region:
    region = _marked(region, content.marks)
    html = to_html(content.grid)
    said = " ".join(cell.text for cell in content.grid.cells)
    broken = any(mark.code in _BROKEN for mark in content.marks)
    if not html or (broken and region.html):
        # What broke off is worth less than what stands; without either its text is still worth having.
        if not region.lines and not region.html and content.lines:
            return replace(region, lines=_new_lines(region, content, provenance), provenance=provenance)
        return region
    if region.html:
        before = " ".join(cell.text for cell in from_html(region.html).cells)
        if "".join(before.split()) != "".join(said.split()):
            region = _marked(region, [_disagreement("the table was read before as", before)])
    lines = region.lines
    if not lines:
        rows = [" ".join(dict.fromkeys(text for text in row if text)) for row in content.grid.texts()]
        lines = _new_lines(region, replace(content, lines=tuple(row for row in rows if row)), provenance)
    return replace(region, html=html, lines=lines, provenance=provenance)


def _formula(region: Region, content: Content, provenance: str) -> Region:
    lines = region.lines
    if not lines and content.latex:
        lines = _new_lines(region, replace(content, lines=(content.latex,)), provenance)
    # A picture that turned out to be a formula is one from now on.
    kind = RegionType.EQUATION if content.kind else region.type
    return _marked(replace(region, type=kind, latex=content.latex, lines=lines, provenance=provenance), content.marks)


def _text(region: Region, content: Content, provenance: str) -> Region:
    region = _marked(region, content.marks)
    if not region.lines:
        return replace(region, lines=_new_lines(region, content, provenance), provenance=provenance)
    said = joined(content.lines)
    texts = (
        list(content.lines)
        if len(content.lines) == len(region.lines)
        else _distributed(said, [line.text for line in region.lines])
    )
    before = joined([line.text for line in region.lines])
    if agreement(before, said) < _ALIKE or any(mark.code in _BROKEN for mark in content.marks):
        doubted = tuple(_doubted(line, content.score) for line in region.lines)
        return _marked(replace(region, lines=doubted), [_disagreement(f"{provenance} read", said)])
    lines, marks = [], []
    for line, text in zip(region.lines, texts, strict=True):
        settled = _settled(line, text, content.score, provenance)
        lines.append(settled)
        if text and text != line.text:
            loser, who = (line.text, line.provenance) if settled.text == text else (text, provenance)
            marks.append(_disagreement(f"{line.id}: {who or 'another reader'} read", loser))
    return _marked(replace(region, lines=tuple(lines)), marks)


def _settled(line: Line, text: str, score: float, provenance: str) -> Line:
    """The more probable of two texts for one line.

    With p and q for the two, taken as independent: of texts that differ at most one is right, which leaves
    p (1 - q) / (1 - p q) of p; that two readers make the same mistake is rarer than either's.
    """
    p, q = line.confidence if line.confidence is not None else line.score, min(score, _SURE)
    if not 0.0 <= p <= 1.0:
        p = 0.0
    if not text:
        return line
    if text == line.text:
        both = p * q / (p * q + (1 - p) * (1 - q)) if 0 < p < 1 else p
        return line if line.confidence is None else replace(line, confidence=max(p, both))
    if p >= q:
        return line if line.confidence is None else replace(line, confidence=p * (1 - q) / (1 - p * q))
    sure = q * (1 - p) / (1 - p * q)
    return replace(line, text=text, score=score, confidence=sure, provenance=provenance, trace=None)


def _doubted(line: Line, score: float) -> Line:
    if line.confidence is None:
        return line
    p, q = line.confidence, min(score, _SURE)
    return replace(line, confidence=p * (1 - q) / (1 - p * q))


def _disagreement(who: str, text: str) -> Mark:
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return Mark("DISAGREEMENT", f"{who} {shown!r}")


def _distributed(said: str, lines: Sequence[str]) -> list[str]:
    """A paragraph that the model gave as one text, cut at the spaces where the page's lines end."""
    before = "\n".join(lines)
    pairs = matches(before[:_MOST], said[:_MOST])
    ends, cuts = 0, [0]
    for line in lines[:-1]:
        ends += len(line) + 1
        # The first letter of the next line, as the model has it.
        wanted = next((there for here, there in pairs if here >= ends), len(said))
        spaces = [at for at in range(cuts[-1], len(said) + 1) if at in {0, len(said)} or said[at - 1].isspace()]
        cuts.append(min(spaces, key=lambda at, wanted=wanted: abs(at - wanted), default=len(said)))  # type: ignore[misc]
    return [said[start:end].strip() for start, end in pairwise([*cuts, len(said)])]


def _new_lines(region: Region, content: Content, provenance: str) -> tuple[Line, ...]:
    """Lines for a region that had none: strips of equal height, as the model says no places."""
    count = len(content.lines)
    return tuple(
        Line(f"{region.id}.l{number + 1}", text, _strip(region.box, number, count), content.score, None, provenance)
        for number, text in enumerate(content.lines)
    )


def _strip(box: Box, number: int, count: int) -> Polygon:
    x0, y0, x1, y1 = box
    top, bottom = y0 + (y1 - y0) * number / count, y0 + (y1 - y0) * (number + 1) / count
    return (x0, top), (x1, top), (x1, bottom), (x0, bottom)
