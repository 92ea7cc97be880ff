"""Generates docs/reading.jpg: a sample as the edge reads it, lines coloured by confidence, fields named.

python docs/picture.py
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from docferry import samples
from docferry.document import Line
from docferry_edge.examine import load_examiner
from docferry_edge.prepare import Frame

_SURE, _DOUBTED, _FIELD = (90, 150, 60), (40, 110, 230), (160, 80, 30)  # BGR
_HEIGHT = 900


def main() -> None:
    """Read the thermal receipt and draw what was found."""
    photo = samples.paths()[0]
    examined = load_examiner(2)(Frame(photo.read_bytes(), photo.name))
    page = examined.page.pixels.copy()
    document = examined.assessment.reading.document
    names = {evidence.line: field.name for field in document.fields for evidence in field.evidence}
    for line in document.lines:
        colour = _SURE if (line.confidence or 0.0) >= 0.9 else _DOUBTED
        cv2.polylines(page, [_points(line, page)], True, _FIELD if line.id in names else colour, 2, cv2.LINE_AA)
        if line.id in names:
            x, y = _points(line, page)[0]
            place = (int(x), int(y) - 4)
            cv2.putText(page, names[line.id], place, cv2.FONT_HERSHEY_SIMPLEX, 0.6, _FIELD, 2, cv2.LINE_AA)
    scale = _HEIGHT / page.shape[0]
    small = cv2.resize(page, (round(page.shape[1] * scale), _HEIGHT), interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(Path(__file__).with_name("reading.jpg")), small, [cv2.IMWRITE_JPEG_QUALITY, 80])


def _points(line: Line, page: np.ndarray) -> np.ndarray:
    height, width = page.shape[:2]
    return np.array([(round(x * width), round(y * height)) for x, y in line.polygon], dtype=np.int32)


if __name__ == "__main__":
    main()
