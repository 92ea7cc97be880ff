"""The outbox's tables, and how an older file comes to have them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from docferry.errors import ConfigurationError

_DOCUMENTS = """
CREATE TABLE documents (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL UNIQUE,
    file_name TEXT NOT NULL,
    original_bytes INTEGER NOT NULL,
    captured_at REAL NOT NULL,
    captured_clock TEXT NOT NULL,
    state TEXT NOT NULL,
    read_attempts INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    request BLOB,
    edge_answer BLOB,
    analysis_id TEXT NOT NULL DEFAULT '',
    analysis BLOB,
    timings TEXT NOT NULL DEFAULT '{}',
    error TEXT NOT NULL DEFAULT '{}',
    told TEXT NOT NULL DEFAULT ''
);
CREATE INDEX documents_by_state ON documents (state, place);
CREATE TABLE parts (
    document_id TEXT NOT NULL REFERENCES documents (document_id) ON DELETE CASCADE,
    part_id TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (document_id, part_id)
);
CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

# Captured files that are kept to answer wants, and what was cut from them: `Originals` works on these.
_ORIGINALS = """
ALTER TABLE documents ADD COLUMN pages TEXT NOT NULL DEFAULT '[]';
ALTER TABLE documents ADD COLUMN kept_since REAL;
CREATE TABLE supplies (
    document_id TEXT NOT NULL REFERENCES documents (document_id) ON DELETE CASCADE,
    part_id TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (document_id, part_id)
);
"""

_ADDITIONS = (_DOCUMENTS, _ORIGINALS)
"""What each release added, oldest first; how many of them a file has is its `user_version`."""


def migrate(database: sqlite3.Connection, folder: Path) -> None:
    """Bring a new or an older file up to date, in one transaction.

    Raises:
        ConfigurationError: A newer release wrote it.
    """
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version == len(_ADDITIONS):
        return
    if version > len(_ADDITIONS):
        raise ConfigurationError(
            f"{folder}: the outbox was written by a newer release (schema {version})",
            remedy="update Docferry; nothing was changed",
        )
    # `executescript` commits first, so the version is set inside the same script's transaction.
    script = "".join(_ADDITIONS[version:])
    database.executescript(f"BEGIN; {script} PRAGMA user_version = {len(_ADDITIONS)}; COMMIT;")
