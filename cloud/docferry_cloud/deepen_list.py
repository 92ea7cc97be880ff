"""Which finished analyses still wait for the full model: rows that outlive every process, retried until they are done.

An analysis is SUCCEEDED meanwhile: whoever waits has the fast answer, and the deep one is added to it as a version.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from docferry_cloud import digest_rows
from docferry_cloud.analysis_rows import COLUMNS, MICROSECONDS, add_version, first
from docferry_cloud.database import Clock, Database
from docferry_cloud.digest import digest
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.rows import NewVersion
from docferry_cloud.schema import EventType, State, analyses, deepenings, versions, workers

log = logging.getLogger(__name__)

MARK = "deep:"
"""Before the analysis's id it makes the id of this second workflow."""

_WAITS_S = (10.0, 30.0, 60.0, 300.0)
"""Before the second, third, ... attempt; the last one for ever, as the analysis itself comes to its end."""
MOST_FAILURES = 3
"""So often may the model fail on a document that it can be asked about, or the process die that reads it."""
SUSPECT = "suspect"
"""The owner of a row that was in work when its process died: it, or one beside it, may have killed that process."""


@dataclass(frozen=True, slots=True)
class DeepClaim:
    """Leave to deepen one analysis. `interpretation` is its newest version's, number `version`."""

    analysis_id: str
    document_id: str
    tenant: str
    effort: int
    version: int
    interpretation: bytes


