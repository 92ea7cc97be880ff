"""What a PDF's process and the service say to each other: frames of a JSON head and bytes, over two pipes.

JSON and raw pixels, nothing that could run: the process has looked at a stranger's file, and is not to be trusted.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HEAD = struct.Struct(">II")
"""Bytes of the JSON, and of what comes after it."""

COUNT, READ = "count", "read"
"""What may be asked of a file: how many pages it has, each of them opened once; and one of its pages."""

AT_PAGE = "at_page"
"""The sign of life of COUNT: the page that it opens next."""

LOCKED, DAMAGED, NO_PAGE = "locked", "damaged", "no_page"


def frame(head: dict[str, Any], body: bytes | memoryview = b"") -> list[bytes | memoryview]:
    """A frame, as pieces to be written one after the other."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return [HEAD.pack(len(text), len(body)) + text, body]
