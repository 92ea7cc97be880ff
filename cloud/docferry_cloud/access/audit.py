"""The audit log: who called what about which analysis, when, from where, and how it ended. Never content.

Entries are gathered and written together by one loop, so that a call costs no wait for the disk of its own. A process
that is killed loses the entries of its last `WRITE_S` seconds; one that is stopped loses none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from docferry.errors import DocferryError, InputError, Unavailable
from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.database import Database
from docferry_cloud.schema import audit

log = logging.getLogger(__name__)

WRITE_S = 0.5
MOST_WAITING = 10_000
"""Entries not yet written, beyond which calls are refused rather than made unrecorded."""
STRANGERS = 50
"""Refused calls without a valid key that are kept between two writes: a flood of them must not fill the disk, nor
take the room of customers' calls. The log says how many were left out."""
_TOGETHER = 500
_CLEAR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One call. `who` is a key's id, or `tenant/device` of a token from the settings, or what a stranger claimed."""

    time: int
    tenant: str
    who: str
    rpc: str
    analysis_id: str
    outcome: str
    peer: str


class Trail:
    """The audit log of one database."""

    def __init__(self, database: Database, days: int) -> None:
        self._database = database
        self._days = days
        self._waiting: deque[Entry] = deque()
        self._dropped = 0
        self._strangers = 0

    def check_room(self) -> None:
        """Before a call that is to be recorded.

        Raises:
            Unavailable: Nothing could be written for long.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise Unavailable("the audit log cannot be written", remedy="see the service's log, then try again")

    def note(self, entry: Entry) -> None:
        """Take an entry; of what strangers did, no more than `STRANGERS` between two writes."""
        if not entry.tenant:
            self._strangers += 1
            if self._strangers > STRANGERS:
                self._dropped += 1
                return
        if len(self._waiting) < 2 * MOST_WAITING:
            self._waiting.append(entry)
        else:
            self._dropped += 1

    async def run(self) -> None:
        """Write what comes and delete what is too old, for ever."""
        cleared = -_CLEAR_S
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(WRITE_S)
            self._strangers = 0
            await self.flush()
            if clock() - cleared >= _CLEAR_S:
                await self._database.run(self.clear)
                cleared = clock()

    async def flush(self) -> None:
        """Write what has come.

        Raises:
            DocferryError: The database is away; the entries wait on.
        """
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            writing = asyncio.ensure_future(self._database.run(self.write, batch))
            try:
                # Cancelled in the middle it would be written after all, and once more by `close`.
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await writing
                raise
            except InputError:
                # The database will never take one of them: it must not hold the others.
                await self._one_by_one(batch)
            except BaseException:
                self._waiting.extendleft(reversed(batch))
                raise
        if self._dropped:
            log.warning("%d refused calls are missing from the audit log: there was no room", self._dropped)
            self._dropped = 0

    async def _one_by_one(self, batch: list[Entry]) -> None:
        for entry in batch:
            try:
                await self._database.run(self.write, [entry])
            except InputError:
                log.exception("an entry of the audit log cannot be stored: %s by %s", entry.rpc, entry.who)

    async def close(self) -> None:
        """Write the last entries; an error is logged, as nothing else can be done about it now."""
        try:
            await self.flush()
        except DocferryError:
            log.exception("%d entries of the audit log are lost", len(self._waiting))

    def clear(self) -> None:
        """Delete entries older than they are kept."""
        now = self._database.now()
        with self._database.write() as connection:
            connection.execute(audit.delete().where(audit.c.time < now - self._days * 86400 * MICROSECONDS))

    def read(self, tenant: str = "", since: int = 0, limit: int = 1000) -> list[Entry]:
        """At most `limit` entries since a time, the newest of them, in the order in which they were written."""
        query = sa.select(*(audit.c[field.name] for field in fields(Entry))).where(audit.c.time >= since)
        query = query.where(audit.c.tenant == tenant) if tenant else query
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(audit.c.sequence.desc()).limit(limit)).all()
        return [Entry(*row) for row in reversed(rows)]

    def write(self, batch: list[Entry]) -> None:
        """Write entries at once.

        Raises:
            InputError: The database takes one of them not at all.
        """
        with self._database.write() as connection:
            connection.execute(audit.insert(), [asdict(entry) for entry in batch])
