"""A document as Markdown, in reading order. Pure, no numpy.

What stands on paper is text and stays text: every character that Markdown or HTML would act on is escaped, so that a
printed `<script>` or `[link](...)` is shown and nothing more. Headers, footers and page numbers are left out of running
pages; on receipts and invoices they are part of the matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from docferry.document import Document, Page, Region, RegionType
from docferry.fields import DocumentType, classify, find_rows
from docferry.fields.rows import Row, Segment, find_segments
from docferry.markdown_tables import Cell, pipe_table, safe_table

FURNITURE = frozenset({RegionType.HEADER, RegionType.FOOTER, RegionType.PAGE_NUMBER})
"""What stands on every page and belongs to none."""

_CAPTIONS = frozenset({RegionType.TABLE_CAPTION, RegionType.IMAGE_CAPTION})
_LINE_END = "  \n"
_COLUMN_GAP = " \u2003"

_ACTIVE = re.compile(r"[\\`*_\[\]{}|~$]")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINE_START = re.compile(r"^(?:([#+\-=>:])|(\d{1,9})([.)](?=\s|$)))")
# C0, C1 and the controls that turn the direction of text around: invisible, and never printed.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")
_BULLET = re.compile(r"^[•·●○▪■◦‣*\-–]\s*")
_HYPHENATED = re.compile(r"[^\W\d_][-\u00ad\u2010]$")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")


def render(document: Document) -> str:
    """The document as CommonMark with pipe tables; empty for a document without text, else ended by a line feed."""
    keeps_rows = classify(find_rows(document)) is not DocumentType.PAGE
    blocks: list[str] = []
    titled = False
    for page in document.pages:
        for region in page.regions:
            if region.type in FURNITURE and not keeps_rows and _has_matter(page):
                continue
            block = _block(page, region, "##" if titled else "#", keeps_rows=keeps_rows)
            titled = titled or (region.type is RegionType.TITLE and bool(block))
            if block:
                blocks.append(block)
    return "\n\n".join(blocks) + "\n" if blocks else ""


def escaped(text: str) -> str:
    """One line of printed text as Markdown that shows just this text, wherever in a line it stands."""
    text = " ".join(_INVISIBLE.sub(" ", text).split())
    text = _ACTIVE.sub(r"\\\g<0>", _ENTITY.sub("&amp;", text))
    return text.replace("<", "&lt;")


def at_line_start(text: str) -> str:
    """Escaped text made safe for the start of a line, where `#`, `-`, `1.` and the like open a block."""
    return _LINE_START.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", text)


def joined(texts: Sequence[str]) -> str:
    """Lines of one paragraph as one line: a word cut by a hyphen is made whole, Chinese and Japanese get no space."""
    whole = ""
    for text in (text.strip() for text in texts):
        if not whole or not text:
            whole = whole or text
        elif _HYPHENATED.search(whole) and text[0].islower():
            whole = whole[:-1] + text
        elif _CJK.match(whole[-1]) and _CJK.match(text[0]):
            whole += text
        else:
            whole = f"{whole} {text}"
    return whole


def _has_matter(page: Page) -> bool:
    """Whether a page holds anything but furniture; a layout network that takes all for a header must not empty it."""
    return any(region.lines for region in page.regions if region.type not in FURNITURE)


def _block(page: Page, region: Region, heading: str, *, keeps_rows: bool) -> str:
    if ready := _structured(region):
        return ready
    rows = find_rows(Document((replace(page, regions=(region,)),)))
    if not rows:
        return ""
    segments = _segments(rows)
    if region.type is RegionType.TITLE:
        return f"{heading} {_paragraph(segments)}"
    if region.type is RegionType.LIST_ITEM:
        return f"- {at_line_start(escaped(_BULLET.sub('', _one_line(segments))))}"
    if region.type is RegionType.CODE:
        return _code(segments)
    prose = region.type in _CAPTIONS or _is_prose(rows, segments, keeps_rows=keeps_rows)
    table = _table(segments) if region.type is RegionType.TABLE else ""
    return table or (_paragraph(segments) if prose else _by_rows(segments))


def _structured(region: Region) -> str:
    """What a reader of tables or formulas made of a region; empty where none did."""
    if region.type in {RegionType.TABLE, RegionType.CHART} and region.html:
        return safe_table(region.html)
    # A dollar sign would end the formula, and Markdown would act on the rest.
    if region.type is RegionType.EQUATION and region.latex and "$" not in region.latex:
        return f"$$\n{' '.join(_INVISIBLE.sub(' ', region.latex).split())}\n$$"
    return ""


def _segments(rows: Sequence[Row]) -> list[list[Segment]]:
    """The segments of each row, left to right."""
    by_row: dict[int, list[Segment]] = {}
    for segment in find_segments(tuple(rows)):
        by_row.setdefault(segment.row, []).append(segment)
    return list(by_row.values())


def _text(segment: Segment) -> str:
    # The reader saw a gap between them, so even Chinese pieces stay apart.
    return " ".join(piece.line.text for piece in segment.pieces)


def _one_line(rows: Sequence[Sequence[Segment]]) -> str:
    return joined([" ".join(_text(segment) for segment in row) for row in rows])


def _paragraph(rows: Sequence[Sequence[Segment]]) -> str:
    return at_line_start(escaped(_one_line(rows)))


def _by_rows(rows: Sequence[Sequence[Segment]]) -> str:
    return _LINE_END.join(at_line_start(_COLUMN_GAP.join(escaped(_text(part)) for part in row)) for row in rows)


def _code(rows: Sequence[Sequence[Segment]]) -> str:
    lines = [_INVISIBLE.sub(" ", " ".join(_text(segment) for segment in row)) for row in rows]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *lines, fence])


def _table(rows: Sequence[Sequence[Segment]]) -> str:
    return pipe_table([[Cell(part.left, part.right, escaped(_text(part))) for part in row] for row in rows])


def _is_prose(rows: Sequence[Row], segments: Sequence[Sequence[Segment]], *, keeps_rows: bool) -> bool:
    """Whether rows are running text: no columns, and all but the last fill most of the width.

    Where rows carry meaning (receipts, invoices) only long lines may be joined.
    """
    if any(len(row) > 1 for row in segments):
        return False
    if keeps_rows and median(len(row.text) for row in rows) < 40:
        return False
    left = min(piece.left for row in rows for piece in row.pieces)
    right = max(piece.right for row in rows for piece in row.pieces)
    spans = [row.pieces[-1].right - row.pieces[0].left for row in rows[:-1]]
    full = sum(span >= 0.75 * (right - left) for span in spans)
    return full >= 0.6 * len(spans)
