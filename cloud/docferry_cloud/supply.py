"""The bytes of announced parts: in order, resumable, checked at the end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from docferry.channel import MAX_CHUNK_BYTES
from docferry.envelope import part_name
from docferry.errors import Conflict, DocferryError, EnvelopeError, EnvelopeTooLarge
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import envelope_pb2 as envelope_pb
from docferry_cloud.database import Clock, Database, wall_clock
from docferry_cloud.pictures import check_picture, is_picture
from docferry_cloud.rows import PartRow
from docferry_cloud.schema import State, analyses, chunks, parts
from docferry_cloud.store import DIRECT_LEASE_S, MICROSECONDS, own, part_rows

MIN_CHUNK_BYTES = 4096
"""Smallest chunk, but for the last of a part: each is a row and a transaction."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of one part and where they begin. `message_bytes` is the size of the message that carried them."""

    analysis_id: str
    part_id: str
    offset: int
    total_size: int
    sha256: bytes
    data: bytes
    message_bytes: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a part and its analysis have come; `completed` if this chunk was the last one missing."""

    received: int
    state: State
    completed: bool = False


def check_chunk(chunk: Chunk) -> None:
    """Check what needs no database.

    Raises:
        EnvelopeTooLarge: More bytes than one Supply may carry.
        EnvelopeError: No bytes, or too few that do not end the part.
    """
    if len(chunk.data) > MAX_CHUNK_BYTES:
        raise EnvelopeTooLarge(
            f"the chunk has {len(chunk.data)} bytes", remedy=f"send at most {MAX_CHUNK_BYTES}", field="data"
        )
    if not chunk.data:
        raise EnvelopeError("the chunk is empty", remedy="send the bytes from `received` on", field="data")
    if len(chunk.data) < MIN_CHUNK_BYTES and chunk.offset + len(chunk.data) < chunk.total_size:
        raise EnvelopeError(
            f"the chunk has {len(chunk.data)} bytes and does not end the part",
            remedy=f"send at least {MIN_CHUNK_BYTES}",
            field="data",
        )


def supply(database: Database, chunk: Chunk, tenant: str, clock: Clock = wall_clock) -> Progress:
    """Store the new bytes of a chunk; when the last part is whole the analysis is PENDING. Durable on return.

    Bytes that were received before are skipped; where that leaves too few, nothing is stored. A part whose hash is
    wrong at the end is dropped: the answer then says that 0 bytes were received.

    Raises:
        NotFound: This tenant has no such analysis.
        EnvelopeError: The part was not announced, differs from the announcement, or bytes before these are missing
            (the metadata's `received` says where to go on).
        Conflict: The analysis was cancelled or has failed.
        UnreadableImage, ImageTooLarge: The part is whole, but a picture that cannot be used; it was dropped.
    """
    check_chunk(chunk)
    database.check_space()
    with database.write() as connection:
        outcome = _take(connection, chunk, tenant, clock())
    # Raised only here, so that the part's drop is not rolled back.
    if isinstance(outcome, DocferryError):
        raise outcome
    return outcome


def _take(connection: sa.Connection, chunk: Chunk, tenant: str, now: int) -> Progress | DocferryError:
    row = own(connection, tenant, chunk.analysis_id)
    part = _announced(connection, chunk)
    if part.received == part.size:
        return Progress(part.received, row.state)
    if row.state is not State.AWAITING_PARTS:
        raise Conflict(
            f"analysis {chunk.analysis_id} is {row.state.value}",
            remedy="stop sending",
            analysis_id=chunk.analysis_id,
        )
    fresh = _fresh(chunk, part.received)
    received = part.received + len(fresh)
    if not fresh or (len(fresh) < MIN_CHUNK_BYTES and received < part.size):
        return Progress(part.received, row.state)
    _append(connection, chunk, part.received, fresh)
    if received == part.size:
        flaw = _flaw(connection, chunk, part)
        if flaw is not None:
            _drop(connection, chunk)
            return flaw if isinstance(flaw, DocferryError) else Progress(0, row.state)
    values: dict[str, Any] = {"update_time": now, "traffic": _counted(row.traffic, chunk, part.announcement)}
    completed = received == part.size and not _missing(connection, chunk.analysis_id)
    if completed:
        values |= {"state": State.PENDING, "lease_until": now + DIRECT_LEASE_S * MICROSECONDS}
    connection.execute(analyses.update().where(analyses.c.analysis_id == chunk.analysis_id).values(**values))
    return Progress(received, values.get("state", row.state), completed)


def _announced(connection: sa.Connection, chunk: Chunk) -> PartRow:
    known = part_rows(connection, chunk.analysis_id)
    part = next((row for row in known if row.part_id == chunk.part_id), None)
    if part is None:
        raise EnvelopeError(
            f"part {chunk.part_id[:64]!r} is not wanted", remedy="send the parts named in `wants`", field="part_id"
        )
    if part.size != chunk.total_size or part.sha256 != chunk.sha256:
        raise EnvelopeError(
            f"part {chunk.part_id} was announced with another size or hash",
            remedy="send the bytes that the envelope announced",
            field="sha256" if part.size == chunk.total_size else "total_size",
        )
    return part


def _fresh(chunk: Chunk, received: int) -> bytes:
    """The bytes of a chunk that are new."""
    if chunk.offset > received:
        raise EnvelopeError(
            f"part {chunk.part_id}: bytes {received}..{chunk.offset} are missing",
            remedy=f"go on from {received}",
            field="offset",
            received=str(received),
        )
    if chunk.offset + len(chunk.data) > chunk.total_size:
        raise EnvelopeError(
            f"part {chunk.part_id}: the chunk reaches beyond the announced {chunk.total_size} bytes",
            remedy="send what was announced",
            field="data",
        )
    return chunk.data[received - chunk.offset :]


def _append(connection: sa.Connection, chunk: Chunk, start: int, fresh: bytes) -> None:
    row = {"analysis_id": chunk.analysis_id, "part_id": chunk.part_id, "start": start, "data": fresh}
    connection.execute(chunks.insert().values(row))
    change = parts.update().where(*_same_part(parts, chunk))
    connection.execute(change.values(received=start + len(fresh)))


def _flaw(connection: sa.Connection, chunk: Chunk, part: PartRow) -> Literal["hash"] | DocferryError | None:
    """What is wrong with a part that has all its bytes."""
    query = sa.select(chunks.c.data).where(*_same_part(chunks, chunk)).order_by(chunks.c.start)
    data = b"".join(connection.execute(query).scalars())
    if hashlib.sha256(data).digest() != chunk.sha256:
        return "hash"
    if is_picture(envelope_pb.Part.FromString(part.announcement)):
        try:
            check_picture(data, f"part {chunk.part_id}", "data")
        except DocferryError as error:
            return error
    return None


def _drop(connection: sa.Connection, chunk: Chunk) -> None:
    connection.execute(chunks.delete().where(*_same_part(chunks, chunk)))
    connection.execute(parts.update().where(*_same_part(parts, chunk)).values(received=0))


def _missing(connection: sa.Connection, analysis_id: str) -> bool:
    query = sa.select(parts.c.part_id).where(parts.c.analysis_id == analysis_id, parts.c.received < parts.c.size)
    return connection.execute(query.limit(1)).first() is not None


def _same_part(table: sa.Table, chunk: Chunk) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return table.c.analysis_id == chunk.analysis_id, table.c.part_id == chunk.part_id


def _counted(traffic: bytes, chunk: Chunk, announcement: bytes) -> bytes:
    """The traffic account with this message: its bytes of the part under the part's kind, the rest under `frame`."""
    account = analysis_pb.Traffic.FromString(traffic)
    account.sent_bytes += chunk.message_bytes
    name = part_name(envelope_pb.Part.FromString(announcement).kind)
    for kind, size in ((name, len(chunk.data)), ("frame", chunk.message_bytes - len(chunk.data))):
        entry = next((part for part in account.parts if part.kind == kind), None)
        if entry is None:
            entry = account.parts.add(kind=kind)
        entry.bytes += size
    return account.SerializeToString(deterministic=True)
