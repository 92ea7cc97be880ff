"""From what reached the cloud to the finished interpretation: engine, fields, Markdown, one line of summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from docferry.confidence.estimates import reread_confidence
from docferry.document import Document, Field, Page, RegionType, with_fields
from docferry.fields import DocumentType, classify, extract_fields, find_rows
from docferry.fields.pairs import form_fields
from docferry.markdown import joined, render
from docferry_cloud.engine import AskingEngine, Effort, Engine, PageInput, Want, check

MAX_ASKED = 16
"""Pictures that one interpretation may ask for, the first ones first."""

_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Interpretation:
    """What the cloud makes of a document.

    Attributes:
        document: The tree, its fields included.
        markdown: The document in reading order; empty if nothing was read.
        summary: One English sentence made from fields and title alone; empty where there are none.
        wants: What the engine would need to do better.
    """

    document: Document
    markdown: str
    summary: str
    wants: tuple[Want, ...] = ()

    @classmethod
    def empty(cls) -> Interpretation:
        """Of a document without pages."""
        return cls(Document(()), "", "")


def interpret(
    pages: Sequence[PageInput],
    engine: Engine,
    effort: Effort,
    cancelled: Callable[[], bool],
    *,
    on_page: Callable[[int], None] | None = None,
) -> Interpretation:
    """Read every page with the engine, one at a time, and say what the document is.

    Args:
        cancelled: Asked before every page, and by the engine within one.
        on_page: Told the number of each page, from 0, once it has been read.

    Raises:
        EngineError: The engine failed, or `cancelled` said True.
        InputError: The pixels that were sent cannot be used.
    """
    made: list[Page] = []
    for number, page in enumerate(pages):
        check(cancelled)
        made.append(judged(engine.read(page, effort, cancelled), page.reading))
        if on_page is not None:
            on_page(number)
    read = Document(tuple(made))
    # Receipts and invoices have fields by name; a form has those that it prints itself.
    document = with_fields(read, extract_fields(read) or form_fields(read))
    return Interpretation(document, render(document), summarise(document), _wants(pages, read, engine))


def judged(read: Page, given: Page | None) -> Page:
    """The page with a confidence for every region whose lines have one, new readings included."""
    before = {region.id: region for region in given.regions} if given is not None else {}
    return replace(
        read,
        regions=tuple(
            replace(region, confidence=reread_confidence(region, before.get(region.id))) for region in read.regions
        ),
    )


def summarise(document: Document) -> str:
    """`Receipt from Corner Shop, 2018-03-12, total 9.00 EUR.`, as far as the fields go; else the document's title."""
    kind = classify(find_rows(document))
    if kind is DocumentType.PAGE:
        return _title(document)
    found = {field.name: field for field in document.fields}
    head = kind.value.capitalize()
    if number := found.get("invoice_number"):
        head += f" {_plain(number.normalized)}"
    if merchant := found.get("merchant"):
        head += f" from {_plain(merchant.normalized)}"
    parts = [head]
    if date := found.get("date"):
        parts.append(_plain(date.normalized))
    if total := found.get("total"):
        parts.append(f"total {_amount(total, found.get('currency'))}")
    # The bare word "Receipt" would claim to have found something.
    return f"{', '.join(parts)}." if len(parts) > 1 or merchant else ""


def _wants(pages: Sequence[PageInput], read: Document, engine: Engine) -> tuple[Want, ...]:
    if not isinstance(engine, AskingEngine):
        return ()
    asked = (
        replace(want, page=number)
        for number, (given, made) in enumerate(zip(pages, read.pages, strict=True))
        if given.original_scale > 0
        for want in engine.wants(given, made)
    )
    return tuple(asked)[:MAX_ASKED]


def _amount(total: Field, currency: Field | None) -> str:
    amount = _plain(total.normalized)
    return f"{amount} {_plain(currency.normalized)}" if currency else amount


def _title(document: Document) -> str:
    for page in document.pages:
        for region in page.regions:
            if region.type is RegionType.TITLE and region.lines:
                title = joined([_plain(line.text) for line in region.lines])
                return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1].rstrip()}…"
    return ""


def _plain(text: str) -> str:
    return " ".join(text.split())
