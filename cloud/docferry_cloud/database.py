"""The store's engine: short transactions on SQLite or PostgreSQL, away from the event loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from docferry.errors import ConfigurationError
from docferry_cloud import migrate
from docferry_cloud.dialects import Dialect, Postgres, Sqlite
from docferry_cloud.threads import Threads

P = ParamSpec("P")
R = TypeVar("R")
Clock = Callable[[], int]
"""Microseconds since 1970."""

_THREADS = 4
_ASK_THE_TIME_S = 30.0


def wall_clock() -> int:
    """The system's time in microseconds."""
    return time.time_ns() // 1000


class Database:
    """One database with its own threads.

    Args:
        place: The SQLite file, or a PostgreSQL URL.
        min_free_bytes: `check_space` refuses below this.

    Raises:
        ConfigurationError: The URL is none of PostgreSQL.
    """

    def __init__(self, place: Path | str, *, min_free_bytes: int = 0) -> None:
        self._dialect: Dialect = Sqlite(place) if isinstance(place, Path) else Postgres(place)
        self._min_free = min_free_bytes
        self._engine = self._dialect.engine(_THREADS + 4)
        # Waiting for one another here is fair and quick; SQLite's own busy handler sleeps up to 100 ms.
        self._writing = threading.Lock()
        self._threads = Threads(_THREADS, "docferry-store")
        self._told: tuple[int, float] | None = None

    def create(self) -> None:
        """Make the database's tables, or bring older ones up to date; processes that do so at once take turns.

        Raises:
            ConfigurationError: The folder, the file or the server cannot be used, or a newer release was here before.
        """
        self._dialect.prepare()
        try:
            with self._writing, self._engine.connect() as connection:
                writer = connection.execution_options(docferry_writes=True)
                with writer.begin():
                    migrate.upgrade(writer)
        except DBAPIError as error:
            raise ConfigurationError(
                f"the database cannot be used: {str(error.orig).strip()}",
                remedy="check data.database, or data.directory and who owns it",
            ) from error

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A read transaction: one consistent view.

        Raises:
            Unavailable: The server cannot be reached.
        """
        with self._named(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A write transaction, alone among all processes and durable when the block has ended.

        Raises:
            StorageFull: The disk is full; nothing was changed.
            Unavailable: The server cannot be reached; whether the change was made is not known if it went away last.
        """
        with self._named(), self._writing, self._engine.connect() as connection:
            writer = connection.execution_options(docferry_writes=True)
            with writer.begin():
                yield writer

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a blocking function on the database's threads; a call still queued is dropped with its caller."""
        return await self._threads.run(function, *args, **kwargs)

    def now(self) -> int:
        """The time by one clock for all that share this database, so that leases mean the same to each of them.

        That is the machine's for a file and the server's for a server, which is asked again every 30 s; between, the
        time passes by a clock that nobody can set.

        Raises:
            Unavailable: The server cannot be reached.
        """
        told = self._told
        if told is None or time.monotonic() - told[1] > _ASK_THE_TIME_S:
            before = time.monotonic()
            with self._named():
                server = self._dialect.now(self._engine)
            if server is None:
                return wall_clock()
            # The answer was made on the way between; half of it is the best guess.
            told = self._told = (server, (before + time.monotonic()) / 2)
        return told[0] + int((time.monotonic() - told[1]) * 1_000_000)

    def check_space(self) -> None:
        """Refuse new work while the disk is nearly full.

        Raises:
            StorageFull: Less than `min_free_bytes` is free.
        """
        self._dialect.check_space(self._min_free)

    def forget_deleted(self) -> None:
        """Overwrite what was deleted, where the database does not do so by itself."""
        with self._writing:
            self._dialect.forget_deleted(self._engine)

    def close(self) -> None:
        """End the threads and close every connection."""
        self._threads.close()
        self._engine.dispose()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Driver errors that callers can do something about, by their names."""
        try:
            yield
        except DBAPIError as error:
            named = self._dialect.error(error)
            if named is None:
                raise
            raise named from error
