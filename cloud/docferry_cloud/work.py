"""Who works on which analysis: claims, outcomes, and what a dead process has left behind.

A claim is the move to RUNNING with an owner; an outcome counts only from the owner, so that a body that runs twice
ends in one version and one event.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from google.rpc import status_pb2

from docferry.errors import EngineError
from docferry.status import status_of
from docferry_cloud import deepen_list, digest_rows, places, wanted
from docferry_cloud.analysis_rows import COLUMNS, MICROSECONDS, add_version, fail, first, move, too_late
from docferry_cloud.database import Clock, Database
from docferry_cloud.digest import digest
from docferry_cloud.engine import Want
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.rows import NewVersion
from docferry_cloud.schema import EventType, State, analyses, versions, workers
from docferry_cloud.turns import Turns
from docferry_cloud.want_list import new_want

MAX_ATTEMPTS = 3
"""How often work on one analysis may begin alone: a document that kills the process must not do so for ever."""
SUSPECT = "suspect"
"""The owner of a PENDING analysis that ran when a process died: it, or one beside it, may have killed that process."""
MAX_LEASE_S = 60
"""Longer than any lease or wait that this module is asked for."""
ALONE_PATIENCE_S = 60.0
"""How long a suspect waits for the others to end."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Leave to work on one analysis. `attempt` counts from 1; `waited_s` is how long it has waited for its first."""

    analysis_id: str
    document_id: str
    tenant: str
    effort: int
    attempt: int
    waited_s: float