class DeepenList:
    """The rows of one database. Methods block.

    Args:
        owner: The executor id of this process.
        waits_s: See `_WAITS_S`.
    """

    def __init__(
        self,
        database: Database,
        log: EventLog,
        owner: str,
        clock: Clock | None = None,
        waits_s: Sequence[float] = _WAITS_S,
    ) -> None:
        self._database = database
        self._log = log
        self._owner = owner
        self._clock = clock or database.now
        self._waits_s = tuple(waits_s)
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    def lease(self, lease_s: float, limit: int = 50) -> Sequence[str]:
        """Ids that are due and that nobody works on, left alone by others for `lease_s`."""
        held = self._in_hand()
        with self._database.write() as connection:
            now = self._clock()
            alive = sa.select(workers.c.executor_id).where(workers.c.executor_id != self._owner)
            # What bears our name and is not in hand was lost here: its end could not be stored.
            ours = deepenings.c.owner == self._owner
            free = sa.or_(deepenings.c.owner.is_(None), deepenings.c.owner.not_in(alive))
            due = (deepenings.c.due_time <= now, deepenings.c.analysis_id.not_in(held), free)
            query = sa.select(deepenings.c.analysis_id).where(*due).order_by(deepenings.c.due_time).limit(limit)
            ids = connection.execute(query).scalars().all()
            # Some may have been claimed since.
            held = self._in_hand()
            ids = [name for name in ids if name not in held]
            if ids:
                these = deepenings.update().where(deepenings.c.analysis_id.in_(ids))
                connection.execute(these.where(ours).values(owner=None, failures=deepenings.c.failures - 1))
                connection.execute(these.where(deepenings.c.owner.is_not(None)).values(owner=SUSPECT))
                connection.execute(these.values(due_time=now + int(lease_s * MICROSECONDS)))
        return ids

    def is_suspect(self, analysis_id: str) -> bool:
        """Whether a process has died over it, or over one beside it: it is to be read alone."""
        query = sa.select(deepenings.c.owner).where(deepenings.c.analysis_id == analysis_id)
        with self._database.read() as connection:
            return connection.execute(query).scalar_one_or_none() == SUSPECT

    @contextmanager
    def claimed(self, analysis_id: str, by: str, *, alone: bool = False) -> Iterator[DeepClaim | None]:
        """A claim for the length of the block, or None if there is nothing to do.

        Args:
            by: The engine whose version is to be added. A person who has put something right meanwhile has the last
                word: there is nothing to do then.
            alone: Nothing else runs in this process; a suspect is not to be had otherwise.
        """
        # Before the row bears our name: `lease` must not take it for lost.
        self._hold(analysis_id, 1)
        try:
            yield self._claim(analysis_id, by, alone=alone)
        finally:
            self._hold(analysis_id, -1)

    def is_ours(self, claim: DeepClaim) -> bool:
        """Whether a version is still to be added: not deleted, put right or taken over since the claim."""
        query = (
            sa.select(analyses.c.version)
            .join(deepenings, deepenings.c.analysis_id == analyses.c.analysis_id)
            .where(self._ours(claim.analysis_id), analyses.c.version == claim.version)
        )
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def finish(self, claim: DeepClaim, version: NewVersion, content_key: bytes | None) -> bool:
        """Add the version and its event, if nothing was added since the claim."""
        of = digest(version.interpretation)
        with self._database.write() as connection:
            row = first(connection, sa.select(*COLUMNS).where(analyses.c.analysis_id == claim.analysis_id))
            connection.execute(deepenings.delete().where(self._ours(claim.analysis_id)))
            if row is None or row.version != claim.version:
                return False
            now, number = self._clock(), row.version + 1
            add_version(connection, claim.analysis_id, number, version, now)
            digest_rows.keep(connection, claim.analysis_id, of)
            change = analyses.update().where(analyses.c.analysis_id == claim.analysis_id)
            connection.execute(change.values(version=number, update_time=now, content_key=content_key))
            told = Happening(EventType.VERSION_ADDED, row.tenant, claim.analysis_id, row.document_id, row.state, number)
            self._log.append(connection, told)
        self._log.announce()
        return True

    def put_off(self, claim: DeepClaim, *, failed: bool) -> None:
        """Give a claim back for later. `failed`: the model was asked and failed; not for ever, then."""
        with self._database.write() as connection:
            this = deepenings.c.analysis_id == claim.analysis_id
            row = connection.execute(sa.select(deepenings.c.attempts, deepenings.c.failures).where(this)).one_or_none()
            if row is None:
                return
            if failed and row.failures >= MOST_FAILURES:
                log.warning("the full model has failed %d times on this; its fast answer stays", row.failures)
                connection.execute(deepenings.delete().where(this))
                return
            wait = self._waits_s[min(row.attempts, len(self._waits_s) - 1)]
            values = {"due_time": self._clock() + int(wait * MICROSECONDS), "owner": None}
            # The claim has counted it: a process that dies comes to no such place.
            values |= {"attempts": row.attempts + 1, "failures": row.failures - (not failed)}
            connection.execute(deepenings.update().where(self._ours(claim.analysis_id)).values(values))

    def _claim(self, analysis_id: str, by: str, *, alone: bool) -> DeepClaim | None:
        with self._database.write() as connection:
            this = deepenings.c.analysis_id == analysis_id
            free: sa.ColumnElement[bool] = deepenings.c.owner.is_(None)
            if alone:
                free = sa.or_(free, deepenings.c.owner == SUSPECT)
            newest = (versions.c.analysis_id == analyses.c.analysis_id) & (versions.c.version == analyses.c.version)
            query = (
                sa.select(analyses, versions.c.engine, versions.c.interpretation, deepenings.c.failures)
                .join(deepenings, deepenings.c.analysis_id == analyses.c.analysis_id)
                .join(versions, newest)
                .where(this, analyses.c.state == State.SUCCEEDED, free)
            )
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            if row.engine in {by, "person"}:
                connection.execute(deepenings.delete().where(this))
                return None
            if row.failures >= MOST_FAILURES:
                log.warning("analysis %s: %d readings by the full model came to no end", analysis_id, row.failures)
                connection.execute(deepenings.delete().where(this))
                return None
            connection.execute(deepenings.update().where(this).values(owner=self._owner, failures=row.failures + 1))
            return DeepClaim(analysis_id, row.document_id, row.tenant, row.effort, row.version, row.interpretation)

    def _in_hand(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._held)

    def _hold(self, analysis_id: str, change: int) -> None:
        with self._lock:
            self._held[analysis_id] += change
            # Drops what is at zero.
            self._held = +self._held

    def _ours(self, analysis_id: str) -> sa.ColumnElement[bool]:
        return sa.and_(deepenings.c.analysis_id == analysis_id, deepenings.c.owner == self._owner)


def add(connection: sa.Connection, analysis_id: str, due_time: int) -> None:
    """Let an analysis that is finishing wait for the full model, from `due_time` on."""
    row = {"analysis_id": analysis_id, "due_time": due_time, "attempts": 0, "failures": 0}
    connection.execute(deepenings.insert().values(row))
