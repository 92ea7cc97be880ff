"""The bytes of announced and of wanted parts: in order, resumable, checked at the end; and given out again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from docferry.channel import MAX_CHUNK_BYTES
from docferry.envelope import MAX_PART_BYTES, part_name
from docferry.errors import Conflict, DocferryError, EnvelopeError, EnvelopeTooLarge, NotFound
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import envelope_pb2 as envelope_pb
from docferry_cloud import blob_list, digest_rows, wanted
from docferry_cloud.analysis_rows import DIRECT_LEASE_S, MICROSECONDS, own, part_rows
from docferry_cloud.blobs import Blobs
from docferry_cloud.database import Clock, Database
from docferry_cloud.event_log import EventLog
from docferry_cloud.pictures import check_picture, is_picture, media_type
from docferry_cloud.rows import AnalysisRow, Caller, PartRow, WantRow
from docferry_cloud.schema import State, WantState, analyses, chunks, envelopes, parts
from docferry_cloud.want_list import wants_changed

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


def supply(database: Database, log: EventLog, chunk: Chunk, caller: Caller, clock: Clock | None = None) -> Progress:
    """Store the new bytes of a chunk; when the last part is whole the analysis is PENDING. Durable on return.

    The size and hash of a part that was asked for are those of its first chunk.

    Bytes that were received before are skipped; where that leaves too few, nothing is stored. A part whose hash is
    wrong at the end is dropped: the answer then says that 0 bytes were received.

    Raises:
        NotFound: This tenant has no such analysis.
        EnvelopeError: The part is not wanted of this device, differs from the announcement, or bytes before these are
            missing (the metadata's `received` says where to go on).
        Conflict: The analysis was cancelled or has failed, or nobody waits for the part any more.
        UnreadableImage, ImageTooLarge: The part is whole, but a picture that cannot be used; it was dropped.
    """
    check_chunk(chunk)
    database.check_space()
    with database.write() as connection:
        outcome = _take(connection, log, chunk, caller, (clock or database.now)())
    # Raised only here, so that the part's drop is not rolled back.
    if isinstance(outcome, DocferryError):
        raise outcome
    if outcome.received == chunk.total_size:
        log.announce()
    return outcome


def find_part(database: Database, tenant: str, analysis_id: str, part_id: str) -> envelope_pb.Part:
    """A part that is here; with its bytes if it lay in the envelope, else they are to be read by `piece`.

    Raises:
        NotFound: This tenant has no such analysis, or there is no such part, or not all of it.
    """
    with database.read() as connection:
        own(connection, tenant, analysis_id)
        for row in part_rows(connection, analysis_id):
            if row.part_id == part_id and row.received == row.size:
                return envelope_pb.Part.FromString(row.announcement)
        query = sa.select(envelopes.c.body).where(envelopes.c.analysis_id == analysis_id)
        envelope = envelope_pb.Envelope.FromString(connection.execute(query).scalar_one())
    inline = (part for part in envelope.parts if part.part_id == part_id and part.data)
    found = next(inline, None)
    if found is None:
        raise NotFound(f"part {part_id[:64]!r} is not here", remedy="ask for it by RequestPart", part_id=part_id[:64])
    return found


def piece(database: Database, store: Blobs, analysis_id: str, part_id: str, start: int) -> bytes:
    """The bytes of a supplied part from `start` on, as far as one message goes; empty at the end, or once deleted.

    Raises:
        Unavailable: The object store is away.
    """
    query = sa.select(chunks.c.data).where(
        chunks.c.analysis_id == analysis_id, chunks.c.part_id == part_id, chunks.c.start == start
    )
    this = (parts.c.analysis_id == analysis_id, parts.c.part_id == part_id)
    with database.read() as connection:
        data = connection.execute(query).scalar_one_or_none()
        name = blob_list.names(connection, analysis_id).get(part_id)
        size = connection.execute(sa.select(parts.c.size).where(*this)).scalar_one_or_none() or 0
    if data is None and name is not None and start < size:
        data = store.piece(name, start, min(MAX_CHUNK_BYTES, size - start))
    return data or b""


def _take(connection: sa.Connection, log: EventLog, chunk: Chunk, caller: Caller, now: int) -> Progress | DocferryError:
    row = own(connection, caller.tenant, chunk.analysis_id)
    want = _wanted(connection, chunk, caller)
    part = _announced(connection, chunk) if want is None else _begun(connection, chunk, want)
    if part.received == part.size:
        return Progress(part.received, row.state)
    _check_awaited(row, want)
    fresh = _fresh(chunk, part.received)
    received = part.received + len(fresh)
    if not fresh or (len(fresh) < MIN_CHUNK_BYTES and received < part.size):
        return Progress(part.received, row.state)
    _append(connection, chunk, part.received, fresh)
    if received == part.size:
        flaw = _flaw(connection, chunk, part)
        if flaw is not None:
            _drop(connection, chunk, want)
            return flaw if isinstance(flaw, DocferryError) else Progress(0, row.state)
    digest_rows.sent(connection, chunk.analysis_id, chunk.message_bytes)
    values: dict[str, Any] = {"update_time": now, "traffic": _counted(row.traffic, chunk, part.announcement)}
    connection.execute(analyses.update().where(analyses.c.analysis_id == chunk.analysis_id).values(**values))
    if received < part.size:
        return Progress(received, row.state)
    if want is not None:
        wanted.close(connection, want, WantState.SUPPLIED)
        if not want.blocking:
            log.append(connection, wants_changed(row))
    completed = wanted.resume(connection, row, now=now, lease_until=now + DIRECT_LEASE_S * MICROSECONDS)
    return Progress(received, State.PENDING if completed else row.state, completed)


def _wanted(connection: sa.Connection, chunk: Chunk, caller: Caller) -> WantRow | None:
    """The want that a chunk answers; None if the part is no want's of this device's."""
    want = wanted.find(connection, chunk.analysis_id, chunk.part_id)
    if want is not None and want.device != caller.device:
        raise _not_wanted(chunk)
    return want


def _check_awaited(row: AnalysisRow, want: WantRow | None) -> None:
    if want is not None and want.state is not WantState.OPEN:
        raise Conflict(f"part {want.part_id} is not wanted any more", remedy="stop sending", part_id=want.part_id)
    if (want is None or want.blocking) and row.state is not State.AWAITING_PARTS:
        raise Conflict(
            f"analysis {row.analysis_id} is {row.state.value}", remedy="stop sending", analysis_id=row.analysis_id
        )


def _begun(connection: sa.Connection, chunk: Chunk, want: WantRow) -> PartRow:
    """The part that answers a want: made by its first chunk, and made anew by a first chunk of other bytes."""
    known = {row.part_id: row for row in part_rows(connection, chunk.analysis_id)}
    part = known.get(chunk.part_id)
    if part is not None and ((part.size, part.sha256) == (chunk.total_size, chunk.sha256) or chunk.offset > 0):
        _check_same(chunk, part)
        return part
    if want.state is not WantState.OPEN:
        # Whatever these bytes are, `_check_awaited` is to refuse them.
        return PartRow(chunk.part_id, b"", 1, b"", 0)
    # Bytes that begin later cannot begin the part: this says where to go on.
    _fresh(chunk, 0)
    others = sum(row.size for row in known.values() if row.part_id != chunk.part_id)
    if not 0 < chunk.total_size <= MAX_PART_BYTES or others + chunk.total_size > wanted.MAX_WANTED_BYTES:
        raise EnvelopeTooLarge(
            f"part {chunk.part_id} has {chunk.total_size} bytes",
            remedy=f"all parts of an analysis together may have {wanted.MAX_WANTED_BYTES}",
            field="total_size",
        )
    if len(chunk.sha256) != 32:
        raise EnvelopeError(f"sha256 has {len(chunk.sha256)} bytes", remedy="send all 32", field="sha256")
    announcement = wanted.part_of(want)
    announcement.size, announcement.sha256 = chunk.total_size, chunk.sha256
    announcement.media_type = media_type(chunk.data, f"part {chunk.part_id}", "data")
    wanted.drop_bytes(connection, chunk.analysis_id, chunk.part_id)
    body = announcement.SerializeToString(deterministic=True)
    values = {"analysis_id": chunk.analysis_id, "part_id": chunk.part_id, "announcement": body, "received": 0}
    about = {"position": len(known), "size": chunk.total_size, "sha256": chunk.sha256}
    connection.execute(parts.insert().values(values | about))
    return PartRow(chunk.part_id, body, chunk.total_size, chunk.sha256, 0)


def _not_wanted(chunk: Chunk) -> EnvelopeError:
    return EnvelopeError(
        f"part {chunk.part_id[:64]!r} is not wanted", remedy="send the parts named in `wants`", field="part_id"
    )


def _announced(connection: sa.Connection, chunk: Chunk) -> PartRow:
    known = part_rows(connection, chunk.analysis_id)
    part = next((row for row in known if row.part_id == chunk.part_id), None)
    if part is None:
        raise _not_wanted(chunk)
    _check_same(chunk, part)
    return part


def _check_same(chunk: Chunk, part: PartRow) -> None:
    if part.size != chunk.total_size or part.sha256 != chunk.sha256:
        raise EnvelopeError(
            f"part {chunk.part_id} was announced with another size or hash",
            remedy="send the bytes that the envelope announced",
            field="sha256" if part.size == chunk.total_size else "total_size",
        )


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


def _drop(connection: sa.Connection, chunk: Chunk, want: WantRow | None) -> None:
    if want is not None:
        wanted.drop_bytes(connection, chunk.analysis_id, chunk.part_id)
        return
    connection.execute(chunks.delete().where(*_same_part(chunks, chunk)))
    connection.execute(parts.update().where(*_same_part(parts, chunk)).values(received=0))


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
