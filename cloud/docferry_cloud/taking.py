"""A submission becomes rows, in a transaction of the caller's. Its caller waits for this: every statement counts."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from docferry.errors import Conflict, DocferryError, NotFound, Overloaded
from docferry_cloud import digest_rows, places
from docferry_cloud.access import usage
from docferry_cloud.analysis_rows import COLUMNS, DIRECT_LEASE_S, MICROSECONDS
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.rows import AnalysisRow, Limits, PartRow, Submission, Taken, VersionRow
from docferry_cloud.schema import (
    WORK_STATES,
    EventType,
    State,
    analyses,
    digests,
    envelopes,
    parts,
    tombstones,
    versions,
)


def _of_request(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == sa.bindparam(name) for name in ("tenant", "device", "request_id"))


# Statements are built once: building them costs more than running them.
_EARLIER = sa.select(analyses.c.analysis_id, analyses.c.state, analyses.c.body_sha256).where(*_of_request(analyses))
_KNOWN = sa.select(
    sa.exists().where(*_of_request(analyses)).label("repeated"),
    sa.exists().where(*_of_request(tombstones)).label("deleted"),
)


def _queue(*states: State) -> sa.Select[Any]:
    """How many are in `states`, of all and of a tenant, and the turns in its lane: it reads the whole queue."""
    own = sa.func.count().filter(analyses.c.tenant == sa.bindparam("tenant"))
    counted = sa.select(sa.func.count().label("everyones"), own.label("own")).where(analyses.c.state.in_(states))
    counts, turns = counted.select_from(analyses).subquery("counts"), places.TURNS.subquery("turns")
    return sa.select(counts, turns).join_from(counts, turns, sa.true())


_QUEUE = {State.AWAITING_PARTS: _queue(State.AWAITING_PARTS), State.PENDING: _queue(*WORK_STATES)}
_WAITS = {State.AWAITING_PARTS: "wait for their parts", State.PENDING: "are unfinished"}


class Batch:
    """Submissions of one transaction: each is checked by itself, and the rows of all are written together.

    A statement's way to the database and back costs more than what it does there. After the last `take`, `write`.

    Args:
        now: The time of the transaction, in microseconds since 1970.
    """

    def __init__(self, connection: sa.Connection, log: EventLog, limits: Limits, now: int) -> None:
        self._connection = connection
        self._log = log
        self._limits = limits
        self._now = now
        self._taken: list[_Rows] = []
        self._written = 0
        self._queues: dict[tuple[State, str, int], tuple[sa.Row[Any], int]] = {}

    def take(self, new: Submission) -> Taken | DocferryError:
        """Take a submission, or say why not: what can be wrong with it is found before anything of it is written.

        What waits for its parts and what waits for work are bounded apart: neither shuts the other out.
        """
        state = State.AWAITING_PARTS if new.announced else State.PENDING
        request = {"tenant": new.caller.tenant, "device": new.caller.device, "request_id": new.request_id}
        if any(rows.request == request for rows in self._taken[self._written :]):
            # Sent twice at once: the first of them has to be seen.
            self.write()
        known = self._connection.execute(_KNOWN, request).one()
        queue, like = self._queue(state, new)
        of_tenant = [rows for rows in like if rows.seen.tenant == new.caller.tenant]
        try:
            if known.repeated:
                return _earlier(self._connection, request, new.body_sha256)
            if known.deleted:
                raise _buried(new.request_id)
            self._check_room(state, queue.everyones + len(like), queue.own + len(of_tenant))
            day = {"documents": self._limits.documents_per_day, "megabytes": self._limits.mb_per_day}
            # Last of all: it counts, and what is refused is not to be counted.
            usage.count(self._connection, new.caller.tenant, new.size, self._now, **day)
        except DocferryError as error:
            return error
        turn = 0
        if state is State.PENDING:
            served = [queue.served, *(rows.turn for rows in like if rows.new.lane == new.lane)]
            own = [queue.own_turn, *(rows.turn for rows in of_tenant if rows.new.lane == new.lane)]
            turn = places.next_of(min(filter(None, served), default=None), max(filter(None, own), default=None))
        seen = _seen(new, state, self._now, self._now + self._limits.retention_days * 86400 * MICROSECONDS)
        self._taken.append(_Rows(new, seen, request, turn))
        return Taken(seen.analysis_id, state, seen, places.place_of(new.lane, turn) if turn else 0)

    def write(self) -> None:
        """Write what was taken so far, with its events."""
        taken, self._written = self._taken[self._written :], len(self._taken)
        tables: dict[sa.Table, list[dict[str, Any]]] = {
            analyses: [_analysis(rows) for rows in taken],
            digests: [digest_rows.of_submission(rows.seen.analysis_id, rows.new, self._now) for rows in taken],
            envelopes: [{"analysis_id": rows.seen.analysis_id, "body": rows.new.body} for rows in taken],
            parts: [
                {"analysis_id": rows.seen.analysis_id, "position": position, **asdict(part)}
                for rows in taken
                for position, part in enumerate(rows.seen.parts)
            ],
            versions: [
                {"analysis_id": rows.seen.analysis_id, **asdict(version)}
                for rows in taken
                for version in rows.seen.versions
            ],
        }
        for table, values in tables.items():
            if values:
                self._connection.execute(table.insert(), values)
        self._log.append_all(self._connection, [_accepted(rows.seen) for rows in taken])

    def _queue(self, state: State, new: Submission) -> tuple[sa.Row[Any], list[_Rows]]:
        """The queue as it was when first asked for, once as it is long, and what was taken into it since."""
        key = (state, new.caller.tenant, new.lane)
        if key not in self._queues:
            row = self._connection.execute(_QUEUE[state], {"tenant": new.caller.tenant, "lane": new.lane}).one()
            self._queues[key] = (row, self._written)
        row, written = self._queues[key]
        return row, [rows for rows in self._taken[written:] if rows.seen.state is state]

    def _check_room(self, state: State, everyones: int, own: int) -> None:
        if everyones >= self._limits.queue:
            raise Overloaded(f"{self._limits.queue} analyses {_WAITS[state]} already", retry_after=5)
        if own >= self._limits.tenant:
            raise Overloaded(f"{self._limits.tenant} of this tenant's analyses {_WAITS[state]} already", retry_after=5)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A submission that is to be written: what is seen of it, and its turn in the queue."""

    new: Submission
    seen: AnalysisRow
    request: dict[str, str]
    turn: int


