"""The truth about analyses: taking them in, moving their state, giving them out, deleting them.

Every change of state appends its event in the same transaction. Functions here block; callers on the event loop go
through `Database.run`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from docferry.errors import Conflict, DocferryError, NotFound, Overloaded, Unavailable
from docferry_cloud import blob_list, digest_rows, places, wanted
from docferry_cloud.access import usage
from docferry_cloud.analysis_rows import (
    COLUMNS,
    DIRECT_LEASE_S,
    MICROSECONDS,
    add_version,
    first,
    move,
    not_found,
    own,
    remove,
    whole,
)
from docferry_cloud.blobs import Blobs
from docferry_cloud.database import Clock, Database
from docferry_cloud.digest import digest
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.rows import (
    AnalysisRow,
    Caller,
    Limits,
    NewPart,
    Submission,
    Taken,
    VersionRow,
    WantRow,
)
from docferry_cloud.schema import (
    OPEN_STATES,
    WORK_STATES,
    EventType,
    State,
    analyses,
    chunks,
    envelopes,
    parts,
    tombstones,
    versions,
)

# Statements of every submission are built once: building them costs more than running them.
_REQUEST = (
    analyses.c.tenant == sa.bindparam("tenant"),
    analyses.c.device == sa.bindparam("device"),
    analyses.c.request_id == sa.bindparam("request_id"),
)
_EARLIER = sa.select(analyses.c.analysis_id, analyses.c.state, analyses.c.body_sha256).where(*_REQUEST)
_BURIED = sa.select(tombstones.c.request_id).where(
    tombstones.c.tenant == sa.bindparam("tenant"),
    tombstones.c.device == sa.bindparam("device"),
    tombstones.c.request_id == sa.bindparam("request_id"),
)
_COUNTED = sa.select(sa.func.count(), sa.func.count().filter(analyses.c.tenant == sa.bindparam("tenant"))).select_from(
    analyses
)
_WAITING = _COUNTED.where(analyses.c.state == State.AWAITING_PARTS)
_UNFINISHED = _COUNTED.where(analyses.c.state.in_(WORK_STATES))


class Store:
    """Analyses in one database.

    Args:
        blobs: Where large parts have gone.
    """

    def __init__(
        self, database: Database, log: EventLog, blobs: Blobs, limits: Limits, clock: Clock | None = None
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._log = log
        self._limits = limits
        self._clock = clock or database.now

    def take(self, new: Submission) -> Taken:
        """Store a submission and its first event; durable on return. The same request gives the same analysis.

        Raises:
            Conflict: The request id was used with another body.
            NotFound: The request's analysis was deleted.
            Overloaded: The queue is full, for all or for this tenant.
            StorageFull: The disk is full.
        """
        (taken,) = self.take_many([new])
        if isinstance(taken, DocferryError):
            raise taken
        return taken

    def take_many(self, news: Sequence[Submission]) -> list[Taken | DocferryError]:
        """The same for several in one transaction; what is wrong with one of them is its own outcome.

        Raises:
            StorageFull: The disk is full.
            Unavailable: The database is away.
        """
        self._database.check_space()
        with self._database.write() as connection:
            outcomes = [self._take(connection, new) for new in news]
        self._log.announce()
        return outcomes

    def get(self, tenant: str, *, analysis_id: str = "", document_id: str = "", version: int = 0) -> AnalysisRow:
        """One analysis with everything, see `whole`, or with one version alone; by document the newest.

        Raises:
            NotFound: This tenant has none, or it has no such version.
        """
        with self._database.read() as connection:
            if analysis_id:
                return whole(connection, own(connection, tenant, analysis_id), version=version)
            of_document = (analyses.c.tenant == tenant, analyses.c.document_id == document_id)
            query = sa.select(*COLUMNS).where(*of_document).order_by(analyses.c.create_time.desc())
            row = first(connection, query.limit(1))
            if row is None:
                raise not_found(document_id)
            return whole(connection, row, version=version)

    def cancel(self, tenant: str, analysis_id: str) -> AnalysisRow:
        """Cancel an analysis that is not finished; a finished one stays as it is.

        Raises:
            NotFound: This tenant has no such analysis.
        """
        with self._database.write() as connection:
            row = own(connection, tenant, analysis_id)
            if row.state in OPEN_STATES:
                move(connection, self._log, row, State.CANCELLED, self._clock())
        self._log.announce()
        return self.get(tenant, analysis_id=analysis_id)

    def delete(self, tenant: str, analysis_id: str) -> list[str]:
        """Delete an analysis and all that was received or made for it.

        Gives the names of its objects that nobody holds any more: `BlobList.clear` deletes them.

        Raises:
            NotFound: This tenant has no such analysis.
        """
        with self._database.write() as connection:
            row = own(connection, tenant, analysis_id)
            released = remove(connection, self._log, row, self._clock(), self._limits.retention_days)
        self._database.forget_deleted()
        self._log.announce()
        return released

    def envelope(self, analysis_id: str) -> tuple[bytes, dict[str, bytes]] | None:
        """The envelope's bytes and the supplied parts' by id; None if the analysis was deleted.

        Raises:
            Unavailable: The object store is away, or lacks an object that it should hold.
        """
        supplied: dict[str, list[bytes]] = {}
        with self._database.read() as connection:
            query = sa.select(envelopes.c.body).where(envelopes.c.analysis_id == analysis_id)
            body = connection.execute(query).scalar_one_or_none()
            if body is None:
                return None
            pieces = sa.select(chunks.c.part_id, chunks.c.data).where(chunks.c.analysis_id == analysis_id)
            for part_id, data in connection.execute(pieces.order_by(chunks.c.part_id, chunks.c.start)):
                supplied.setdefault(part_id, []).append(data)
            stored = blob_list.names(connection, analysis_id)
        for part_id, name in stored.items():
            data = self._blobs.get(name)
            if data is None:
                self._check_deleted(analysis_id, part_id)
                return None
            supplied[part_id] = [data]
        return body, {part_id: b"".join(data) for part_id, data in supplied.items()}

    def _check_deleted(self, analysis_id: str, part_id: str) -> None:
        """An object that is not there must have gone with its analysis."""
        with self._database.read() as connection:
            if part_id in blob_list.names(connection, analysis_id):
                raise Unavailable(
                    f"part {part_id} of analysis {analysis_id} is not in the object store",
                    remedy="let every process name the same data.blobs, and restore what was lost there",
                )

    def asked(self, analysis_id: str) -> tuple[WantRow, ...]:
        """Everything that was wanted of the device about an analysis, in the order in which it was raised."""
        with self._database.read() as connection:
            return wanted.of_analysis(connection, analysis_id)

    def newest(self, analysis_id: str) -> VersionRow | None:
        """The newest version with its content; None if there is none."""
        columns = (versions.c.version, versions.c.engine, versions.c.create_time, versions.c.interpretation)
        query = sa.select(*columns).where(versions.c.analysis_id == analysis_id)
        with self._database.read() as connection:
            row = connection.execute(query.order_by(versions.c.version.desc()).limit(1)).mappings().first()
            return None if row is None else VersionRow(**row)

    def _take(self, connection: sa.Connection, new: Submission) -> Taken | DocferryError:
        """Take one, or say why not: everything that can be wrong is found before anything of it is written."""
        state = State.AWAITING_PARTS if new.announced else State.PENDING
        try:
            before = _earlier(connection, new.caller, new.request_id, new.body_sha256)
            if before is not None:
                return before
            self._check_room(connection, new.caller.tenant, state)
            day = {"documents": self._limits.documents_per_day, "megabytes": self._limits.mb_per_day}
            # Last of all: it counts, and what is refused is not to be counted.
            usage.count(connection, new.caller.tenant, new.size, self._clock(), **day)
        except DocferryError as error:
            return error
        analysis_id = str(uuid.uuid4())
        self._insert(connection, analysis_id, state, new)
        version = 1 if new.edge else 0
        happening = Happening(EventType.ACCEPTED, new.caller.tenant, analysis_id, new.document_id, state, version)
        self._log.append(connection, happening)
        return Taken(analysis_id, state, new=True)

    def _check_room(self, connection: sa.Connection, tenant: str, state: State) -> None:
        """What waits for its parts and what waits for work are bounded apart: neither shuts the other out."""
        awaiting = state is State.AWAITING_PARTS
        what = "wait for their parts" if awaiting else "are unfinished"
        everyones, own = connection.execute(_WAITING if awaiting else _UNFINISHED, {"tenant": tenant}).one()
        if everyones >= self._limits.queue:
            raise Overloaded(f"{self._limits.queue} analyses {what} already", retry_after=5)
        if own >= self._limits.tenant:
            raise Overloaded(f"{self._limits.tenant} of this tenant's analyses {what} already", retry_after=5)

    def _insert(self, connection: sa.Connection, analysis_id: str, state: State, new: Submission) -> None:
        now = self._clock()
        row = {
            "analysis_id": analysis_id,
            "tenant": new.caller.tenant,
            "device": new.caller.device,
            "request_id": new.request_id,
            "document_id": new.document_id,
            "body_sha256": new.body_sha256,
            "state": state,
            "file_name": new.file_name,
            "effort": new.effort,
            "route": new.route,
            "traffic": new.traffic,
            "version": 1 if new.edge else 0,
            "create_time": now,
            "update_time": now,
            "expire_time": now + self._limits.retention_days * 86400 * MICROSECONDS,
            "attempts": 0,
            "lease_until": now + DIRECT_LEASE_S * MICROSECONDS,
            "lane": new.lane,
            "turn": places.next_turn(connection, new.caller.tenant, new.lane) if state is State.PENDING else 0,
            "deadline": None if new.within_s is None else now + int(new.within_s * MICROSECONDS),
        }
        connection.execute(analyses.insert(), row)
        digest_rows.insert(connection, analysis_id, new, now)
        connection.execute(envelopes.insert(), {"analysis_id": analysis_id, "body": new.body})
        if new.announced:
            rows = [_part_values(analysis_id, position, part) for position, part in enumerate(new.announced)]
            connection.execute(parts.insert(), rows)
        if new.edge is not None:
            add_version(connection, analysis_id, 1, new.edge, now)
            digest_rows.keep(connection, analysis_id, digest(new.edge.interpretation))


def _earlier(connection: sa.Connection, caller: Caller, request_id: str, body_sha256: bytes) -> Taken | None:
    request = {"tenant": caller.tenant, "device": caller.device, "request_id": request_id}
    row = connection.execute(_EARLIER, request).one_or_none()
    if row is None:
        _check_not_deleted(connection, caller, request_id)
        return None
    if row.body_sha256 != body_sha256:
        raise Conflict(
            f"request {request_id} was used before with another envelope",
            remedy="send the stored bytes again, or make a new request id",
            request_id=request_id,
            analysis_id=row.analysis_id,
        )
    return Taken(row.analysis_id, row.state, new=False)


def _check_not_deleted(connection: sa.Connection, caller: Caller, request_id: str) -> None:
    request = {"tenant": caller.tenant, "device": caller.device, "request_id": request_id}
    if connection.execute(_BURIED, request).first() is not None:
        raise NotFound(
            f"the analysis of request {request_id} was deleted",
            remedy="to have the document read again, submit it under a new request id",
            request_id=request_id,
        )


def _part_values(analysis_id: str, position: int, part: NewPart) -> dict[str, Any]:
    return {
        "analysis_id": analysis_id,
        "part_id": part.part_id,
        "position": position,
        "announcement": part.announcement,
        "size": part.size,
        "sha256": part.sha256,
        "received": 0,
    }
