"""Whole files through the engine, page by page."""

from __future__ import annotations

import pytest

from docferry.document import RegionType
from docferry.errors import EngineError
from docferry.model_store import default_store
from docferry.tables import from_html
from docferry_cloud.engine import Effort, PageInput
from docferry_cloud.interpret import interpret
from docferry_cloud.pipeline import PipelineEngine
from tests.cloud.documents import files

pytestmark = pytest.mark.xdist_group("engine")


@pytest.fixture(scope="module")
def engine() -> PipelineEngine:
    return PipelineEngine.load(default_store(), 2)


def test_a_born_digital_page_keeps_the_files_text_and_its_table(engine: PipelineEngine) -> None:
    page = engine.read(PageInput(image=files.pdf()), Effort.AUTO, lambda: False)
    assert {line.provenance for line in page.lines} == {"cloud:pdf-text"}
    assert "Harvest report 1" in [line.text for line in page.lines]
    grids = [from_html(region.html or "").texts() for region in page.regions if region.type is RegionType.TABLE]
    assert grids == [files.ROWS]


def test_a_document_stops_between_two_pages_once_it_is_cancelled(engine: PipelineEngine) -> None:
    data = files.pdf(3, table=False)
    read: list[int] = []

    def cancelled() -> bool:
        return len(read) >= 2

    inputs = [PageInput(image=data, image_page=number) for number in range(3)]
    with pytest.raises(EngineError, match="cancelled"):
        interpret(inputs, engine, Effort.AUTO, cancelled, on_page=read.append)
    assert read == [0, 1]