def _seen(new: Submission, state: State, now: int, expire_time: int) -> AnalysisRow:
    return AnalysisRow(
        analysis_id=str(uuid.uuid4()),
        tenant=new.caller.tenant,
        device=new.caller.device,
        request_id=new.request_id,
        document_id=new.document_id,
        state=state,
        file_name=new.file_name,
        effort=new.effort,
        route=new.route,
        traffic=new.traffic,
        version=1 if new.edge else 0,
        error=None,
        create_time=now,
        update_time=now,
        expire_time=expire_time,
        attempts=0,
        deadline=None if new.within_s is None else now + int(new.within_s * MICROSECONDS),
        pages_done=0,
        pages=0,
        parts=tuple(PartRow(part.part_id, part.announcement, part.size, part.sha256, 0) for part in new.announced),
        versions=(VersionRow(1, new.edge.engine, now, new.edge.interpretation),) if new.edge else (),
    )


def _analysis(rows: _Rows) -> dict[str, Any]:
    return {column.name: getattr(rows.seen, column.name) for column in COLUMNS} | {
        "body_sha256": rows.new.body_sha256,
        "lease_until": rows.seen.create_time + DIRECT_LEASE_S * MICROSECONDS,
        "lane": rows.new.lane,
        "turn": rows.turn,
    }


def _accepted(row: AnalysisRow) -> Happening:
    return Happening(EventType.ACCEPTED, row.tenant, row.analysis_id, row.document_id, row.state, row.version)


def _earlier(connection: sa.Connection, request: dict[str, str], body_sha256: bytes) -> Taken:
    row = connection.execute(_EARLIER, request).one()
    if row.body_sha256 != body_sha256:
        raise Conflict(
            f"request {request['request_id']} was used before with another envelope",
            remedy="send the stored bytes again, or make a new request id",
            request_id=request["request_id"],
            analysis_id=row.analysis_id,
        )
    return Taken(row.analysis_id, row.state)


def _buried(request_id: str) -> NotFound:
    return NotFound(
        f"the analysis of request {request_id} was deleted",
        remedy="to have the document read again, submit it under a new request id",
        request_id=request_id,
    )
