"""Which objects there are and who holds them: bytes move from rows to objects, and go with their last holder.

An object is written under a name that was never used before, noted among the spare ones first: whatever is killed in
between leaves a spare object, which is deleted later, and never a part without its bytes. Rows are the truth until the
transaction that marks the part as stored; from then on the object is.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from docferry.errors import Unavailable
from docferry_cloud.blobs import Blobs
from docferry_cloud.database import Clock, Database
from docferry_cloud.schema import analyses, blobs, chunks, parts, spare_blobs

log = logging.getLogger(__name__)

MIN_BLOB_BYTES = 64 << 10
"""Smaller parts stay in rows: a round trip would cost more than it saves."""
_MICROSECONDS = 1_000_000
_WRITTEN_WITHIN_S = 3600
_AGAIN_S = 60


@dataclass(frozen=True, slots=True)
class _Move:
    analysis_id: str
    part_id: str
    tenant: str
    sha256: bytes
    name: str
    until: int
    """While its row of `spare_blobs` says this, the name is the mover's alone."""


class BlobList:
    """The objects of one database. Every method blocks."""

    def __init__(self, database: Database, store: Blobs, clock: Clock | None = None) -> None:
        self._database = database
        self._store = store
        self._clock = clock or database.now

    def move(self, limit: int = 8) -> int:
        """Move at most `limit` whole parts from rows into objects; gives how many were looked at.

        Raises:
            Unavailable: The object store or the database is away; the rows stay.
        """
        adopted, moves = self._begin(limit)
        ended = 0
        try:
            for move in moves:
                data = self._bytes(move)
                if data:
                    self._store.put(move.name, data)
                    self._end(move)
                else:
                    self._give_up([move])
                ended += 1
        finally:
            # One that failed may still be on its way into the store and keeps its name; those not begun need none.
            self._give_up(moves[ended + 1 :])
        return adopted + len(moves)

    def clear(self, names: Sequence[str] | None = None, limit: int = 100) -> int:
        """Delete spare objects whose time has come: those of these names, or at most `limit` of all; gives how many.

        Each is claimed before it is deleted, so that nobody begins to hold it meanwhile. A store that is away is asked
        again after a minute.
        """
        now = self._clock()
        due = sa.select(spare_blobs.c.name).where(spare_blobs.c.due_time <= now)
        due = due.limit(limit) if names is None else due.where(spare_blobs.c.name.in_(names))
        with self._database.read() as connection:
            found = connection.execute(due).scalars().all()
        later = now + _AGAIN_S * _MICROSECONDS
        deleted = 0
        for name in found:
            this = spare_blobs.c.name == name
            with self._database.write() as connection:
                claim = spare_blobs.update().where(this, spare_blobs.c.due_time <= now).values(due_time=later)
                if connection.execute(claim).rowcount == 0:
                    continue
            try:
                self._store.delete(name)
            except Unavailable as error:
                log.warning("an object is left for later: %s", error.reason)
                break
            with self._database.write() as connection:
                connection.execute(spare_blobs.delete().where(this))
            deleted += 1
        return deleted

    def _begin(self, limit: int) -> tuple[int, list[_Move]]:
        adopted, moves = 0, []
        whole = (parts.c.received == parts.c.size, sa.not_(parts.c.stored), parts.c.size >= MIN_BLOB_BYTES)
        query = (
            sa.select(parts.c.analysis_id, parts.c.part_id, parts.c.sha256, analyses.c.tenant)
            .join(analyses, analyses.c.analysis_id == parts.c.analysis_id)
            .where(*whole)
            .limit(limit)
        )
        with self._database.read() as connection:
            if connection.execute(query.limit(1)).first() is None:
                return 0, []
        with self._database.write() as connection:
            now = self._clock()
            for row in connection.execute(query).all():
                name = f"t-{row.tenant}/{row.sha256.hex()[:2]}/{row.sha256.hex()}-{secrets.token_hex(4)}"
                until = now + _WRITTEN_WITHIN_S * _MICROSECONDS
                move = _Move(row.analysis_id, row.part_id, row.tenant, row.sha256, name, until)
                same = (spare_blobs.c.tenant == row.tenant, spare_blobs.c.sha256 == row.sha256)
                being_written = sa.select(spare_blobs.c.name).where(*same, spare_blobs.c.due_time > now)
                if _held(connection, move):
                    _hold(connection, move)
                    adopted += 1
                elif connection.execute(being_written.limit(1)).first() is None:
                    _spare(connection, row.tenant, row.sha256, name, until)
                    moves.append(move)
        return adopted, moves

    def _bytes(self, move: _Move) -> bytes:
        query = sa.select(chunks.c.data).where(*_of(chunks, move)).order_by(chunks.c.start)
        with self._database.read() as connection:
            return b"".join(connection.execute(query).scalars())

    def _end(self, move: _Move) -> None:
        with self._database.write() as connection:
            waits = sa.select(parts.c.part_id).where(*_of(parts, move), sa.not_(parts.c.stored))
            waiting = connection.execute(waits).first() is not None
            if not waiting or _held(connection, move):
                # Deleted, moved or written by another meanwhile: ours is spare now.
                connection.execute(_ours(move, self._clock()))
            elif connection.execute(spare_blobs.delete().where(*_reserved(move))).rowcount:
                row = {"tenant": move.tenant, "sha256": move.sha256, "name": move.name, "holders": 0}
                connection.execute(blobs.insert().values(row))
            else:
                # It took longer than reserved, and the object may be deleted by now: the rows stay the truth.
                return
            if waiting:
                _hold(connection, move)

    def _give_up(self, moves: Sequence[_Move]) -> None:
        if moves:
            with self._database.write() as connection:
                for move in moves:
                    connection.execute(_ours(move, self._clock()))


