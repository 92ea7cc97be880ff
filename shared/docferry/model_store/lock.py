"""A file that only one process on this machine works on at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def exclusive(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for reading and writing, alone; waits for another process that has it, gone or not.

    The file is removed at the end; after an error it stays if there is something in it, for the next attempt.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Whoever had the lock before may have removed the file: then this lock is on one that nobody else sees.
            if not _is_at(file, path):
                continue
            try:
                yield file
            except BaseException:
                if file.seek(0, os.SEEK_END) == 0:
                    path.unlink()
                raise
            path.unlink()
            return


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
