"""What a person puts right: a version of its own, told of, refused where it would overwrite a newer one unseen."""

import uuid

import grpc
import pytest

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.errors import InputError
from docferry.tables import Cell, from_html, placed, to_html
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import document_pb2, event_pb2
from docferry_cloud.correct import Correction, LineChange, corrected

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _request(analysis_id, version=2, **changes):
    lines = [pb.LineCorrection(page=0, line_id="r1.l1", text="TOTAL 9.50")]
    return pb.CorrectRequest(**({"analysis_id": analysis_id, "version": version, "lines": lines} | changes))


async def _read(caller, make_envelope):
    taken = await caller.submit(make_envelope())
    return (await caller.finished(taken.analysis_id)).analysis_id


async def test_a_correction_becomes_a_version_beside_the_others_and_is_told_of(caller, make_envelope):
    analysis_id = await _read(caller, make_envelope)
    total = document_pb2.Field(name="total", value="9.50", normalized="9.50")
    analysis = (await caller("Correct", _request(analysis_id, fields=[total]))).analysis
    assert [version.engine for version in analysis.versions] == ["edge", "echo", "person"]
    document = analysis.versions[-1].interpretation.document
    (line,) = document.pages[0].regions[0].lines
    assert (line.text, line.confidence, line.provenance) == ("TOTAL 9.50", 1.0, "person")
    assert [(field.value, field.confidence) for field in document.fields if field.name == "total"] == [("9.50", 1.0)]
    assert "9.50" in analysis.versions[-1].interpretation.markdown
    assert analysis.versions[1].interpretation.document.pages[0].regions[0].lines[0].text == "TOTAL 9.00"
    events = await caller.events(lambda event: event.type == event_pb2.Event.TYPE_VERSION_ADDED)
    assert events[-1].version == 3


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": 1}, "OUTDATED"),
        ({"version": 9}, "OUTDATED"),
        ({"lines": []}, "INVALID_INPUT"),
        ({"lines": [pb.LineCorrection(page=0, line_id="r9.l9", text="x")]}, "INVALID_INPUT"),
        ({"lines": [pb.LineCorrection(page=7, line_id="r1.l1", text="x")]}, "INVALID_INPUT"),
        ({"lines": [pb.LineCorrection(page=0, line_id="r1.l1", text="a\nb")]}, "INVALID_INPUT"),
        ({"lines": [], "fields": [document_pb2.Field(value="x")]}, "INVALID_INPUT"),
        ({"analysis_id": str(uuid.UUID(int=1))}, "NOT_FOUND"),
    ],
)
async def test_what_cannot_be_put_right_is_refused_and_changes_nothing(caller, make_envelope, reason_of, changes, code):
    analysis_id = await _read(caller, make_envelope)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller("Correct", _request(**({"analysis_id": analysis_id} | changes)))
    assert reason_of(failure.value)[1] == code
    assert len((await caller.get(analysis_id)).versions) == 2


async def test_a_line_of_a_table_is_put_right_in_its_cell_too():
    rows = [("Tea", 0.1, 0.1), ("19.99", 0.5, 0.1), ("Rice", 0.1, 0.2), ("19.99", 0.5, 0.2), ("two words", 0.1, 0.3)]
    lines = tuple(
        Line(f"r1.l{n}", text, ((x, y), (x + 0.2, y), (x + 0.2, y + 0.05), (x, y + 0.05)), 0.9)
        for n, (text, x, y) in enumerate(rows)
    )
    texts = [["Tea", "19.99"], ["Rice", "19.99"], ["two", "words"]]
    html = to_html(placed([Cell(0, 0, text) for text in row] for row in texts))
    table = Region("r1", RegionType.TABLE, (0.0, 0.0, 1.0, 0.5), 0, lines=lines, html=html)
    document = Document((Page(100, 200, (table,)),))
    change = Correction(1, (LineChange(0, "r1.l3", "10.99"),), ())
    (region,) = corrected(document, change).pages[0].regions
    assert [cell.text for cell in from_html(region.html).cells] == ["Tea", "19.99", "Rice", "10.99", "two", "words"]
    assert region.lines[3].text == "10.99"
    with pytest.raises(InputError, match="table r1"):
        corrected(document, Correction(1, (LineChange(0, "r1.l4", "one word"),), ()))


async def test_an_empty_value_says_that_there_is_no_such_field(caller, make_envelope):
    analysis_id = await _read(caller, make_envelope)
    total = document_pb2.Field(name="total")
    analysis = (await caller("Correct", _request(analysis_id, lines=[], fields=[total]))).analysis
    assert [field.name for field in analysis.versions[-1].interpretation.document.fields] == []
