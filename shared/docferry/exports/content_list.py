"""A document as MinerU's `content_list.json` (version 1): one flat list of blocks in reading order."""

from __future__ import annotations

from typing import Any

from docferry.document import Document, Region, RegionType
from docferry.markdown import joined
from docferry.tables import from_html, to_html

_PLAIN = {
    RegionType.HEADER: "header",
    RegionType.FOOTER: "footer",
    RegionType.PAGE_NUMBER: "page_number",
    RegionType.FOOTNOTE: "page_footnote",
}
_OWNERS = {
    RegionType.TABLE_CAPTION: (RegionType.TABLE, "table_caption"),
    RegionType.TABLE_FOOTNOTE: (RegionType.TABLE, "table_footnote"),
    RegionType.IMAGE_CAPTION: (RegionType.IMAGE, "image_caption"),
}


def content_list(document: Document) -> list[dict[str, Any]]:
    """One object a block: `type`, `bbox` (0..1000, whole numbers), `page_idx` from 0, and what the type has.

    Captions and footnotes stand inside the nearest table or picture of their page, as MinerU has them; list items that
    follow one another are one list. Pictures have an empty `img_path`: nothing is written beside the list.
    """
    items: list[dict[str, Any]] = []
    for number, page in enumerate(document.pages):
        made = {region.id: item for region in page.regions if (item := _item(region, number)) is not None}
        for region in page.regions:
            owner = _OWNERS.get(region.type)
            home = _nearest(region, [r for r in page.regions if owner and r.type is owner[0]])
            if owner is not None and home is not None:
                made[home.id][owner[1]].append(_text(region))
                made.pop(region.id, None)
        for region in page.regions:
            item = made.get(region.id)
            if item is None:
                continue
            last = items[-1] if items else None
            if item["type"] == "list" and last and last["type"] == "list" and last["page_idx"] == number:
                last["list_items"] += item["list_items"]
                last["bbox"] = _around(last["bbox"], item["bbox"])
            else:
                items.append(item)
    return items


def _item(region: Region, number: int) -> dict[str, Any] | None:
    """One block, or None for one without anything to say."""
    text = _text(region)
    content = _visual(region, text) or _written(region, text)
    if content is None:
        return None
    return {**content, "bbox": [round(1000 * side) for side in region.box], "page_idx": number}


def _visual(region: Region, text: str) -> dict[str, Any] | None:
    """Tables, pictures and formulas, which MinerU keeps a picture of; None for anything else."""
    match region.type:
        case RegionType.TABLE:
            body = to_html(from_html(region.html)) if region.html else ""
            table = {"type": "table", "img_path": "", "table_caption": [], "table_footnote": [], "table_body": body}
            return table if body else {**table, "text": text}
        case RegionType.IMAGE | RegionType.CHART:
            kind = "image" if region.type is RegionType.IMAGE else "chart"
            text = to_html(from_html(region.html)) if region.html else text
            return {"type": kind, "img_path": "", f"{kind}_caption": [], f"{kind}_footnote": [], "content": text}
        case RegionType.EQUATION:
            return {"type": "equation", "img_path": "", "text": region.latex or text, "text_format": "latex"}
        case _:
            return None


def _written(region: Region, text: str) -> dict[str, Any] | None:
    if not text:
        return None
    match region.type:
        case RegionType.CODE:
            lines = "\n".join(line.text for line in region.lines)
            return {"type": "code", "sub_type": "code", "code_body": lines, "code_caption": []}
        case RegionType.LIST_ITEM:
            return {"type": "list", "sub_type": "text", "list_items": [text]}
        case kind if kind in _PLAIN:
            return {"type": _PLAIN[kind], "text": text}
        case _:
            return {"type": "text", "text": text, **({"text_level": 1} if region.type is RegionType.TITLE else {})}


def _text(region: Region) -> str:
    return joined([line.text for line in region.lines])


def _nearest(region: Region, owners: list[Region]) -> Region | None:
    def gap(other: Region) -> float:
        return max(other.box[1] - region.box[3], region.box[1] - other.box[3], 0.0)

    return min(owners, key=gap, default=None)


def _around(one: list[int], other: list[int]) -> list[int]:
    return [min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])]
