"""An HTML file into blocks: headings, paragraphs, list items, tables; scripts, styles and navigation are dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lxml.html
from lxml import etree

from docferry.document import RegionType
from docferry.errors import UnreadableImage
from docferry.tables import from_html
from docferry_cloud.documents.block import Block

_SILENT = frozenset({"script", "style", "template", "noscript", "nav", "head", "svg", "button", "select"})
_KINDS = {
    "li": RegionType.LIST_ITEM,
    "dt": RegionType.LIST_ITEM,
    "dd": RegionType.LIST_ITEM,
    "pre": RegionType.CODE,
    "figcaption": RegionType.IMAGE_CAPTION,
    **{f"h{level}": RegionType.TITLE for level in range(1, 7)},
}
_BLOCKS = frozenset(
    {*_KINDS, "p", "div", "section", "article", "main", "ul", "ol", "dl", "blockquote", "table", "body"}
)
_MOST_DEPTH = 200


def html_blocks(data: bytes) -> Iterator[Block]:
    """The blocks of a page in the file's order; no network is touched, no entity expanded.

    Raises:
        UnreadableImage: There is nothing in it that can be parsed.
    """
    parser = lxml.html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = lxml.html.document_fromstring(data, parser=parser)
    except (etree.ParserError, ValueError) as error:
        raise UnreadableImage("the HTML file is empty or cannot be parsed", remedy="save the page again") from error
    body = root.find("body")
    yield from _walk(root if body is None else body, 0)


def _walk(element: Any, depth: int) -> Iterator[Block]:
    if not isinstance(element.tag, str) or element.tag in _SILENT or depth > _MOST_DEPTH:
        return
    if element.tag == "table":
        grid = from_html(lxml.html.tostring(element, encoding="unicode"))
        if grid.cells:
            yield Block(RegionType.TABLE, grid=grid)
        return
    kind = _KINDS.get(element.tag, RegionType.TEXT)
    if not any(isinstance(child.tag, str) and child.tag in _BLOCKS for child in element.iterdescendants()):
        if text := _text(element, kind):
            yield Block(kind, text)
        return
    if own := " ".join((element.text or "").split()):
        yield Block(kind, (own,))
    for child in element:
        if isinstance(child.tag, str) and (child.tag in _BLOCKS or len(child)):
            yield from _walk(child, depth + 1)
        elif isinstance(child.tag, str) and child.tag not in _SILENT and (text := _text(child, kind)):
            yield Block(kind, text)
        if tail := " ".join((child.tail or "").split()):
            yield Block(RegionType.TEXT, (tail,))


def _shown(element: Any) -> Iterator[str]:
    """The text under an element that a browser shows, in order."""
    waiting: list[Any] = [element]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        if isinstance(item.tag, str) and item.tag not in _SILENT:
            yield item.text or ""
            for child in reversed(item):
                waiting += [child.tail or "", child]


def _text(element: Any, kind: RegionType) -> tuple[str, ...]:
    whole = "".join(_shown(element))
    if kind is RegionType.CODE:
        return tuple(line.rstrip() for line in whole.splitlines() if line.strip())
    text = " ".join(whole.split())
    return (text,) if text else ()
