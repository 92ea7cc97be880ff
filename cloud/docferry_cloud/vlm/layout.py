"""The model's layout answer: one block after the other as box, type, turn and tail. Pure; never raises.

`<|box_start|>050 040 950 100<|box_end|><|ref_start|>title<|ref_end|><|rotate_up|>` and so on in reading order,
coordinates in thousandths of the page. What cannot be read of it becomes a mark, on its block where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from docferry.document import Box, Mark, RegionType
from docferry.rectangles import area, overlap_area

MOST_BLOCKS = 500
"""Blocks of one page; an answer with more is a loop."""

_BLOCK = re.compile(
    r"<\|box_start\|>(?P<box>[^<>]{0,64})<\|box_end\|>\s*"
    r"<\|ref_start\|>(?P<type>[^<>]{0,64})<\|ref_end\|>(?P<tail>(?:(?!<\|box_start\|>).)*)",
    re.DOTALL,
)
_START = "<|box_start|>"
_TURNS: Mapping[str, int] = {
    "<|rotate_up|>": 0,
    "<|rotate_right|>": 90,
    "<|rotate_down|>": 180,
    "<|rotate_left|>": 270,
}
_GOES_ON = "txt_contd_tgt"
_SAME = 0.9
"""Two boxes of one type that share this much are one block; text that lies so far within a table is the table's."""

_CONTAINERS = frozenset({"list", "image_block", "equation_block"})
"""They hold blocks that come by themselves."""

_TYPES: Mapping[str, RegionType] = {
    **{kind.value: kind for kind in RegionType if kind is not RegionType.UNKNOWN},
    "doc_title": RegionType.TITLE,
    "paragraph_title": RegionType.TITLE,
    "formula_number": RegionType.TEXT,
    "algorithm": RegionType.CODE,
    "aside_text": RegionType.TEXT,
    "index": RegionType.TEXT,
    "phonetic": RegionType.TEXT,
    "code_caption": RegionType.TEXT,
    "caption": RegionType.IMAGE_CAPTION,
    "image_footnote": RegionType.FOOTNOTE,
    "page_footnote": RegionType.FOOTNOTE,
    "unknown": RegionType.IMAGE,
}


@dataclass(frozen=True, slots=True)
class Block:
    """One block.

    Attributes:
        angle: By how many degrees the crop is to be turned counter-clockwise to stand upright: 0, 90, 180 or 270.
        joins: It goes on with the text block before it.
    """

    type: RegionType
    box: Box
    angle: int = 0
    joins: bool = False
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The blocks in reading order, and what is to be said of the answer as a whole."""

    blocks: tuple[Block, ...] = ()
    marks: tuple[Mark, ...] = ()


def parse_layout(answer: str) -> Layout:
    """Read a layout answer. One that holds no block has a mark that says so: it is no empty page."""
    found = list(_BLOCK.finditer(answer))
    marks: list[Mark] = []
    blocks: list[Block] = []
    for match in found[: MOST_BLOCKS + 1]:
        kind = match["type"].strip().lower()
        if kind in _CONTAINERS or kind == "inline_formula":
            continue
        block = _block(match["box"], kind, match["tail"])
        if block is None:
            marks.append(Mark("LAYOUT_MALFORMED", f"a box cannot be read: {_shown(match['box'])}"))
        elif not any(_same(block, before) for before in blocks):
            blocks.append(block)
    if len(found) > MOST_BLOCKS:
        marks.append(Mark("LOOP", f"the layout has more than {MOST_BLOCKS} blocks; those beyond are left out"))
        blocks = blocks[:MOST_BLOCKS]
    lost = answer.count(_START) - len(found)
    if lost > 0:
        marks.append(Mark("CUT", f"{lost} blocks of the layout broke off"))
    if not found and not lost:
        marks.append(Mark("LAYOUT_MALFORMED", _why_nothing(answer)))
    return Layout(tuple(_outside_tables(blocks)), tuple(dict.fromkeys(marks)))


def _block(box: str, kind: str, tail: str) -> Block | None:
    numbers = box.split()
    if len(numbers) != 4 or not all(number.isascii() and number.isdigit() and len(number) <= 6 for number in numbers):
        return None
    given = [int(number) for number in numbers]
    x0, y0, x1, y1 = (min(1000, number) / 1000 for number in given)
    place = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    if area(place) <= 0:
        return None
    marks = []
    if max(given) > 1000:
        marks.append(Mark("BOX_CLIPPED", f"the model's box leaves the page: {' '.join(numbers)}"))
    kind_of_region = _TYPES.get(kind, RegionType.UNKNOWN)
    if kind_of_region is RegionType.UNKNOWN:
        marks.append(Mark("TYPE_UNKNOWN", f"the model calls this {_shown(kind)}"))
    turns = [degrees for token, degrees in _TURNS.items() if token in tail]
    joins = _GOES_ON in tail and kind_of_region is RegionType.TEXT
    return Block(kind_of_region, place, turns[0] if len(turns) == 1 else 0, joins, tuple(marks))


def _same(block: Block, before: Block) -> bool:
    if (block.type, block.angle) != (before.type, before.angle):
        return False
    shared = overlap_area(block.box, before.box)
    return shared > _SAME * (area(block.box) + area(before.box) - shared)


def _outside_tables(blocks: list[Block]) -> list[Block]:
    """Without text and formulas that lie in a table; a table's reading holds them."""
    tables = [block.box for block in blocks if block.type is RegionType.TABLE]
    kept: list[Block] = []
    for block in blocks:
        inner = block.type in {RegionType.TEXT, RegionType.EQUATION} and any(
            overlap_area(block.box, table) >= _SAME * area(block.box) for table in tables
        )
        if not inner:
            # Nothing to go on with: the block before it belongs to a table.
            kept.append(block if kept or not block.joins else replace(block, joins=False))
    return kept


def _why_nothing(answer: str) -> str:
    if not answer.strip():
        return "the model answered nothing"
    if re.search(r"\d{1,4}\s+\d{1,4}\s+\d{1,4}\s+\d{1,4}", answer):
        return "the answer has boxes but no special tokens: the server must return them (llama-server: --special)"
    return f"the answer holds no block: {_shown(answer)}"


def _shown(text: str) -> str:
    return repr(text[:60])
