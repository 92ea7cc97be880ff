"""What a person puts right becomes a version of its own: a label, beside the readings that it corrects."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from docferry.document import Document, Field, Line, Region, iter_lines, with_fields
from docferry.errors import Conflict, InputError, Outdated
from docferry.markdown import render
from docferry.tables import from_html, put_right, to_html
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry.wire import document_from_proto, document_to_proto, field_from_proto
from docferry_cloud import digest_rows
from docferry_cloud.analysis_rows import add_version, own
from docferry_cloud.database import Clock, Database
from docferry_cloud.digest import digest
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.interpret import summarise
from docferry_cloud.rows import NewVersion
from docferry_cloud.schema import OPEN_STATES, EventType, analyses, versions

PERSON = "person"
"""The engine of a version that a person made."""
MAX_CORRECTIONS = 2000
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class LineChange:
    """One line put right: its page, from 0, its id, and what it says."""

    page: int
    line_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person put right, looking at one version.

    A field replaces those of its name; an empty value drops them.
    """

    version: int
    lines: tuple[LineChange, ...]
    fields: tuple[Field, ...]


def correction(request: pb.CorrectRequest) -> Correction:
    """The correction in a request.

    Raises:
        InputError: Nothing is put right, too much, or with a text that cannot be a line's or a field's.
    """
    count = len(request.lines) + len(request.fields)
    if not 0 < count <= MAX_CORRECTIONS:
        raise InputError(f"{count} lines and fields are put right", remedy=f"give 1..{MAX_CORRECTIONS}", field="lines")
    lines = tuple(LineChange(line.page, line.line_id, _text(line.text, "lines")) for line in request.lines)
    fields = tuple(field_from_proto(field) for field in request.fields)
    for field in fields:
        _text(field.value, "fields")
        _text(field.normalized, "fields")
        if not 0 < len(field.name) <= 64:
            raise InputError("a field has no name, or a long one", remedy="give 1..64 characters", field="fields")
    return Correction(request.version, lines, fields)


def corrected(document: Document, change: Correction) -> Document:
    """The document with what a person put right; that counts as certain, and says who said it.

    Raises:
        InputError: There is no such page or line, or a line that is no single place in its table.
    """
    texts: dict[int, dict[str, str]] = {}
    for line in change.lines:
        texts.setdefault(line.page, {})[line.line_id] = line.text
    wanted = {(line.page, line.line_id) for line in change.lines}
    for number, name in wanted - {(number, line.id) for number, _, line in iter_lines(document)}:
        raise InputError(f"page {number} has no line {name[:64]!r}", remedy="name lines of that version", field="lines")
    pages = tuple(
        replace(
            page,
            regions=tuple(_corrected(region, number, texts.get(number, {})) for region in page.regions),
        )
        for number, page in enumerate(document.pages)
    )
    return with_fields(replace(document, pages=pages), _fields(document.fields, change.fields))


class Corrections:
    """Stores corrections."""

    def __init__(self, database: Database, log: EventLog, clock: Clock | None = None) -> None:
        self._database = database
        self._log = log
        self._clock = clock or database.now

    def store(self, tenant: str, analysis_id: str, change: Correction) -> None:
        """Add a version made by a person, and the event that tells of it.

        Raises:
            NotFound: This tenant has no such analysis.
            Conflict: It is still being worked on, or was never read.
            Outdated: There is a newer version than the one that was looked at.
            InputError: There is no such page or line.
        """
        with self._database.write() as connection:
            row = own(connection, tenant, analysis_id)
            if row.state in OPEN_STATES or not row.version:
                raise Conflict(
                    f"analysis {analysis_id} is {row.state.value} at version {row.version}: nothing can be corrected",
                    remedy="wait until it has finished",
                    analysis_id=analysis_id,
                )
            if change.version != row.version:
                raise Outdated(
                    f"version {change.version} was put right, but {row.version} is the newest",
                    remedy="look at the newest version, and correct that",
                    version=str(row.version),
                )
            this = (versions.c.analysis_id == analysis_id, versions.c.version == row.version)
            stored = connection.execute(sa.select(versions.c.interpretation).where(*this)).scalar_one()
            now, number = self._clock(), row.version + 1
            made = _interpretation(stored, change)
            add_version(connection, analysis_id, number, NewVersion(PERSON, made), now)
            digest_rows.keep(connection, analysis_id, digest(made))
            update = analyses.update().where(analyses.c.analysis_id == analysis_id)
            connection.execute(update.values(version=number, update_time=now))
            kind = EventType.VERSION_ADDED
            self._log.append(connection, Happening(kind, tenant, analysis_id, row.document_id, row.state, number))
        self._log.announce()


def _interpretation(stored: bytes, change: Correction) -> bytes:
    message = analysis_pb2.Interpretation.FromString(stored)
    document = corrected(document_from_proto(message.document), change)
    message.document.CopyFrom(document_to_proto(document))
    message.markdown, message.summary = render(document), summarise(document)
    return message.SerializeToString(deterministic=True)


def _corrected(region: Region, page: int, texts: Mapping[str, str]) -> Region:
    """The region with the page's new texts by line id; exports and answers read a table's HTML, so that changes too."""
    changes = {at: texts[line.id] for at, line in enumerate(region.lines) if line.id in texts}
    if not changes:
        return region
    lines = tuple(_put_right(line, texts.get(line.id)) for line in region.lines)
    if not region.html:
        return replace(region, lines=lines)
    grid = put_right(from_html(region.html), [line.text for line in region.lines], changes)
    if grid is None:
        raise InputError(
            f"page {page}: of the lines put right in table {region.id} not all stand in one cell each",
            remedy="put right the lines that are one cell, or the fields read from the table",
            field="lines",
        )
    return replace(region, lines=lines, html=to_html(grid))


def _put_right(line: Line, text: str | None) -> Line:
    return line if text is None else replace(line, text=text, confidence=1.0, provenance=PERSON, trace=None)


def _fields(before: Sequence[Field], given: Sequence[Field]) -> tuple[Field, ...]:
    named = {field.name for field in given}
    kept = tuple(field for field in before if field.name not in named)
    return kept + tuple(replace(field, confidence=1.0) for field in given if field.value)


def _text(text: str, field: str) -> str:
    if len(text) > _LONGEST or any(unicodedata.category(character) == "Cc" for character in text):
        raise InputError(
            f"a text is longer than {_LONGEST} characters, or holds a control character",
            remedy="give one line of plain text",
            field=field,
        )
    return unicodedata.normalize("NFC", text)
