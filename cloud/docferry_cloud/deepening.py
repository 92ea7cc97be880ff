"""From a document that was read fast to one that was read deeply: the second step of a two-step engine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from docferry.document import Document, with_fields
from docferry.fields import extract_fields
from docferry.fields.pairs import form_fields
from docferry.markdown import render
from docferry_cloud.engine import Cancelled, Cost, Deepener, Effort, PageInput, check
from docferry_cloud.interpret import Interpretation, judged, summarise


def in_doubt(pages: Sequence[PageInput], read: Document, deep: Deepener, effort: Effort) -> bool:
    """Whether the second step has anything to do on any page."""
    return any(deep.doubts(page, made, effort) for page, made in zip(pages, read.pages, strict=False))


def deepen(
    pages: Sequence[PageInput], read: Document, deep: Deepener, effort: Effort, cancelled: Cancelled
) -> tuple[Interpretation, Cost]:
    """Read every page again where the first step is in doubt, and say anew what the document is.

    Args:
        read: What the first step read; its pages are those of `pages`.

    Raises:
        Unavailable: The model cannot be reached; nothing of this is kept then.
        EngineError: The model failed, or `cancelled` said True.
    """
    made, cost = [], Cost()
    for page, before in zip(pages, read.pages, strict=True):
        check(cancelled)
        after, took = deep.deepen(page, before, effort, cancelled)
        made.append(judged(after, before))
        cost += took
    document = replace(read, pages=tuple(made))
    document = with_fields(document, extract_fields(document) or form_fields(document))
    return Interpretation(document, render(document), summarise(document)), cost
