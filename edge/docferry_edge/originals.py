"""What the outbox keeps to answer the cloud's wants: captured files, their pages' geometry, and pictures cut from them.

An original is kept until its document is settled, and for a stated time afterwards, so that somebody who looks at an
answer without pixels can still ask for the page. What is kept beyond settling is the first to go when room is needed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path


class Originals:
    """The kept originals of one outbox, which makes this. Safe to call from several threads.

    Args:
        spool: Folder of the captured files, named by document.
        transaction: The outbox's own.
    """

    def __init__(self, spool: Path, transaction: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._spool = spool
        self._transaction = transaction

    def pages(self, document_id: str) -> str:
        """The geometry of a document's pages, as `cutting.to_json` wrote it."""
        with self._transaction() as database:
            row = database.execute("SELECT pages FROM documents WHERE document_id = ?", (document_id,)).fetchone()
        return "[]" if row is None else str(row["pages"])

    def image(self, document_id: str) -> bytes | None:
        """The captured file's bytes, or None if they are no longer kept."""
        try:
            return (self._spool / document_id).read_bytes()
        except FileNotFoundError:
            return None

    def supply(self, document_id: str, part_id: str) -> bytes | None:
        """The picture that was cut for a want, or None: what goes up again must be the same bytes."""
        with self._transaction() as database:
            row = database.execute(
                "SELECT data FROM supplies WHERE document_id = ? AND part_id = ?", (document_id, part_id)
            ).fetchone()
        return None if row is None else bytes(row["data"])

    def store_supply(self, document_id: str, part_id: str, data: bytes) -> None:
        """Keep the picture cut for a want until it has gone up.

        Raises:
            StorageFull: The disk is full.
        """
        with self._transaction() as database:
            database.execute("INSERT OR REPLACE INTO supplies VALUES (?, ?, ?)", (document_id, part_id, data))

    def drop_supply(self, document_id: str, part_id: str) -> None:
        """The want is answered, or nobody waits for it any more."""
        with self._transaction() as database:
            database.execute("DELETE FROM supplies WHERE document_id = ? AND part_id = ?", (document_id, part_id))

    def drop_supplies(self, document_id: str) -> None:
        """The same for everything that was cut for a document."""
        with self._transaction() as database:
            database.execute("DELETE FROM supplies WHERE document_id = ?", (document_id,))

    def kept(self) -> list[str]:
        """Ids of settled documents whose original is kept, the one settled first leading."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT document_id FROM documents WHERE kept_since IS NOT NULL ORDER BY kept_since, place"
            ).fetchall()
        return [str(row[0]) for row in rows]

    def forget(self, document_id: str) -> None:
        """Drop a settled document's original."""
        with self._transaction() as database:
            database.execute("UPDATE documents SET kept_since = NULL WHERE document_id = ?", (document_id,))
            self.drop_supplies(document_id)
        (self._spool / document_id).unlink(missing_ok=True)

    def give_back(self) -> bool:
        """Drop the original that has been kept longest beyond settling; False if there is none."""
        kept = self.kept()
        if kept:
            self.forget(kept[0])
        return bool(kept)

    def expire(self, keep_s: float, now: float | None = None) -> int:
        """Drop originals that were settled more than `keep_s` seconds ago; gives how many.

        One that was settled in the future, by a clock that was wrong, goes too.
        """
        now = time.time() if now is None else now
        with self._transaction() as database:
            rows = database.execute(
                "SELECT document_id FROM documents WHERE kept_since <= ? OR kept_since > ?", (now - keep_s, now + 60)
            ).fetchall()
        for row in rows:
            self.forget(str(row[0]))
        return len(rows)
