"""Tables read from drawn pictures, through the engine."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from docferry.document import RegionType
from docferry.model_store import default_store
from docferry.tables import from_html
from docferry_cloud.engine import Effort, PageInput
from docferry_cloud.pipeline import PipelineEngine

pytestmark = pytest.mark.xdist_group("engine")

ROWS = [["Item", "Count", "Price"], ["Walnuts", "12", "3.50"], ["Almonds", "7", "4.25"], ["Raisins", "31", "2.80"]]


@pytest.fixture(scope="module")
def engine() -> PipelineEngine:
    return PipelineEngine.load(default_store(), 2)


def drawn(rows: list[list[str]], scale: float) -> bytes:
    """A ruled table as PNG, `scale` 1 giving print 20 pixels high."""
    picture = np.full((80 + 60 * len(rows), 860, 3), 255, dtype=np.uint8)
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            place = (50 + 270 * column, 80 + 60 * number)
            cv2.putText(picture, text, place, cv2.FONT_HERSHEY_SIMPLEX, 1.0, (0, 0, 0), 2, cv2.LINE_AA)
    for y in range(len(rows) + 1):
        cv2.line(picture, (30, 40 + 60 * y), (830, 40 + 60 * y), (0, 0, 0), 2)
    small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return cv2.imencode(".png", small)[1].tobytes()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_picture_of_a_table_becomes_its_cells(engine: PipelineEngine, scale: float) -> None:
    page = engine.read(PageInput(image=drawn(ROWS, scale)), Effort.AUTO, lambda: False)
    tables = [region for region in page.regions if region.type is RegionType.TABLE]
    assert len(tables) == 1
    assert from_html(tables[0].html or "").texts() == ROWS
