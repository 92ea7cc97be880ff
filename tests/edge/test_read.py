import io
import itertools
import re
import uuid

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docferry.document import Degradation, Document, Reading, RegionType
from docferry.errors import ModelError
from docferry.model_store import ModelStore, default_store
from docferry.model_store.manifest import packaged_manifest
from docferry.reading_order import assemble_page
from docferry.route import CropPlan, Decision, Plan, Route
from docferry.v1 import analysis_service_pb2
from docferry_edge.assess import assess
from docferry_edge.desk import Identity
from docferry_edge.examine import default_calibration, examine
from docferry_edge.pack import pack
from docferry_edge.pictures import Pictures
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.read import Event, LayoutHint, LineRead, LinesHint, Reader, ReadSettings
from docferry_edge.route import Policy, plan

RECEIPT = (
    ("HARBOUR BOOKS", None),
    ("12 Quay Street, Port Lowell", None),
    ("Date 14/03/2025 10:42", None),
    ("Tide tables", "12.50"),
    ("Blue notebook A5", "4.20"),
    ("Pencil set", "7.95"),
    ("Paper bag", "0.10"),
    ("TOTAL", "24.75"),
    ("CASH", "30.00"),
    ("CHANGE", "5.25"),
    ("Thank you and come again", None),
)


@pytest.fixture(scope="module")
def reader():
    return Reader.load(default_store(), threads=1)


def receipt(width=620, pitch=52):
    page = Image.new("RGB", (width, 120 + pitch * len(RECEIPT)), "white")
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(26)
    for number, (left, right) in enumerate(RECEIPT):
        pen.text((50, 60 + pitch * number), left, "black", font)
        if right is not None:
            pen.text((width - 140, 60 + pitch * number), right, "black", font)
    return page


def two_columns():
    page = Image.new("RGB", (1240, 1100), "white")
    pen = ImageDraw.Draw(page)
    pen.text((300, 70), "Notes on the Harbour", "black", ImageFont.load_default(48))
    font = ImageFont.load_default(26)
    for x, side in ((70, "left"), (660, "right")):
        for number in range(16):
            pen.text((x, 200 + 48 * number), f"Sentence {number} of the {side} column here", "black", font)
    return page


def prepared(reader, image):
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return reader.prepare(Frame(buffer.getvalue(), "page.png"))


def texts(reading):
    return [line.text for line in reading.document.lines]


def expected_rows():
    return [part for row in RECEIPT for part in row if part is not None]


def test_a_receipt_is_read_exactly_and_row_by_row(reader):
    reading = reader.read_all(prepared(reader, receipt()))
    assert texts(reading) == expected_rows()


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_receipt_reads_the_same(reader, degrees):
    reading = reader.read_all(prepared(reader, receipt().rotate(-degrees, expand=True)))
    assert texts(reading) == expected_rows()
    assert reading.document.pages[0].quality.orientation == degrees


def test_two_columns_are_read_one_after_the_other(reader):
    reading = reader.read_all(prepared(reader, two_columns()))
    assert texts(reading) == [
        "Notes on the Harbour",
        *(f"Sentence {number} of the left column here" for number in range(16)),
        *(f"Sentence {number} of the right column here" for number in range(16)),
    ]


def test_hints_come_before_lines_and_the_reading_comes_last(reader):
    events = list(reader.read(prepared(reader, receipt())))
    kinds = [kind for kind, _ in itertools.groupby(type(event) for event in events)]
    assert kinds == [LayoutHint, LinesHint, LineRead, Reading]


def test_a_smaller_detection_still_reads_plain_print_and_says_what_it_left_out(reader):
    page = prepared(reader, receipt(width=1240, pitch=100))
    *_, full = reader.read(page)
    *_, spared = reader.read(page, Degradation.SMALLER_DETECTION)
    assert (full.degradation, spared.degradation) == (Degradation.NONE, Degradation.SMALLER_DETECTION)
    assert sorted(texts(spared)) == sorted(expected_rows())


def test_structure_only_finds_lines_reads_none_and_sends_the_page(reader):
    page = prepared(reader, receipt())
    *hints, reading = reader.read(page, Degradation.STRUCTURE_ONLY)
    assert [type(hint) for hint in hints] == [LayoutHint, LinesHint]
    assert len(hints[1].polygons) == len(expected_rows())
    assert (texts(reading), reading.degradation) == ([], Degradation.STRUCTURE_ONLY)
    assessed = assess(reading, default_calibration())
    assert plan(assessed, Policy(), "any").route.decision is Decision.PAGE


def test_lines_stream_in_reading_order_and_are_those_of_the_reading(reader):
    small = Reader(
        reader.detector,
        reader.recogniser,
        reader.layout,
        reader.orientation,
        reader.name,
        reader.layout_name,
        ReadSettings(first_lines=2, lines=3),
    )
    *hints_and_lines, reading = small.read(prepared(reader, two_columns()))
    streamed = tuple(event.line for event in hints_and_lines if isinstance(event, LineRead))
    assert streamed == reading.document.lines
    assert texts(reading) == texts(reader.read_all(prepared(reader, two_columns())))


