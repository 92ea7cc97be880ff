"""The store's engine: short transactions on SQLite, away from the event loop.

Written so that PostgreSQL is another URL: nothing above this module knows the dialect.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from docferry.errors import ConfigurationError, StorageFull
from docferry_cloud import schema

P = ParamSpec("P")
R = TypeVar("R")
Clock = Callable[[], int]
"""Microseconds since 1970."""

_THREADS = 4
_BUSY_TIMEOUT = "PRAGMA busy_timeout=30000"
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    _BUSY_TIMEOUT,
    "PRAGMA foreign_keys=ON",
    # Deleted content is overwritten, not only unlinked.
    "PRAGMA secure_delete=ON",
)


def wall_clock() -> int:
    """The system's time in microseconds."""
    return time.time_ns() // 1000


class Database:
    """One database file with its own threads.

    Args:
        file: The SQLite file; its folder is made, readable by this user only.
        min_free_bytes: `check_space` refuses below this.
    """

    def __init__(self, file: Path, *, min_free_bytes: int = 0) -> None:
        self._file = file
        self._folder = file.parent
        self._min_free = min_free_bytes
        self._engine = sa.create_engine(f"sqlite:///{file}", pool_size=_THREADS + 4, max_overflow=16)
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        # Waiting for one another here is fair and quick; SQLite's own busy handler sleeps up to 100 ms.
        self._writing = threading.Lock()
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="docferry-store")

    def create(self) -> None:
        """Make the folder, the file and the tables that are missing.

        Raises:
            ConfigurationError: The folder or the file cannot be used.
        """
        self._make_file()
        try:
            with self.write() as connection:
                schema.metadata.create_all(connection)
        except OperationalError as error:
            raise ConfigurationError(
                f"the database in {self._folder} cannot be used: {error.orig}",
                remedy="check data.directory and who owns it",
            ) from error

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A read transaction: one consistent view."""
        with self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A write transaction, durable when the block has ended.

        Raises:
            StorageFull: The disk is full; nothing was changed.
        """
        try:
            with self._writing, self._engine.connect() as connection:
                writer = connection.execution_options(docferry_writes=True)
                with writer.begin():
                    yield writer
        except OperationalError as error:
            if "full" in str(error.orig):
                raise _full(self._folder) from error
            raise

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a blocking function on the store's threads; a call still queued is dropped with its caller."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))

    def check_space(self) -> None:
        """Refuse new work while the disk is nearly full.

        Raises:
            StorageFull: Less than `min_free_bytes` is free.
        """
        if self._min_free and shutil.disk_usage(self._folder).free < self._min_free:
            raise _full(self._folder)

    def forget_deleted(self) -> None:
        """Empty the write-ahead log, where deleted content would otherwise stay until it is written over.

        A reader at that very moment keeps it from being emptied; the next call does it then.
        """
        with self._writing, self._engine.connect() as connection:
            raw = connection.connection.driver_connection
            if raw is not None:
                # Every writer waits meanwhile.
                raw.execute("PRAGMA busy_timeout=1000").close()
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
                raw.execute(_BUSY_TIMEOUT).close()

    def close(self) -> None:
        """End the threads and close every connection."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._engine.dispose()

    def _make_file(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives its companion files the mode of this one; documents and secrets lie in them.
            self._file.touch(mode=0o600)
        except OSError as error:
            raise ConfigurationError(
                f"{self._file} cannot be made: {error.strerror}",
                remedy="set data.directory to a folder you own",
            ) from error


def _full(folder: Path) -> StorageFull:
    return StorageFull(f"the disk of {folder.name} is full", remedy="free some space; nothing was taken")


def _prepare(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: `_begin` does, so that a writer locks before it reads.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma).close()


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("docferry_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