class WorkList:
    """The analyses that wait for work or are being worked on.

    Args:
        owner: The executor id of this process.

    Attributes:
        turns: Of all that works in this process.
    """

    def __init__(self, database: Database, log: EventLog, owner: str, clock: Clock | None = None) -> None:
        self._database = database
        self._log = log
        self.owner = owner
        self._clock = clock or database.now
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        # When work on it began here, by a clock that nobody sets.
        self._begun: dict[str, float] = {}
        self.turns = Turns()

    @contextmanager
    def claimed(self, analysis_id: str) -> Iterator[Claim | None]:
        """A claim for the length of the block; if it ends without an outcome, `recover` sets it free.

        One that ran when a process died gets its turn while nothing else runs here: if it is not the culprit it
        ends well, and if it is, it takes no other along.
        """
        self._hold(analysis_id, 1)
        try:
            if self._is_suspect(analysis_id):
                with self.turns.alone(ALONE_PATIENCE_S) as free:
                    yield self.claim(analysis_id, alone=True) if free else None
            else:
                with self.turns.beside():
                    yield self.claim(analysis_id)
        finally:
            self._begun.pop(analysis_id, None)
            self._hold(analysis_id, -1)

    def claim(self, analysis_id: str, *, alone: bool = False) -> Claim | None:
        """Take a PENDING analysis for this process; None if there is nothing to do.

        One whose work was begun more than `MAX_ATTEMPTS` times without an outcome fails here, and one that nobody
        waits for any more.

        Args:
            alone: Nothing else runs in this process; a suspect is not to be had otherwise.
        """
        with self._database.write() as connection:
            query = sa.select(*COLUMNS).where(analyses.c.analysis_id == analysis_id, analyses.c.state == State.PENDING)
            row = first(connection, query)
            if row is None:
                return None
            if not alone and self._suspected(connection, analysis_id):
                return None
            if row.deadline is not None and row.deadline <= self._clock():
                fail(connection, self._log, row, status_of(too_late()), self._clock())
            # The first counted attempt may have died of a neighbour's document; those after a crash were made alone.
            elif row.attempts <= MAX_ATTEMPTS:
                change = analyses.update().where(analyses.c.analysis_id == analysis_id)
                now = self._clock()
                # The deadline is for the beginning.
                values = {"state": State.RUNNING, "owner": self.owner, "attempts": row.attempts + 1, "deadline": None}
                values |= {"pages_done": 0, "pages": 0}
                connection.execute(change.values(values | {"update_time": now}))
                waited_s = (now - row.update_time) / MICROSECONDS
                self._begun[analysis_id] = time.monotonic()
                return Claim(analysis_id, row.document_id, row.tenant, row.effort, row.attempts + 1, waited_s)
            else:
                error = EngineError(
                    f"the service stopped {row.attempts} times while it read this document",
                    remedy="send another picture of it; the operator finds the cause in the log",
                )
                fail(connection, self._log, row, status_of(error), self._clock())
        self._log.announce()
        return None

    def read_before(self, analysis_id: str, key: bytes, engines: Collection[str]) -> tuple[str, NewVersion] | None:
        """Another of the tenant's analyses that finished with this content, and what one of the engines made of it."""
        tenant = sa.select(analyses.c.tenant).where(analyses.c.analysis_id == analysis_id).scalar_subquery()
        same = (analyses.c.tenant == tenant, analyses.c.content_key == key, analyses.c.state == State.SUCCEEDED)
        query = (
            sa.select(analyses.c.analysis_id, versions.c.engine, versions.c.interpretation)
            .join(versions, versions.c.analysis_id == analyses.c.analysis_id)
            .where(*same, versions.c.engine.in_(engines))
            .order_by(versions.c.create_time.desc())
        )
        with self._database.read() as connection:
            row = connection.execute(query.limit(1)).one_or_none()
            return None if row is None else (row.analysis_id, NewVersion(row.engine, row.interpretation))

    def place(self, analysis_id: str) -> int:
        """Its place in the queue, see `places`."""
        with self._database.read() as connection:
            return places.place(connection, analysis_id)

    def is_ours(self, analysis_id: str) -> bool:
        """Whether this process still is to finish the analysis: not cancelled, deleted or taken over."""
        with self._database.read() as connection:
            return connection.execute(self._running(analysis_id)).first() is not None

    def progress(self, analysis_id: str, done: int, pages: int) -> None:
        """Store and tell how many pages have been read, if the analysis is still ours."""
        with self._database.write() as connection:
            row = first(connection, self._running(analysis_id))
            if row is None:
                return
            change = analyses.update().where(analyses.c.analysis_id == analysis_id)
            connection.execute(change.values(pages_done=done, pages=pages, update_time=self._clock()))
            kind, state = EventType.PROGRESS, State.RUNNING
            told = Happening(kind, row.tenant, analysis_id, row.document_id, state, row.version, done, pages)
            self._log.append(connection, told)
        self._log.announce()

    def finish(
        self,
        analysis_id: str,
        version: NewVersion,
        content_key: bytes | None = None,
        *,
        deepen_in_s: float | None = None,
    ) -> bool:
        """Store the version and the SUCCEEDED event, if the analysis is still ours.

        Args:
            content_key: Under which the same content finds this answer; None if it is to be read anew.
            deepen_in_s: When the full model is to add a version of its own; None if it has nothing to add.
        """
        of, work_ms = digest(version.interpretation), self._worked_ms(analysis_id)
        with self._database.write() as connection:
            row = first(connection, self._running(analysis_id))
            if row is None:
                return False
            now, number = self._clock(), row.version + 1
            add_version(connection, analysis_id, number, version, now)
            digest_rows.keep(connection, analysis_id, of, work_ms)
            change = analyses.update().where(analyses.c.analysis_id == analysis_id)
            connection.execute(change.values(version=number, content_key=content_key))
            if deepen_in_s is not None:
                deepen_list.add(connection, analysis_id, now + int(deepen_in_s * MICROSECONDS))
            move(connection, self._log, replace(row, version=number), State.SUCCEEDED, now)
        self._log.announce()
        return True

    def ask(self, analysis_id: str, version: NewVersion, asked: Sequence[Want], patience_s: float) -> bool:
        """Store what is known so far as a version, and what the device shall still send, if the analysis is still ours.

        It waits in its row, not here: `supply`, a refusal or the sweeper at the deadline make it PENDING again.
        """
        of, work_ms = digest(version.interpretation), self._worked_ms(analysis_id)
        with self._database.write() as connection:
            row = first(connection, self._running(analysis_id))
            if row is None:
                return False
            now, number = self._clock(), row.version + 1
            expire_time = now + int(patience_s * MICROSECONDS)
            add_version(connection, analysis_id, number, version, now)
            digest_rows.keep(connection, analysis_id, of, work_ms)
            change = analyses.update().where(analyses.c.analysis_id == analysis_id)
            values = {"state": State.AWAITING_PARTS, "owner": None, "attempts": 0, "version": number}
            connection.execute(change.values(values | {"update_time": now}))
            kind, state = EventType.VERSION_ADDED, State.AWAITING_PARTS
            self._log.append(connection, Happening(kind, row.tenant, analysis_id, row.document_id, state, number))
            messages = [new_want(want.page, want.box, want.scale, want.why, expire_time) for want in asked]
            wanted.insert(connection, row, messages, blocking=True, now=now, expire_time=expire_time)
        self._log.announce()
        return True

    def fail(self, analysis_id: str, error: status_pb2.Status) -> bool:
        """Store why it failed for good and the FAILED event, if the analysis is still ours."""
        with self._database.write() as connection:
            row = first(connection, self._running(analysis_id))
            if row is None:
                return False
            fail(connection, self._log, row, error, self._clock())
        self._log.announce()
        return True

    def release(self, analysis_id: str, *, wait_s: float = 0.0, counts: bool) -> None:
        """Give a claim back, to be taken up again after `wait_s`; `counts` says whether the attempt does."""
        change = analyses.update().where(
            analyses.c.analysis_id == analysis_id,
            analyses.c.state == State.RUNNING,
            analyses.c.owner == self.owner,
        )
        with self._database.write() as connection:
            connection.execute(
                change.values(
                    state=State.PENDING,
                    owner=None,
                    attempts=analyses.c.attempts if counts else analyses.c.attempts - 1,
                    lease_until=self._clock() + int(wait_s * MICROSECONDS),
                )
            )

    def announce_alive(self, lease_s: float) -> None:
        """Renew this process's lease: until then nobody takes its work over."""
        until = self._clock() + int(lease_s * MICROSECONDS)
        with self._database.write() as connection:
            change = workers.update().where(workers.c.executor_id == self.owner)
            if connection.execute(change.values(lease_until=until)).rowcount == 0:
                connection.execute(workers.insert().values(executor_id=self.owner, lease_until=until))

    def announce_gone(self) -> None:
        """End this process's lease; what it left RUNNING is free at once."""
        with self._database.write() as connection:
            connection.execute(workers.delete().where(workers.c.executor_id == self.owner))

    def living(self) -> frozenset[str]:
        """The executor ids whose lease holds."""
        query = sa.select(workers.c.executor_id).where(sa.not_(_over(workers.c.lease_until, self._clock())))
        with self._database.read() as connection:
            return frozenset(connection.execute(query).scalars())

    def take_over(self) -> int:
        """Set what dead processes left RUNNING back to PENDING, as suspects, and forget these; gives how many."""
        with self._database.write() as connection:
            now = self._clock()
            connection.execute(workers.delete().where(_over(workers.c.lease_until, now)))
            alive = sa.select(workers.c.executor_id)
            change = analyses.update().where(analyses.c.state == State.RUNNING, analyses.c.owner.not_in(alive))
            return connection.execute(change.values(state=State.PENDING, owner=SUSPECT, lease_until=0)).rowcount

    def recover(self) -> int:
        """Set back to PENDING what is RUNNING here by its row but not in fact: its outcome could not be stored."""
        query = sa.select(analyses.c.analysis_id).where(
            analyses.c.state == State.RUNNING, analyses.c.owner == self.owner
        )
        with self._database.read() as connection:
            running = set(connection.execute(query).scalars())
        with self._lock:
            lost = running - set(self._held)
        for analysis_id in lost:
            self.release(analysis_id, counts=True)
        return len(lost)

    def lease_waiting(self, lease_s: float, limit: int = 200, *, leased_too: bool = False) -> Sequence[str]:
        """Ids of PENDING analyses that nobody has looked after for a while, now leased to the caller.

        `leased_too` takes also those that someone else may be looking after; at a start their process may be gone.
        """
        with self._database.write() as connection:
            now = self._clock()
            query = sa.select(analyses.c.analysis_id).where(analyses.c.state == State.PENDING)
            if not leased_too:
                query = query.where(_over(analyses.c.lease_until, now))
            order = (analyses.c.lane, analyses.c.turn, analyses.c.create_time)
            ids = connection.execute(query.order_by(*order).limit(limit)).scalars().all()
            if ids:
                change = analyses.update().where(analyses.c.analysis_id.in_(ids))
                connection.execute(change.values(lease_until=now + int(lease_s * MICROSECONDS)))
        return ids

    def _worked_ms(self, analysis_id: str) -> int:
        """How long this process has worked on it since its claim."""
        begun = self._begun.get(analysis_id)
        return 0 if begun is None else round((time.monotonic() - begun) * 1000)

    def _hold(self, analysis_id: str, change: int) -> None:
        with self._lock:
            self._held[analysis_id] += change
            # Drops what is at zero.
            self._held = +self._held

    def _running(self, analysis_id: str) -> sa.Select[Any]:
        return sa.select(*COLUMNS).where(
            analyses.c.analysis_id == analysis_id,
            analyses.c.state == State.RUNNING,
            analyses.c.owner == self.owner,
        )

    def _is_suspect(self, analysis_id: str) -> bool:
        with self._database.read() as connection:
            return self._suspected(connection, analysis_id)

    def _suspected(self, connection: sa.Connection, analysis_id: str) -> bool:
        query = sa.select(analyses.c.owner).where(
            analyses.c.analysis_id == analysis_id, analyses.c.state == State.PENDING
        )
        return connection.execute(query).scalar_one_or_none() == SUSPECT


def _over(lease_until: sa.ColumnElement[int], now: int) -> sa.ColumnElement[bool]:
    """Whether a lease is over; one that ends too far ahead was taken by a clock that was wrong."""
    return sa.or_(lease_until <= now, lease_until > now + MAX_LEASE_S * MICROSECONDS)
