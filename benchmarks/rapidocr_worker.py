"""Stock RapidOCR in a process of its own: image paths in on stdin, one JSON object a line out on stdout.

Runs in the environment that holds `rapidocr` and nothing of Docferry, so it imports nothing of this project:
`.venv-rapidocr/bin/python benchmarks/rapidocr_worker.py`. Each answer is
`{"path", "ms", "lines": [{"polygon": [[x, y] * 4], "text", "score"}]}`, or `{"path", "error"}`;
the first line, before any input is read, is `{"ready": true, "version", "start_ms", "rss_mb"}`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any


def _read(engine: Any, path: str) -> dict[str, Any]:
    started = time.perf_counter()
    result = engine(path)
    lines = [
        {"polygon": [[float(x), float(y)] for x, y in polygon], "text": text, "score": float(score)}
        for polygon, text, score in zip(
            () if result.boxes is None else result.boxes, result.txts or (), result.scores or (), strict=True
        )
    ]
    return {"path": path, "ms": round((time.perf_counter() - started) * 1000, 1), "lines": lines}


def main() -> None:
    """Answer every path on stdin until it closes."""
    started = time.perf_counter()
    engine = import_module("rapidocr").RapidOCR(params={"Global.log_level": "error"})
    ready = {
        "ready": True,
        "version": version("rapidocr"),
        "start_ms": round((time.perf_counter() - started) * 1000, 1),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(ready), flush=True)
    for row in sys.stdin:
        path = row.rstrip("\n")
        try:
            answer = _read(engine, path)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is this picture's result
            answer = {"path": path, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
