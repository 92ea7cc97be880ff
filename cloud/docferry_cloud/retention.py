"""What comes to its end by itself: results past their time, parts that never come, work that nobody waits for."""

from __future__ import annotations

import sqlalchemy as sa

from docferry.errors import EnvelopeError
from docferry.status import status_of
from docferry_cloud.analysis_rows import COLUMNS, MICROSECONDS, fail, remove, too_late
from docferry_cloud.database import Clock, Database
from docferry_cloud.event_log import EventLog
from docferry_cloud.rows import AnalysisRow
from docferry_cloud.schema import OPEN_STATES, State, analyses, sessions, tombstones

PARTS_WITHIN_S = 86400
"""How long an analysis waits for the next bytes of its parts."""


class Retention:
    """The ends of analyses in one database.

    Args:
        days: How long results are kept, and how long a deleted request is remembered.
    """

    def __init__(self, database: Database, log: EventLog, days: int, clock: Clock | None = None) -> None:
        self._database = database
        self._log = log
        self._days = days
        self._clock = clock or database.now

    def expire(self, limit: int = 100) -> list[str]:
        """Delete at most `limit` finished analyses whose time is over; gives their ids."""
        with self._database.write() as connection:
            now = self._clock()
            over = (analyses.c.expire_time <= now, analyses.c.state.not_in(OPEN_STATES))
            query = sa.select(*COLUMNS).where(*over).limit(limit)
            rows = [AnalysisRow(**row) for row in connection.execute(query).mappings()]
            connection.execute(tombstones.delete().where(tombstones.c.expire_time <= now))
            connection.execute(sessions.delete().where(sessions.c.expire_time <= now))
            for row in rows:
                remove(connection, self._log, row, now, self._days)
        if rows:
            self._database.forget_deleted()
            self._log.announce()
        return [row.analysis_id for row in rows]

    def give_up(self, limit: int = 100) -> list[str]:
        """Fail at most `limit` analyses whose parts have not come for `PARTS_WITHIN_S`; gives their ids."""
        now = self._clock()
        idle = (
            analyses.c.state == State.AWAITING_PARTS,
            analyses.c.update_time <= now - PARTS_WITHIN_S * MICROSECONDS,
        )
        with self._database.write() as connection:
            query = sa.select(*COLUMNS).where(*idle).limit(limit)
            rows = [AnalysisRow(**row) for row in connection.execute(query).mappings()]
            for row in rows:
                error = EnvelopeError(
                    f"nothing of the announced parts came for {PARTS_WITHIN_S // 3600} hours",
                    remedy="submit the document again under a new request id, and supply its parts",
                    field="parts",
                )
                fail(connection, self._log, row, status_of(error), now)
        if rows:
            self._log.announce()
        return [row.analysis_id for row in rows]

    def lapse(self, limit: int = 100) -> int:
        """Fail at most `limit` analyses whose callers wait no longer and whose work was not begun; gives how many."""
        waiting = analyses.c.state.in_((State.PENDING, State.AWAITING_PARTS))
        now = self._clock()
        query = sa.select(*COLUMNS).where(waiting, analyses.c.deadline <= now).limit(limit)
        with self._database.read() as connection:
            if connection.execute(query.limit(1)).first() is None:
                return 0
        with self._database.write() as connection:
            rows = [AnalysisRow(**row) for row in connection.execute(query).mappings()]
            for row in rows:
                fail(connection, self._log, row, status_of(too_late()), now)
        self._log.announce()
        return len(rows)
