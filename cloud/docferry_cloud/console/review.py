"""The review of one document: what is in doubt, with the place on the paper beside it, settled from the keyboard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from docferry.errors import InputError
from docferry.fields.amounts import parse_amount, plain_decimal
from docferry.fields.dates import parse_date
from docferry.v1 import analysis_pb2, document_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.console import session
from docferry_cloud.console.document import read, url
from docferry_cloud.console.inbox import row
from docferry_cloud.console.overlay import level
from docferry_cloud.console.visit import Visit
from docferry_cloud.digest import SURE, in_doubt

MOST_ITEMS = 50
"""Doubts of a document that are shown at once; the others come after these are settled."""
_AMOUNTS = frozenset({"total", "subtotal", "tax"})
_MARGIN = 0.015
_WHOLE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One text that can be put right; `name` is its field in the form."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Crop:
    """The place on the paper: the page, and in its pixels what to show and what to mark."""

    page: int
    picture: str
    width: int
    height: int
    view: str
    mark: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Item:
    """One doubt: a line, or all fields of one name, since a correction replaces those together.

    Attributes:
        key: Names it in the form.
    """

    key: str
    label: str
    confidence: float
    level: str
    entries: tuple[Entry, ...]
    crop: Crop | None


def items(analysis: analysis_pb2.Analysis, document: document_pb2.Document) -> list[Item]:
    """What is in doubt: fields first, then lines, each the least sure first."""
    names = {field.name for field in document.fields if field.confidence < SURE}
    fields = [_field_item(analysis, document, name) for name in sorted(names)]
    lines = [
        _line_item(analysis, document, number, line)
        for number, page in enumerate(document.pages)
        for region in page.regions
        for line in region.lines
        if in_doubt(line)
    ]
    for found in (fields, lines):
        found.sort(key=lambda item: item.confidence)
    return fields + lines


async def show(visit: Visit) -> Response:
    """The form."""
    analysis, version = await read(visit)
    found = await asyncio.to_thread(items, analysis, version.interpretation.document)
    return visit.page(
        "review.html",
        title=f"Review {analysis.file_name}",
        about=row(analysis),
        url=url(analysis.analysis_id),
        version=version,
        items=found[:MOST_ITEMS],
        more=max(0, len(found) - MOST_ITEMS),
        can=visit.may("AnalysisService.Correct"),
    )


async def settle(visit: Visit) -> Response:
    """Store what was settled as a correction, and go on to the next document."""
    form = await visit.form()
    analysis_id = visit.request.path_params["analysis_id"]
    texts = {name: value for name, value in form.items() if isinstance(value, str)}
    number = texts.get("version", "")
    if not number.isdecimal() or len(number) > 9:
        raise InputError("the form names no version", remedy="load the page again")
    wanted = pb.AnalysisServiceGetRequest(analysis_id=analysis_id, version=int(number))
    analysis = (await visit.call("AnalysisService.Get", wanted, pb.AnalysisServiceGetResponse)).analysis
    if not analysis.versions:
        raise InputError("nothing of this document has been read yet", remedy="wait until it has been read")
    document = analysis.versions[-1].interpretation.document
    checked = {value for value in form.getlist("settled") if isinstance(value, str)}
    request = await asyncio.to_thread(correction, analysis, document, int(number), texts, checked)
    if request.lines or request.fields:
        await visit.call("AnalysisService.Correct", request, pb.CorrectResponse)
    return RedirectResponse(await _next(visit, analysis_id), 303)


def correction(
    analysis: analysis_pb2.Analysis,
    document: document_pb2.Document,
    version: int,
    texts: Mapping[str, str],
    checked: Iterable[str],
) -> pb.CorrectRequest:
    """What a form settles: what is checked, and what was changed. Confirming a text as it is says that it is right.

    What the form did not show stays in doubt, even where it is checked.
    """
    settled = set(checked)
    request = pb.CorrectRequest(analysis_id=analysis.analysis_id, version=version)
    for item in items(analysis, document):
        if any(entry.name not in texts for entry in item.entries):
            # It was not on the page, so nobody has looked at it.
            continue
        given = [_given(texts[entry.name], entry.text) for entry in item.entries]
        changed = any(text != entry.text for text, entry in zip(given, item.entries, strict=True))
        if item.key not in settled and not changed:
            continue
        kind, _, rest = item.key.partition(":")
        if kind == "line":
            page, _, line_id = rest.partition(":")
            request.lines.add(page=int(page), line_id=line_id, text=given[0])
            continue
        for field, text in zip((field for field in document.fields if field.name == rest), given, strict=True):
            if not text:
                # An empty value drops a field, and one of this name has to be sent for that.
                request.fields.add(name=rest)
                continue
            put_right = request.fields.add()
            put_right.CopyFrom(field)
            if text != field.value:
                put_right.value, put_right.normalized = text, _normalized(rest, text)
    return request


def _given(typed: str, shown: str) -> str:
    """What a person gave: the text as it was shown unless they changed more than what a form changes by itself."""
    return shown if _plain(typed) == _plain(shown) else _plain(typed)


def _plain(text: str) -> str:
    """As a one-line field of a form gives it back: without line breaks, and without spaces around it."""
    return text.replace("\r", "").replace("\n", "").strip()


async def _next(visit: Visit, analysis_id: str) -> str:
    request = pb.AnalysisServiceListRequest(page_size=2, order=pb.AnalysisServiceListRequest.ORDER_DOUBT_FIRST)
    answer = await visit.call("AnalysisService.List", request, pb.AnalysisServiceListResponse)
    others = [each.analysis_id for each in answer.analyses if each.analysis_id != analysis_id]
    return f"{session.PATH}/review/{others[0]}" if others else f"{session.PATH}/review"


def _normalized(name: str, text: str) -> str:
    if name in _AMOUNTS and (value := parse_amount(text)) is not None:
        return plain_decimal(value)
    if name == "date" and (day := parse_date(text)) is not None:
        return day.isoformat()
    return " ".join(text.split())


def _field_item(analysis: analysis_pb2.Analysis, document: document_pb2.Document, name: str) -> Item:
    fields = [field for field in document.fields if field.name == name]
    confidence = min(field.confidence for field in fields)
    entries = tuple(Entry(f"field:{name}:{number}", field.value) for number, field in enumerate(fields))
    place = next((place for field in fields for place in field.evidence), None)
    crop = None
    if place is not None:
        crop = _crop(analysis, document, place.page, (place.box.x0, place.box.y0, place.box.x1, place.box.y1))
    return Item(f"field:{name}", name.replace("_", " "), confidence, level(confidence), entries, crop)


def _line_item(
    analysis: analysis_pb2.Analysis, document: document_pb2.Document, page: int, line: document_pb2.Line
) -> Item:
    xs, ys = line.polygon[0::2] or [0.0, 1.0], line.polygon[1::2] or [0.0, 1.0]
    key = f"line:{page}:{line.line_id}"
    crop = _crop(analysis, document, page, (min(xs), min(ys), max(xs), max(ys)))
    label = f"page {page + 1}, line {line.line_id}"
    return Item(key, label, line.confidence, level(line.confidence), (Entry(key, line.text),), crop)


def _crop(
    analysis: analysis_pb2.Analysis,
    document: document_pb2.Document,
    number: int,
    box: tuple[float, float, float, float],
) -> Crop | None:
    if number >= len(document.pages):
        return None
    page = document.pages[number]
    width, height = page.width or 1000, page.height or 1414
    left, top, right, bottom = (min(1.0, max(0.0, value)) for value in box)
    if right <= left or bottom <= top:
        left, top, right, bottom = _WHOLE
    x, y = max(0.0, left - _MARGIN) * width, max(0.0, top - _MARGIN) * height
    x_end, y_end = min(1.0, right + _MARGIN) * width, min(1.0, bottom + _MARGIN) * height
    return Crop(
        page=number,
        picture=f"{url(analysis.analysis_id)}/pages/{number}/picture?size=review",
        width=width,
        height=height,
        view=f"{x:.1f} {y:.1f} {max(1.0, x_end - x):.1f} {max(1.0, y_end - y):.1f}",
        mark=(left * width, top * height, (right - left) * width, (bottom - top) * height),
    )
