"""Capture from a watched folder: which files have come to rest there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from docferry.errors import ConfigurationError

_UNFINISHED = (".part", ".tmp", ".crdownload", ".swp")
"""Names that programs give to files they are still writing."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file that has come to rest. `source` stays the same as long as it is the same file with the same content."""

    path: Path
    source: str

    @property
    def name(self) -> str:
        """The file's name as text: in another encoding than UTF-8 it would be taken by no database, log or wire."""
        return readable(self.path)


@dataclass(slots=True)
class Inbox:
    """Looks into one folder, not below it, again and again.

    A file is at rest once its size and time have not changed for `settle_s` seconds by the monotonic clock. Names
    that begin with a dot or end like unfinished downloads are left alone: writing under such a name and renaming
    is the surest way to hand a file in.
    """

    folder: Path
    settle_s: float = 0.15
    _seen: dict[str, float] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def scan(self) -> list[Found]:
        """Files at rest that were not `taken`, oldest name first.

        Raises:
            ConfigurationError: The folder is not there or cannot be read.
        """
        try:
            paths = sorted(path for path in self.folder.iterdir() if _is_candidate(path))
        except OSError as error:
            raise ConfigurationError(
                f"{self.folder}: the inbox cannot be read: {error.strerror}",
                remedy="create it, or set inbox.directory",
            ) from None
        now = time.monotonic()
        present: dict[str, Path] = {}
        for path in paths:
            source = source_of(path)
            if source:
                present[source] = path
        self._seen = {source: self._seen.get(source, now) for source in present}
        self._taken &= present.keys()
        return [
            Found(path, source)
            for source, path in present.items()
            if source not in self._taken and now - self._seen[source] >= self.settle_s
        ]

    def taken(self, found: Found) -> None:
        """This file is safe in the outbox: do not offer it again."""
        self._taken.add(found.source)


def _is_candidate(path: Path) -> bool:
    return not path.name.startswith(".") and not path.name.lower().endswith(_UNFINISHED)


def source_of(path: Path) -> str:
    """Identity of a file's content without reading it; empty for what is no file (any more)."""
    try:
        status = path.stat()
    except OSError:
        return ""
    if not path.is_file():
        return ""
    return f"{readable(path)}|{status.st_ino}|{status.st_size}|{status.st_mtime_ns}"


def readable(path: Path) -> str:
    """A path's last part with what is not UTF-8 replaced."""
    return os.fsencode(path.name).decode("utf-8", "replace")
