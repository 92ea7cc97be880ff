"""Our own reader in a process of its own: image paths in on stdin, one JSON object a line out on stdout.

The twin of `rapidocr_worker.py`, so that both are started, timed and weighed alike. Each answer is
`{"path", "hint_ms", "full_ms", "lines": [text]}`, or `{"path", "error"}`; times count from the file's bytes in memory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from docferry.document import Reading
from docferry.errors import DocferryError
from docferry.model_store import default_store
from docferry_edge.prepare import Frame
from docferry_edge.read import LinesHint, Reader


def answer(reader: Reader, path: str) -> dict[str, Any]:
    """Read one picture."""
    data = Path(path).read_bytes()
    started = time.perf_counter()
    result: dict[str, Any] = {"path": path}
    for event in reader.read(reader.prepare(Frame(data, path))):
        elapsed = round((time.perf_counter() - started) * 1000, 1)
        if isinstance(event, LinesHint):
            result["hint_ms"] = elapsed
        elif isinstance(event, Reading):
            result["full_ms"] = elapsed
            result["lines"] = [line.text for line in event.document.lines]
    return result


def main() -> None:
    """Answer every path on stdin until it closes; the first argument is the number of threads."""
    reader = Reader.load(default_store(), int(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for row in sys.stdin:
        path = row.rstrip("\n")
        try:
            result = answer(reader, path)
        except DocferryError as error:
            result = {"path": path, "error": str(error)}
        print(json.dumps(result, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
