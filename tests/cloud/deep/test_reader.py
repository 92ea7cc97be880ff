import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docferry.errors import EngineError
from docferry.model_store import default_store
from docferry_cloud.deep.reader import DeepReader, Known, default_calibration
from docferry_cloud.deep.vote import Witness

ROWS = ("HARBOUR BOOKS", "Date 14/03/2025", "TOTAL 16.70")


@pytest.fixture(scope="module")
def reader():
    return DeepReader.load(default_store(), threads=2)


@pytest.fixture(scope="module")
def picture():
    page = Image.new("RGB", (420, 40 + 60 * len(ROWS)), "white")
    pen = ImageDraw.Draw(page)
    for number, row in enumerate(ROWS):
        pen.text((30, 30 + 60 * number), row, "black", ImageFont.load_default(26))
    return np.ascontiguousarray(np.asarray(page)[:, :, ::-1])


def never():
    return False


def in_order(lines):
    return [line.text for line in sorted(lines, key=lambda line: line.quad[0][1])]


def test_a_page_is_read_and_every_line_carries_its_confidence(reader, picture):
    lines = reader.read(picture, never)
    assert in_order(lines) == list(ROWS)
    assert all(line.confidence is not None and line.confidence > 0.5 for line in lines)


def test_skimming_reads_once_and_claims_no_confidence(reader, picture):
    lines = reader.skim(picture, never)
    assert in_order(lines) == list(ROWS)
    assert {line.confidence for line in lines} == {None}


def test_asking_the_helpers_everything_changes_no_clear_line(reader, picture):
    assert in_order(reader.read(picture, never, everything=True)) == list(ROWS)


def test_a_known_line_is_voted_on_with_its_first_reading_and_a_sure_one_is_left_alone(reader, picture):
    places = {line.text: line.quad for line in reader.skim(picture, never)}
    wrong = Known(places["TOTAL 16.70"], Witness("TOTAL 1670", (0.6,) * 10))
    read = reader.reread(picture, [wrong], [places["HARBOUR BOOKS"]], never)
    assert [line.text for line in read.known] == ["TOTAL 16.70"]
    assert [line.text for line in read.found] == ["Date 14/03/2025"]


def test_a_confident_first_reading_of_a_blank_crop_stands_but_loses_its_confidence(reader):
    blank = np.full((60, 300, 3), 255, np.uint8)
    place = np.array([[10, 10], [290, 10], [290, 50], [10, 50]], dtype=np.float32)
    (line,) = reader.reread(blank, [Known(place, Witness("GONE", (0.9,) * 4))], [], never).known
    assert line.text in {"", "GONE"}
    # As little as the calibration ever gives.
    assert line.confidence == pytest.approx(reader.calibration.knots[0][1])


def test_reading_stops_once_nobody_waits(reader, picture):
    with pytest.raises(EngineError, match="cancelled"):
        reader.read(picture, lambda: True)


def test_the_shipped_calibration_is_for_this_reader(reader):
    calibration = default_calibration()
    assert calibration.reader == reader.provenance
    assert calibration.lines > 1000
