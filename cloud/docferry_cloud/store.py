"""The truth about analyses: taking them in, moving their state, giving them out, deleting them.

Every change of state appends its event in the same transaction. Functions here block; callers on the event loop go
through `Database.run`.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from docferry.errors import DocferryError, Unavailable
from docferry_cloud import blob_list, wanted
from docferry_cloud.analysis_rows import (
    COLUMNS,
    first,
    move,
    not_found,
    own,
    remove,
    whole,
)
from docferry_cloud.blobs import Blobs
from docferry_cloud.database import Clock, Database
from docferry_cloud.event_log import EventLog
from docferry_cloud.rows import (
    AnalysisRow,
    Limits,
    Submission,
    Taken,
    VersionRow,
    WantRow,
)
from docferry_cloud.schema import (
    OPEN_STATES,
    State,
    analyses,
    chunks,
    envelopes,
    versions,
)
from docferry_cloud.taking import Batch


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
            batch = Batch(connection, self._log, self._limits, self._clock())
            outcomes = [batch.take(new) for new in news]
            batch.write()
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