def test_the_lines_hint_has_a_polygon_for_every_line_read(reader):
    events: list[Event] = list(reader.read(prepared(reader, receipt())))
    hint = next(event for event in events if isinstance(event, LinesHint))
    assert [event.line.polygon for event in events if isinstance(event, LineRead)] == list(hint.polygons)


class Counting:
    """A network that counts its runs."""

    def __init__(self, network):
        self.network, self.runs = network, 0

    def run(self, tensor):
        self.runs += 1
        return self.network.run(tensor)


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_a_consumer_that_stops_costs_nothing_more(reader, stop_after):
    from dataclasses import replace

    networks = [Counting(part.network) for part in (reader.layout, reader.detector, reader.recogniser)]
    counted = replace(
        reader,
        layout=replace(reader.layout, network=networks[0]),
        detector=replace(reader.detector, network=networks[1]),
        recogniser=replace(reader.recogniser, network=networks[2]),
        settings=ReadSettings(first_lines=1, lines=1),
    )
    events = counted.read(prepared(reader, receipt()))
    for _ in range(stop_after):
        next(events)
    events.close()
    assert [network.runs for network in networks] == [1, int(stop_after > 1), int(stop_after > 2)]
    assert list(events) == []


def test_an_all_black_photo_gives_no_lines_and_says_why(reader):
    page = prepared(reader, Image.new("RGB", (800, 1200)))
    events = list(reader.read(page))
    assert [type(event) for event in events] == [LayoutHint, LinesHint, Reading]
    (found,) = events[-1].document.pages
    assert found.lines == ()
    assert "light" in found.quality.hint
    assert (found.width, found.height) == (800, 1200)


@pytest.mark.parametrize("shape", [(1, 1), (2, 500), (500, 2), (64, 64)])
def test_tiny_pictures_crash_nothing(reader, shape):
    noise = np.random.default_rng(5).integers(0, 255, (*shape, 3), dtype=np.uint8)
    assert isinstance(reader.read_all(PageImage(noise)).document, Document)


def test_everything_says_who_read_it(reader):
    reading = reader.read_all(prepared(reader, receipt()))
    assert re.fullmatch(r"ppocrv6-small(-int8)?@[0-9a-f]{6}", reading.reader)
    assert {line.provenance for line in reading.document.lines} == {f"edge:{reading.reader}"}
    assert all(
        region.provenance.startswith("edge:cdla@") for region in reading.document.pages[0].regions if region.score
    )


def test_text_height_and_scores_are_reported(reader):
    reading = reader.read_all(prepared(reader, receipt()))
    (page,) = reading.document.pages
    assert 20 < page.quality.text_height < 50
    assert all(0.5 < line.score <= 1 for line in page.lines)
    assert all(line.confidence is None for line in page.lines)


def test_both_ends_arrange_a_page_alike(reader):
    events = list(reader.read(prepared(reader, two_columns())))
    page = events[-1].document.pages[0]
    again = assemble_page(page.width, page.height, events[0].regions, page.lines[::-1], page.quality)
    assert [line.text for line in again.lines] == [line.text for line in page.lines]
    assert {region.type for region in again.regions} <= set(RegionType)


def test_missing_models_are_named_with_the_command_that_brings_them(tmp_path):
    with pytest.raises(ModelError) as caught:
        Reader.load(ModelStore(tmp_path, packaged_manifest()))
    assert "docferry models pull" in caught.value.remedy


def test_every_page_of_a_tiff_becomes_a_page_of_one_document_and_goes_up_under_its_number(reader):
    buffer = io.BytesIO()
    sheets = [receipt(), two_columns(), receipt(width=700)]
    sheets[0].save(buffer, "TIFF", save_all=True, append_images=sheets[1:])
    heard: list[tuple[int, str]] = []
    examined = examine(
        Frame(buffer.getvalue(), "scan.tiff"),
        reader,
        default_calibration(),
        lambda notice, page: heard.append((page, type(notice).__name__)),
    )
    document = examined.assessment.reading.document
    assert [len(page.lines) for page in document.pages] == [len(expected_rows()), 33, len(expected_rows())]
    assert [page for page, kind in heard if kind == "PageImage"] == [0, 1, 2]
    assert {evidence.page for field in document.fields for evidence in field.evidence} <= {0, 1, 2}
    identity = Identity(str(uuid.uuid4()), str(uuid.uuid4()), "scan.tiff", 1, 1.0)
    both = (CropPlan(0, (0.1, 0.1, 0.9, 0.3)), CropPlan(2, (0.1, 0.1, 0.9, 0.3)))
    for decision, crops, wanted in (
        (Decision.PAGE, (), [("page", 0), ("page-p2", 1), ("page-p3", 2)]),
        (
            Decision.CROPS,
            both,
            [("crop-1", 0), ("crop-1-p3", 2)],
        ),
    ):
        packed = pack(identity, examined, Plan(Route(decision), crops), Pictures())
        envelope = analysis_service_pb2.SubmitRequest.FromString(packed.request).envelope
        assert [(part.part_id, part.page) for part in envelope.parts] == wanted
