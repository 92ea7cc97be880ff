"""Our own reader in a process of its own: image paths in on stdin, one JSON object a line out on stdout.

The twin of `rapidocr_worker.py`, so that both are started, timed and weighed alike. Each answer is
`{"path", "layout_ms", "hint_ms", "full_ms", "lines": [{"polygon", "text"}]}`, or `{"path", "error"}`; times count from
the file's bytes in memory, polygons are in the file's pixels. `parts PATH` answers with what the parts of a hint take
alone: `{"path", "parts_ms": {"decode", "orientation", "layout", "detector"}}`.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from docferry.document import Reading
from docferry.errors import DocferryError
from docferry.model_store import default_store
from docferry.vision.images import decode
from docferry.vision.memory import bound_memory
from docferry_edge.preparation.geometry import apply
from docferry_edge.prepare import Frame, PageImage, PrepareSettings, bounded
from docferry_edge.read import LayoutHint, LinesHint, Reader

_Result = TypeVar("_Result")
_EXIF_ORIENTATION, _FIRST_TURNED = 0x0112, 5


def answer(reader: Reader, path: str) -> dict[str, Any]:
    """Read one picture."""
    data = Path(path).read_bytes()
    started = time.perf_counter()
    page = reader.prepare(Frame(data, path))
    result: dict[str, Any] = {"path": path}
    for event in reader.read(page):
        elapsed = round((time.perf_counter() - started) * 1000, 1)
        if isinstance(event, LayoutHint):
            result["layout_ms"] = elapsed
        elif isinstance(event, LinesHint):
            result["hint_ms"] = elapsed
        elif isinstance(event, Reading):
            result["full_ms"] = elapsed
            result["lines"] = _lines(event, page, data)
    return result


def parts(reader: Reader, path: str) -> dict[str, Any]:
    """The parts of a hint, each alone, on the picture as it is."""
    data = Path(path).read_bytes()
    pixels, decoding = _timed(lambda: bounded(_decoded(data, path), PrepareSettings().longest))
    _, orientation = _timed(lambda: reader.orientation.classify(pixels))
    _, layout = _timed(lambda: reader.layout.detect(pixels))
    _, detector = _timed(lambda: reader.detector.detect(pixels))
    return {
        "path": path,
        "parts_ms": {"decode": decoding, "orientation": orientation, "layout": layout, "detector": detector},
    }


def _decoded(data: bytes, name: str) -> Any:
    settings = PrepareSettings()
    return decode(data, limits=settings.limits, name=name, enough=settings.longest)


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    started = time.perf_counter()
    result = work()
    return result, round((time.perf_counter() - started) * 1000, 1)


def _lines(reading: Reading, page: PageImage, data: bytes) -> list[dict[str, Any]]:
    """Lines with their polygons in the file's pixels; the page may have been turned and straightened."""
    lines = reading.document.lines
    if not lines:
        return []
    width, height = _size(data)
    corners = apply(page.to_frame, np.array([line.polygon for line in lines]).reshape(-1, 2)) * [width, height]
    return [
        {"polygon": polygon.round(1).tolist(), "text": line.text}
        for line, polygon in zip(lines, corners.reshape(-1, 4, 2), strict=True)
    ]


def _size(data: bytes) -> tuple[int, int]:
    """Width and height of the picture as it is looked at, from its header."""
    with Image.open(io.BytesIO(data)) as image:
        turned = image.getexif().get(_EXIF_ORIENTATION, 1) >= _FIRST_TURNED
        return (image.height, image.width) if turned else image.size


def main() -> None:
    """Answer every row on stdin until it closes; the first argument is the number of threads."""
    bound_memory()
    reader = Reader.load(default_store(), int(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for row in sys.stdin:
        path = row.rstrip("\n")
        wanted, path = (parts, path[6:]) if path.startswith("parts ") else (answer, path)
        try:
            result = wanted(reader, path)
        except DocferryError as error:
            result = {"path": path, "error": str(error)}
        print(json.dumps(result, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
