"""A document as one HTML file: every page as it looks, with its text laid over it, then its fields and tables."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

from docferry.document import Document, Line, Page
from docferry.tables import from_html, to_html

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:16px/1.4 system-ui,sans-serif;margin:1rem;background:#eee;color:#111}"
    "h1,h2{font-size:1.1rem}section,figure{background:#fff;margin:0 auto 1rem;max-width:60rem}"
    "section{padding:1rem}figure{position:relative;overflow:hidden}"
    "figure img{position:absolute;inset:0;width:100%;height:100%}"
    "figure span{position:absolute;white-space:pre;overflow:hidden;line-height:1;color:#111}"
    "figure.picture span{color:transparent}figure.picture span:hover{background:#fffbe6;color:#111}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2rem .5rem;vertical-align:top}"
)


def html_page(document: Document, pictures: Sequence[bytes | None] = (), *, title: str = "") -> str:
    """One file without anything from elsewhere: no script, no style sheet, no picture but those given.

    Args:
        document: What was read.
        pictures: Each page as it was read, JPEG, upright; None or missing where there is none: the text then stands on
            a blank page.
        title: Usually the file's name.
    """
    name = html.escape(title or "Document")
    parts = [
        "<!doctype html>",
        '<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        # Whatever a page's text may hold, nothing is run or fetched.
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{name}</title><style>{_STYLE}</style></head><body><h1>{name}</h1>",
    ]
    for number, page in enumerate(document.pages):
        picture = pictures[number] if number < len(pictures) else None
        parts.append(_page(page, picture))
    parts += [_fields(document), *_tables(document), "</body></html>"]
    return "\n".join(part for part in parts if part) + "\n"


def _page(page: Page, picture: bytes | None) -> str:
    shown = ""
    if picture is not None:
        shown = f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(picture).decode()}">'
    ratio = f"{max(1, page.width)}/{max(1, page.height)}"
    kind = ' class="picture"' if picture is not None else ""
    spans = "".join(_span(page, line) for line in page.lines)
    return f'<figure{kind} style="aspect-ratio:{ratio};container-type:inline-size">{shown}{spans}</figure>'


def _span(page: Page, line: Line) -> str:
    x0, y0, x1, y1 = line.box
    # A share of the page's width, so that the text keeps its size when the window changes.
    size = 80 * (y1 - y0) * max(1, page.height) / max(1, page.width)
    place = f"left:{_percent(x0)};top:{_percent(y0)};width:{_percent(x1 - x0)};height:{_percent(y1 - y0)}"
    return f'<span style="{place};font-size:{size:.3f}cqw">{html.escape(line.text)}</span>'


def _percent(share: float) -> str:
    return f"{100 * share:.3f}%"


def _fields(document: Document) -> str:
    if not document.fields:
        return ""
    rows = "".join(
        f"<tr><th>{html.escape(field.name)}</th><td>{html.escape(field.value)}</td>"
        f"<td>{html.escape(field.normalized)}</td><td>{field.confidence:.2f}</td></tr>"
        for field in document.fields
    )
    return f"<section><h2>Fields</h2><table>{rows}</table></section>"


def _tables(document: Document) -> list[str]:
    return [
        f"<section><h2>Page {number}, table {region.id}</h2>{to_html(from_html(region.html))}</section>"
        for number, page in enumerate(document.pages, 1)
        for region in page.regions
        if region.html
    ]