def names(connection: sa.Connection, analysis_id: str) -> Mapping[str, str]:
    """The objects' names of the parts of an analysis that are stored, by part id."""
    same = sa.and_(blobs.c.tenant == analyses.c.tenant, blobs.c.sha256 == parts.c.sha256)
    query = (
        sa.select(parts.c.part_id, blobs.c.name)
        .join(analyses, analyses.c.analysis_id == parts.c.analysis_id)
        .join(blobs, same)
        .where(parts.c.analysis_id == analysis_id, parts.c.stored)
    )
    return {row.part_id: row.name for row in connection.execute(query)}


def release(connection: sa.Connection, tenant: str, analysis_id: str, now: int) -> list[str]:
    """Let go of what an analysis that is being deleted holds.

    Gives the names of objects without a holder: they are spare from now on.
    """
    released: list[str] = []
    query = sa.select(parts.c.sha256).where(parts.c.analysis_id == analysis_id, parts.c.stored)
    for sha256 in connection.execute(query).scalars().all():
        this = (blobs.c.tenant == tenant, blobs.c.sha256 == sha256)
        connection.execute(blobs.update().where(*this).values(holders=blobs.c.holders - 1))
        unheld = connection.execute(sa.select(blobs.c.name).where(*this, blobs.c.holders <= 0)).scalar_one_or_none()
        if unheld is not None:
            connection.execute(blobs.delete().where(*this))
            _spare(connection, tenant, sha256, unheld, now)
            released.append(unheld)
    return released


def _spare(connection: sa.Connection, tenant: str, sha256: bytes, name: str, due_time: int) -> None:
    row = {"name": name, "tenant": tenant, "sha256": sha256, "due_time": due_time}
    connection.execute(spare_blobs.insert().values(row))


def _reserved(move: _Move) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return spare_blobs.c.name == move.name, spare_blobs.c.due_time == move.until


def _ours(move: _Move, due_time: int) -> sa.Update:
    """Gives a name up whose reservation is still ours."""
    return spare_blobs.update().where(*_reserved(move)).values(due_time=due_time)


def _held(connection: sa.Connection, move: _Move) -> bool:
    this = (blobs.c.tenant == move.tenant, blobs.c.sha256 == move.sha256)
    return connection.execute(sa.select(blobs.c.name).where(*this)).first() is not None


def _hold(connection: sa.Connection, move: _Move) -> None:
    """Let a part hold its tenant's object of that content; its rows go."""
    this = (blobs.c.tenant == move.tenant, blobs.c.sha256 == move.sha256)
    connection.execute(blobs.update().where(*this).values(holders=blobs.c.holders + 1))
    connection.execute(parts.update().where(*_of(parts, move)).values(stored=True))
    connection.execute(chunks.delete().where(*_of(chunks, move)))


def _of(table: sa.Table, move: _Move) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return table.c.analysis_id == move.analysis_id, table.c.part_id == move.part_id
