"""Files that survive a power cut, one process at a time, and full disks by their name."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from docferry.errors import ConfigurationError, StorageFull


def lock_folder(path: Path) -> int:
    """Take a lock file for this process; gives the handle to close.

    Raises:
        ConfigurationError: Another process has it.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ConfigurationError(
            f"{path.parent}: another agent is using this folder", remedy="stop it, or set another state folder"
        ) from None
    return handle


def write_durably(path: Path, data: bytes) -> None:
    """Write, fsync, rename, fsync the folder: after a power cut the file is whole or not there."""
    partial = path.with_name(f".{path.name}.part")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Let a full disk be a StorageFull, whoever noticed it."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        full = getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT} or "disk is full" in str(error)
        if not full:
            raise
        raise StorageFull(f"{folder}: the disk is full; nothing was taken", remedy="free some space") from None


def file_size(file: Path) -> int:
    """Its bytes; 0 if it has just gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
