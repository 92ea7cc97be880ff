"""What people corrected, as labels: one append-only file in the agent's state folder, fsynced line by line.

It holds numbers and hashes, never a text or a picture. A document corrected again counts as it was corrected last.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from docferry_edge.calibrating.labels import LabelledDocument, dump_label, load_label
from docferry_edge.durable import full_disk_named

FILE = "labels.jsonl"
"""Its name in the state folder."""


def add_correction(folder: Path, document: LabelledDocument) -> None:
    """Store one document's labels; they are on the disk when this returns.

    What a power cut left of a half-written line is cut off first.

    Raises:
        StorageFull: The disk is full; earlier labels are untouched.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    new = not file.exists()
    line = f"{dump_label(document)}\n".encode()
    with full_disk_named(folder), os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.truncate(_whole_lines(stream.read()))
        stream.seek(0, os.SEEK_END)
        stream.write(line)
        stream.flush()
        os.fsync(stream.fileno())
    if new:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def corrections(folder: Path, reader: str | None = None) -> list[LabelledDocument]:
    """All corrected documents, each as it was corrected last; of one reader only, if it is named.

    Raises:
        InputError: A line of the file is no label.
    """
    file = folder / FILE
    if not file.exists():
        return []
    data = file.read_bytes()
    latest: dict[str, LabelledDocument] = {}
    for number, line in enumerate(data[: _whole_lines(data)].decode().splitlines(), 1):
        document = load_label(line, f"{file}, line {number}")
        latest[document.id] = document
    return [document for document in latest.values() if reader in {None, document.reader}]


def _whole_lines(data: bytes) -> int:
    """Length of what ends with a line's end."""
    return data.rfind(b"\n") + 1
