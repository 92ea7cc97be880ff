"""The outbox: every captured document, fsynced before anyone is told that it is safe.

One SQLite file (WAL, synchronous=FULL) holds a row a document and what is still to be sent; one folder holds the
captured files until their document is settled, or longer (see `originals`). A document walks

    CAPTURED ── read ──> PACKED ── submit ──> SUBMITTED ── all parts ──> DELIVERED ── answer ──> SETTLED
        └── cannot be read ──> FAILED                    └── the cloud refused it ──> QUARANTINED

and each step is one transaction, so that after a power cut it goes on from the last one. Request ids are made
before the first step and what is sent is stored as bytes: a retry sends exactly the same. Only a settled document
gives its space back: what FAILED or was QUARANTINED is kept until a person retries or removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from docferry.errors import DocferryError, NotFound, StorageFull
from docferry_edge.durable import file_size, full_disk_named, lock_folder, write_durably
from docferry_edge.entry import FINAL, UNSENT, Entry, OutboxPart, State, clock
from docferry_edge.originals import Originals
from docferry_edge.outbox_schema import migrate

READ_ATTEMPTS = 3
"""A document whose reading has killed the agent this often is given up."""

KEEP_ANSWERS = 1000
"""Answers of so many settled documents are kept here; the cloud has them all."""

_COLUMNS = ", ".join(Entry.__dataclass_fields__)

_FORGET = (
    "UPDATE documents SET request = NULL, edge_answer = NULL, analysis = NULL WHERE state = ? AND place <="
    " (SELECT place FROM documents WHERE state = ? ORDER BY place DESC LIMIT 1 OFFSET ?)"
)
"""Answers of settled documents beyond the newest ones."""


class Outbox:
    """All documents of one device. Safe to call from several threads; one process at a time (`agent.lock`).

    Args:
        folder: Where everything lies; made if missing.
        max_bytes: Ceiling on everything in `folder`. What is new is refused at the ceiling; nothing unsent is dropped.
        min_free_bytes: The same when the disk has less than this left.
    """

    def __init__(self, folder: Path, *, max_bytes: int = 4 << 30, min_free_bytes: int = 64 << 20) -> None:
        self._folder = folder
        self._spool = folder / "spool"
        self._max_bytes = max_bytes
        self._min_free_bytes = min_free_bytes
        self._spool.mkdir(parents=True, exist_ok=True)
        self.originals = Originals(self._spool, self._transaction)
        self._guard = threading.RLock()
        self._lock_file = lock_folder(folder / "agent.lock")
        self._database = sqlite3.connect(
            folder / "outbox.sqlite", check_same_thread=False, isolation_level=None, timeout=10.0
        )
        self._database.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "journal_size_limit=4194304"):
            self._database.execute(f"PRAGMA {pragma}")
        migrate(self._database, folder)
        self._sweep_spool()

    def close(self) -> None:
        """Close the database and let another process have the folder."""
        with self._guard:
            self._database.close()
            os.close(self._lock_file)

    def capture(self, *, source: str, file_name: str, data: bytes, captured_at: float) -> Entry | None:
        """Take a file in; it is on the disk, fsynced, when this returns. None if that file was taken before.

        Raises:
            StorageFull: The ceiling or the disk's end is reached; nothing was taken.
        """
        if self._known(source):
            return None
        self._make_sure_of_room(len(data))
        document_id = str(uuid.uuid4())
        with full_disk_named(self._folder):
            write_durably(self._spool / document_id, data)
        self._insert(document_id, source, file_name, len(data), captured_at)
        return self.get(document_id)

    def refuse(
        self, *, source: str, file_name: str, original_bytes: int, captured_at: float, error: DocferryError
    ) -> None:
        """Note a file that cannot be taken in at all, with the reason, so that it is told once and not tried again."""
        if self._known(source):
            return
        document_id = str(uuid.uuid4())
        with self._transaction():
            self._insert(document_id, source, file_name, original_bytes, captured_at)
            self.failed(document_id, error)

    def get(self, document_id: str) -> Entry:
        """One document.

        Raises:
            NotFound: There is none with that id.
        """
        rows = self._select("document_id = ?", (document_id,))
        if not rows:
            raise NotFound(f"document {document_id} is not in the outbox", remedy="check the id")
        return rows[0]

    def in_state(self, *states: State, limit: int = 1000) -> list[Entry]:
        """Documents in any of these states, oldest first."""
        marks = ", ".join("?" * len(states))
        return self._select(f"state IN ({marks}) ORDER BY place LIMIT {int(limit)}", states)

    def unsent(self) -> list[str]:
        """Ids of all documents that are packed and not wholly delivered, oldest first."""
        return self._ids(UNSENT)

    def count(self) -> dict[str, int]:
        """How many documents are in each state, by its name; states without any are left out."""
        with self._guard:
            rows = self._database.execute("SELECT state, count(*) FROM documents GROUP BY state").fetchall()
        return {str(state): int(count) for state, count in rows}

    def untold(self) -> list[Entry]:
        """Documents whose present state has not been reported yet, oldest first."""
        return self._select("told <> state AND state NOT IN ('captured', 'submitted', 'delivered') ORDER BY place", ())

    def image(self, document_id: str) -> bytes:
        """The captured file's bytes."""
        return (self._spool / document_id).read_bytes()

    def request(self, document_id: str) -> bytes | None:
        """The serialized SubmitRequest, from packing until the document is settled."""
        return self._blob("request", document_id)

    def edge_answer(self, document_id: str) -> bytes | None:
        """The serialized Interpretation that the edge made."""
        return self._blob("edge_answer", document_id)

    def analysis(self, document_id: str) -> bytes | None:
        """The serialized Analysis that the cloud gave."""
        return self._blob("analysis", document_id)

    def begin_reading(self, document_id: str) -> int:
        """Note that reading begins, before it does; gives the number of this attempt, from 1."""
        with self._transaction() as database:
            database.execute(
                "UPDATE documents SET read_attempts = read_attempts + 1 WHERE document_id = ?", (document_id,)
            )
        return self.get(document_id).read_attempts

    def reading_excused(self, document_id: str) -> None:
        """The attempt that began last does not count: a full disk is not the document's fault."""
        with self._transaction() as database:
            database.execute(
                "UPDATE documents SET read_attempts = read_attempts - 1 WHERE document_id = ?", (document_id,)
            )

    def packed(
        self,
        document_id: str,
        *,
        request: bytes,
        parts: Sequence[OutboxPart],
        edge_answer: bytes,
        timings: dict[str, float],
        pages: str = "[]",
    ) -> None:
        """Store what is to be sent; from now on the document goes up exactly like this.

        `pages` is the prepared pages' geometry (`cutting.to_json`), by which more can be cut from the file later.
        """
        with self._transaction() as database:
            changed = database.execute(
                "UPDATE documents SET state = ?, request = ?, edge_answer = ?, timings = ?, pages = ?"
                " WHERE document_id = ? AND state = ?",
                (State.PACKED, request, edge_answer, json.dumps(timings), pages, document_id, State.CAPTURED),
            ).rowcount
            if changed:
                database.executemany(
                    "INSERT INTO parts (document_id, part_id, data) VALUES (?, ?, ?)",
                    [(document_id, part.part_id, part.data) for part in parts],
                )

    def kept(self, document_id: str, *, request: bytes, edge_answer: bytes, timings: dict[str, float]) -> None:
        """A policy lets nothing leave: the edge's answer ends the document. `request` says why and is never sent."""
        with self._transaction() as database:
            self._finish(document_id, State.SETTLED, timings, request=request, edge_answer=edge_answer)
            database.execute(_FORGET, (State.SETTLED, State.SETTLED, KEEP_ANSWERS))
        (self._spool / document_id).unlink(missing_ok=True)

    def part(self, document_id: str, part_id: str) -> bytes | None:
        """The bytes of an announced part, or None if it is not (or no longer) here."""
        with self._guard:
            row = self._database.execute(
                "SELECT data FROM parts WHERE document_id = ? AND part_id = ?", (document_id, part_id)
            ).fetchone()
        return None if row is None else bytes(row["data"])

    def submitted(self, document_id: str, analysis_id: str, timings: dict[str, float]) -> None:
        """The cloud has the envelope; parts may still be wanted."""
        self._advance(document_id, State.SUBMITTED, (State.PACKED,), timings, analysis_id=analysis_id)

    def delivered(self, document_id: str, timings: dict[str, float]) -> None:
        """The cloud has everything; the parts are no longer needed here."""
        with self._transaction() as database:
            self._advance(document_id, State.DELIVERED, UNSENT, timings)
            database.execute("DELETE FROM parts WHERE document_id = ?", (document_id,))

    def settled(
        self, document_id: str, analysis: bytes, timings: dict[str, float], *, keep_original: bool = False
    ) -> None:
        """The answer has come; the captured file is no longer needed, or kept for those who look at the answer."""
        kept = {"kept_since": time.time()} if keep_original else {}
        with self._transaction() as database:
            self._finish(document_id, State.SETTLED, timings, analysis=analysis, error="{}", **kept)
            database.execute(_FORGET, (State.SETTLED, State.SETTLED, KEEP_ANSWERS))
            self._drop_rows(document_id)
        if not keep_original:
            # Only once the state is on the disk; what a kill leaves is swept at the next start.
            self._drop_original(document_id)

    def failed(self, document_id: str, error: DocferryError, *, state: State = State.FAILED) -> None:
        """The document cannot go on: FAILED here, or QUARANTINED by the cloud's refusal. Everything is kept."""
        self._finish(document_id, state, {}, error=json.dumps(error.as_dict()))

    def discarded(self, document_id: str, error: DocferryError) -> None:
        """Somebody deleted the document in the cloud: nothing of it is kept here either."""
        # The file first: a kill in between, and the cloud's word is heard once more.
        self._drop_original(document_id)
        with self._transaction():
            self._finish(document_id, State.FAILED, {}, error=json.dumps(error.as_dict()))
            self._drop_rows(document_id, answers=True)

    def retry(self, document_id: str) -> bool:
        """Let a failed or quarantined document go again from its last good step; False if there is nothing to go on."""
        with self._transaction() as database:
            row = database.execute(
                "SELECT request IS NOT NULL FROM documents WHERE document_id = ? AND state IN (?, ?)",
                (document_id, State.FAILED, State.QUARANTINED),
            ).fetchone()
            if row is None or not (row[0] or (self._spool / document_id).exists()):
                return False
            database.execute(
                "UPDATE documents SET state = ?, error = '{}', refusals = 0, read_attempts = 0, told = ''"
                " WHERE document_id = ?",
                (State.PACKED if row[0] else State.CAPTURED, document_id),
            )
        return True

    def refused(self, document_id: str) -> int:
        """Note that the cloud, while reachable, failed on this document; gives how often by now."""
        with self._transaction() as database:
            database.execute("UPDATE documents SET refusals = refusals + 1 WHERE document_id = ?", (document_id,))
        return self.get(document_id).refusals

    def told(self, document_id: str, state: State) -> None:
        """Whoever listens has been told of `state`."""
        with self._transaction() as database:
            database.execute("UPDATE documents SET told = ? WHERE document_id = ?", (state, document_id))

    def mark(self, name: str) -> str:
        """A named mark, such as the resume token; empty if it was never set."""
        with self._guard:
            row = self._database.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return "" if row is None else str(row["value"])

    def set_mark(self, name: str, value: str) -> None:
        """Set a named mark."""
        with self._transaction() as database:
            database.execute(
                "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
            )

    def size(self) -> int:
        """Bytes in use: captured files, and the database without the pages it has free."""
        with self._guard:
            pages, free, page = (
                int(self._database.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "freelist_count", "page_size")
            )
        return (pages - free) * page + sum(file_size(file) for file in self._spool.iterdir())

    def _advance(
        self,
        document_id: str,
        state: State,
        before: Sequence[State],
        timings: dict[str, float],
        **values: str | bytes | float,
    ) -> None:
        columns = "".join(f", {name} = ?" for name in values)
        marks = ", ".join("?" * len(before))
        with self._transaction() as database:
            database.execute(
                f"UPDATE documents SET state = ?, timings = json_patch(timings, ?){columns}"  # noqa: S608 - names are ours
                f" WHERE document_id = ? AND state IN ({marks})",
                (state, json.dumps(timings), *values.values(), document_id, *before),
            )

    def _finish(self, document_id: str, state: State, timings: dict[str, float], **values: str | bytes | float) -> None:
        self._advance(document_id, state, tuple(set(State) - FINAL), timings, **values)

    def _drop_rows(self, document_id: str, *, answers: bool = False) -> None:
        """Give back a finished document's space, in the transaction that finishes it: a kill leaves nothing behind."""
        columns = "request = NULL, edge_answer = NULL, analysis = NULL" if answers else "request = NULL"
        with self._transaction() as database:
            database.execute(
                f"UPDATE documents SET {columns} WHERE document_id = ?",  # noqa: S608 - columns are ours
                (document_id,),
            )
            database.execute("DELETE FROM parts WHERE document_id = ?", (document_id,))
            self.originals.drop_supplies(document_id)

    def _drop_original(self, document_id: str) -> None:
        (self._spool / document_id).unlink(missing_ok=True)

    def _insert(self, document_id: str, source: str, file_name: str, size: int, captured_at: float) -> None:
        values = (document_id, str(uuid.uuid4()), source, file_name[:255], size, captured_at, clock(), State.CAPTURED)
        with self._transaction() as database:
            database.execute(
                "INSERT INTO documents (document_id, request_id, source, file_name, original_bytes, captured_at,"
                " captured_clock, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def _ids(self, states: Sequence[State]) -> list[str]:
        marks = ", ".join("?" * len(states))
        with self._guard:
            rows = self._database.execute(
                f"SELECT document_id FROM documents WHERE state IN ({marks}) ORDER BY place",  # noqa: S608 - marks only
                states,
            ).fetchall()
        return [str(row[0]) for row in rows]

    def _blob(self, column: str, document_id: str) -> bytes | None:
        with self._guard:
            row = self._database.execute(
                f"SELECT {column} FROM documents WHERE document_id = ?",  # noqa: S608 - columns are ours
                (document_id,),
            ).fetchone()
        return None if row is None or row[0] is None else bytes(row[0])

    def _known(self, source: str) -> bool:
        with self._guard:
            row = self._database.execute("SELECT 1 FROM documents WHERE source = ?", (source,)).fetchone()
        return row is not None

    def _select(self, condition: str, arguments: Sequence[str]) -> list[Entry]:
        with self._guard:
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM documents WHERE {condition}",  # noqa: S608 - conditions are ours
                arguments,
            ).fetchall()
        return [
            Entry(
                **{
                    **dict(row),
                    "state": State(row["state"]),
                    "timings": json.loads(row["timings"]),
                    "error": json.loads(row["error"]),
                }
            )
            for row in rows
        ]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction; one inside another belongs to it."""
        with self._guard:
            if self._inside():
                yield self._database
                return
            with full_disk_named(self._folder):
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    # On a full disk SQLite has rolled back by itself, and asking again would hide why.
                    if self._inside():
                        self._database.execute("ROLLBACK")
                    raise

    def _inside(self) -> bool:
        return self._database.in_transaction

    def _sweep_spool(self) -> None:
        """Remove files of a capture or a finish that a power cut broke off: without a row, or no longer needed."""
        needed = {*self._ids(tuple(set(State) - {State.SETTLED})), *self.originals.kept()}
        for file in self._spool.iterdir():
            if file.name not in needed:
                file.unlink()

    def _make_sure_of_room(self, more: int) -> None:
        lacking = self._lacking(more)
        while lacking is not None and self.originals.give_back():
            lacking = self._lacking(more)
        if lacking is not None:
            raise lacking

    def _lacking(self, more: int) -> StorageFull | None:
        used = self.size()
        if used + more > self._max_bytes:
            return StorageFull(
                f"{self._folder}: {used + more} bytes would pass the ceiling of {self._max_bytes}",
                remedy="wait until documents were delivered, or raise state.max_mb",
            )
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < self._min_free_bytes + more:
            return StorageFull(
                f"{self._folder}: the disk has less than {self._min_free_bytes} bytes left", remedy="free some space"
            )
        return None
