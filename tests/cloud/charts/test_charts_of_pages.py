"""Charts through the engine: as a picture by itself, and on a page among text."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.generator.charts import ChartShape, draw_chart
from benchmarks.generator.make import draw
from benchmarks.generator.truth import Kind, Split
from docferry.document import Document, RegionType
from docferry.markdown import render
from docferry.model_store import default_store
from docferry.tables import from_html
from docferry_cloud.engine import Effort, PageInput
from docferry_cloud.meaning import answer
from docferry_cloud.pipeline import PipelineEngine

pytestmark = pytest.mark.xdist_group("engine")


@pytest.fixture(scope="module")
def engine() -> PipelineEngine:
    return PipelineEngine.load(default_store(), 2)


def png(image: np.ndarray) -> bytes:
    return cv2.imencode(".png", image)[1].tobytes()


def values(html: str) -> list[list[float]]:
    return [[float(text) for text in row[1:]] for row in from_html(html).texts()[1:]]


def test_a_chart_by_itself_becomes_its_values_and_answers_questions(engine: PipelineEngine) -> None:
    drawn = draw_chart(3, Split.CALIBRATE, ChartShape.LYING_BARS)
    page = engine.read(PageInput(image=png(drawn.pixels)), Effort.AUTO, lambda: False)
    (chart,) = [region for region in page.regions if region.type is RegionType.CHART]
    assert chart.html is not None
    truth = drawn.truth.series[0][1]
    assert [row[0] for row in values(chart.html)] == pytest.approx(list(truth), rel=0.05)
    document = Document((page,))
    assert drawn.truth.categories[0] in render(document)
    found = answer(document, f"What is the value of {drawn.truth.categories[1]}?")
    assert float(found.answer) == pytest.approx(truth[1], rel=0.05)
    assert 0 < found.confidence <= 0.6
    assert found.evidence


def test_a_chart_on_a_page_is_measured_and_the_text_around_it_stays(engine: PipelineEngine) -> None:
    drawn = draw_chart(1, Split.CALIBRATE, ChartShape.BARS)
    page = np.full((1754, 1240, 3), 255, dtype=np.uint8)
    text = draw(Kind.PAGE, 5, Split.CALIBRATE).pixels
    column = cv2.resize(text, (1240, round(1240 * text.shape[0] / text.shape[1])))[:900]
    page[: len(column)] = column
    high, wide = drawn.pixels.shape[:2]
    shown = cv2.resize(drawn.pixels, (900, round(900 * high / wide)), interpolation=cv2.INTER_AREA)
    page[960 : 960 + len(shown), 170:1070] = shown
    read = engine.read(PageInput(image=png(page)), Effort.FAST, lambda: False)
    charts = [region for region in read.regions if region.type is RegionType.CHART and region.html]
    assert len(charts) == 1
    found, truth = values(charts[0].html or ""), list(zip(*(series for _, series in drawn.truth.series), strict=True))
    right = sum(
        abs(a - b) <= 0.05 * b for row, want in zip(found, truth, strict=True) for a, b in zip(row, want, strict=True)
    )
    assert right >= 0.8 * sum(map(len, truth))
    assert sum(len(line.text) for line in read.lines) > 500
