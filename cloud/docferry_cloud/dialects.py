"""What SQLite and PostgreSQL do differently, in one place: nothing above `database` knows which of them it is.

Both give the rest the same promise: a write transaction sees every one before it and runs alone, so that a check and
the change after it belong together, and events commit in the order of their sequences. SQLite has one writer anyway;
on PostgreSQL a transaction-level advisory lock makes one, over all processes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from docferry.errors import ConfigurationError, DocferryError, InputError, StorageFull, Unavailable

_WRITER_LOCK = 0x646F6366
"""The advisory lock of writers; the number is ours alone within our database."""
_BUSY_TIMEOUT = "PRAGMA busy_timeout=30000"
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    _BUSY_TIMEOUT,
    "PRAGMA foreign_keys=ON",
    # Deleted content is overwritten, not only unlinked.
    "PRAGMA secure_delete=ON",
)
_SESSION = (
    # A process that stops in the middle of a transaction must not hold all others up.
    "-c idle_in_transaction_session_timeout=20000 -c lock_timeout=30000 -c statement_timeout=60000"
    # Acknowledged is durable, whatever the server's default.
    " -c synchronous_commit=on"
)
_DISK_FULL = "53100"
_NOW = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class DatabaseAway(Unavailable):
    """Our own database cannot be reached: that says nothing about the document at hand."""


class Dialect(Protocol):
    """One kind of database."""

    def prepare(self) -> None:
        """Make what must be there before the first connection.

        Raises:
            ConfigurationError: It cannot be made.
        """

    def engine(self, size: int) -> sa.Engine:
        """An engine with a pool of about `size` connections, whose transactions begin as `read` and `write` ask."""

    def check_space(self, minimum: int) -> None:
        """Refuse while less than `minimum` bytes are free, where that can be known.

        Raises:
            StorageFull: There is too little.
        """

    def error(self, error: sa.exc.DBAPIError) -> DocferryError | None:
        """What a driver's error means to a caller; None if nothing that we know."""

    def forget_deleted(self, engine: sa.Engine) -> None:
        """Overwrite what was deleted, as far as the database does not do so by itself."""

    def now(self, engine: sa.Engine) -> int | None:
        """The server's time in microseconds since 1970; None where all processes share the machine's clock."""


class Sqlite:
    """A file. Its folder is made, readable by this user only."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def prepare(self) -> None:
        """Make the folder and the file."""
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives its companion files the mode of this one; documents and secrets lie in them.
            self.file.touch(mode=0o600)
        except OSError as error:
            raise ConfigurationError(
                f"{self.file} cannot be made: {error.strerror}",
                remedy="set data.directory to a folder you own",
            ) from error

    def engine(self, size: int) -> sa.Engine:
        """Connections in WAL mode; a writer locks before it reads."""
        engine = sa.create_engine(f"sqlite:///{self.file}", pool_size=size, max_overflow=16)
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    def check_space(self, minimum: int) -> None:
        """Look at the file's disk."""
        if minimum and shutil.disk_usage(self.file.parent).free < minimum:
            raise self._full()

    def error(self, error: sa.exc.DBAPIError) -> DocferryError | None:
        """A full disk, or a file that somebody else holds for longer than we wait."""
        if "full" in str(error.orig):
            return self._full()
        if "locked" in str(error.orig):
            return DatabaseAway("the database is locked", remedy="see what else has it open, and try again")
        return None

    def forget_deleted(self, engine: sa.Engine) -> None:
        """Empty the write-ahead log, where deleted content would otherwise stay until it is written over.

        A reader at that very moment keeps it from being emptied; the next call does it then.
        """
        with engine.connect() as connection:
            raw = connection.connection.driver_connection
            if raw is not None:
                # Every writer waits meanwhile.
                raw.execute("PRAGMA busy_timeout=1000").close()
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
                raw.execute(_BUSY_TIMEOUT).close()

    def now(self, engine: sa.Engine) -> int | None:  # noqa: ARG002
        """A file is shared by processes of one machine."""
        return None

    def _full(self) -> StorageFull:
        folder = self.file.parent.name
        return StorageFull(f"the disk of {folder} is full", remedy="free some space; nothing was taken")


class Postgres:
    """A PostgreSQL database, reached by psycopg: the driver that DBOS brings.

    Args:
        url: `postgresql://USER[:PASSWORD]@HOST[:PORT]/NAME`, with what libpq takes as a query.
    """

    def __init__(self, url: str) -> None:
        self.url = postgres_url(url)

    def prepare(self) -> None:
        """Nothing: the database is the operator's to make."""

    def engine(self, size: int) -> sa.Engine:
        """Connections that are tried before use: the server may have been restarted meanwhile."""
        engine = sa.create_engine(
            self.url,
            pool_size=size,
            max_overflow=8,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 10, "autocommit": True, "options": _SESSION, "prepare_threshold": 2},
        )
        sa.event.listen(engine, "begin", _begin_postgres)
        return engine

    def check_space(self, minimum: int) -> None:
        """Unknown from here: a full server says so when it is written to."""

    def error(self, error: sa.exc.DBAPIError) -> DocferryError | None:
        """A server that is away, or full; a text that PostgreSQL cannot hold."""
        if getattr(error.orig, "sqlstate", None) == _DISK_FULL:
            return StorageFull("the database's disk is full", remedy="free some space; nothing was taken")
        if isinstance(error, sa.exc.DataError):
            return InputError("a text holds a character that cannot be stored", remedy="leave NUL characters out")
        if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or error.connection_invalidated:
            return DatabaseAway("the database is away", remedy="try again in a moment; nothing is lost")
        return None

    def forget_deleted(self, engine: sa.Engine) -> None:
        """Nothing: freed space is the server's to overwrite, by autovacuum and checkpoints."""

    def now(self, engine: sa.Engine) -> int | None:
        """The server's clock, whenever in a transaction it is asked."""
        with engine.connect() as connection:
            return int(connection.execute(_NOW).scalar_one())


def postgres_url(url: str) -> sa.URL:
    """A database's URL with the driver that is used.

    Raises:
        ConfigurationError: It is no PostgreSQL URL.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        parsed = None
    if parsed is None or parsed.drivername not in {"postgresql", "postgres", "postgresql+psycopg"}:
        # The URL may hold a password: it is not repeated.
        raise ConfigurationError(
            "data.database is no PostgreSQL URL",
            remedy="give postgresql://USER:PASSWORD@HOST:5432/NAME, or leave it empty for SQLite",
            setting="data.database",
        )
    return parsed.set(drivername="postgresql+psycopg")


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: `_begin_sqlite` does, so that a writer locks before it reads.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma).close()


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if _writes(connection) else "BEGIN")


def _begin_postgres(connection: sa.Connection) -> None:
    # The driver is in autocommit mode, so that one message begins the transaction and waits for the turn.
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    if _writes(connection):
        # Read committed: what is read after the lock is what the writer before has left.
        begin = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({_WRITER_LOCK})"
    # Without parameters the driver sends it as it is, several statements in one.
    connection.exec_driver_sql(begin, execution_options={"no_parameters": True})


def _writes(connection: sa.Connection) -> bool:
    return bool(connection.get_execution_options().get("docferry_writes", False))
