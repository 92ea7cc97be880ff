import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docferry.document import Page, RegionType
from docferry.errors import EngineError, ImageTooLarge, InputError, ModelError, UnreadableImage
from docferry.model_store import ModelStore, default_store, packaged_manifest
from docferry.v1 import envelope_pb2
from docferry.vision.crops import encode_crop
from docferry.vision.images import encode_webp
from docferry_cloud.engine import Crop, Effort, PageInput
from docferry_cloud.interpreter import page_inputs
from docferry_cloud.pipeline import PipelineEngine

ROWS = (
    ("HARBOUR BOOKS", None),
    ("12 Quay Street, Port Lowell", None),
    ("Date 14/03/2025 10:42", None),
    ("Tide tables", "12.50"),
    ("Blue notebook A5", "4.20"),
    ("TOTAL", "16.70"),
    ("CASH", "20.00"),
)
TEXTS = [text for row in ROWS for text in row if text]


@pytest.fixture(scope="module")
def engine():
    return PipelineEngine.load(default_store(), 2)


@pytest.fixture(scope="module")
def picture():
    page = Image.new("RGB", (620, 120 + 52 * len(ROWS)), "white")
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(26)
    for number, (left, right) in enumerate(ROWS):
        pen.text((40, 50 + 52 * number), left, "black", font)
        if right:
            pen.text((580, 50 + 52 * number), right, "black", font, anchor="ra")
    return np.ascontiguousarray(np.asarray(page)[:, :, ::-1])


@pytest.fixture(scope="module")
def whole(engine, picture):
    return engine.read(PageInput(image=png(picture)), Effort.AUTO, never)


def never():
    return False


def png(pixels):
    return cv2.imencode(".png", pixels)[1].tobytes()


def texts(page):
    return [line.text for line in page.lines]


def test_every_page_of_a_tiff_is_read(engine, picture):
    buffer = io.BytesIO()
    first, second = Image.new("RGB", (300, 400), "white"), Image.fromarray(picture[:, :, ::-1])
    first.save(buffer, "TIFF", save_all=True, append_images=[second])
    original = envelope_pb2.Part(part_id="original", kind=envelope_pb2.PART_KIND_ORIGINAL, data=buffer.getvalue())
    pages = page_inputs(envelope_pb2.Envelope(parts=[original]), {})
    assert [texts(engine.read(page, Effort.AUTO, never)) for page in pages] == [[], TEXTS]


def test_an_original_that_is_no_picture_is_left_for_the_engine_to_refuse(engine):
    original = envelope_pb2.Part(part_id="original", kind=envelope_pb2.PART_KIND_ORIGINAL)
    (page,) = page_inputs(envelope_pb2.Envelope(parts=[original]), {"original": b"no picture"})
    with pytest.raises(UnreadableImage):
        engine.read(page, Effort.AUTO, never)


def crop_of(picture, box, name="crop-1"):
    data, covered = encode_crop(picture, box, margin=0.0, grey=True)
    return Crop(name, covered, data)


def spoiled(page, text, instead, score=0.6):
    """The page with one line as a weak reader would have it, and nothing calibrated."""
    regions = tuple(
        replace(
            region,
            lines=tuple(
                replace(line, text=instead, score=score, confidence=None, provenance="edge:x@1")
                if line.text == text
                else replace(line, confidence=None)
                for line in region.lines
            ),
        )
        for region in page.regions
    )
    return replace(page, regions=regions)


def test_a_whole_page_is_read_in_order(whole):
    assert texts(whole) == TEXTS
    assert (whole.width, whole.height) == (620, 120 + 52 * len(ROWS))
    assert whole.quality.orientation == 0
    assert whole.quality.text_height > 10
    assert all(line.provenance.startswith("cloud:deep-ppocrv6-rec-small@") for line in whole.lines)
    assert [region.order for region in whole.regions] == list(range(len(whole.regions)))


def test_a_page_on_its_head_is_turned(engine, picture):
    page = engine.read(PageInput(image=png(cv2.rotate(picture, cv2.ROTATE_180))), Effort.AUTO, never)
    assert page.quality.orientation == 180
    assert texts(page) == TEXTS


def test_a_blank_page_has_no_lines(engine):
    page = engine.read(PageInput(image=png(np.full((400, 300, 3), 255, np.uint8))), Effort.AUTO, never)
    assert page.lines == ()


def test_a_sharp_crop_corrects_what_a_blurred_picture_read_wrong(engine, picture):
    small = cv2.resize(picture, None, fx=0.27, fy=0.27, interpolation=cv2.INTER_AREA)
    blurred = cv2.resize(small, (picture.shape[1], picture.shape[0]), interpolation=cv2.INTER_CUBIC)
    first = engine.read(PageInput(image=png(blurred)), Effort.AUTO, never)
    before = [text for text in TEXTS if text in texts(first)]
    assert len(before) < len(TEXTS)
    edge = spoiled(first, "", "")
    after = engine.read(PageInput(reading=edge, crops=(crop_of(picture, (0.0, 0.0, 1.0, 1.0)),)), Effort.AUTO, never)
    assert [text for text in TEXTS if text in texts(after)] == TEXTS
    assert {line.id for line in edge.lines} <= {line.id for line in after.lines}


def test_a_crop_of_one_line_replaces_this_line_alone(engine, picture, whole):
    edge = spoiled(whole, "16.70", "1670", score=1.0)
    wrong = next(line for line in edge.lines if line.text == "1670")
    x0, y0, x1, y1 = wrong.box
    crop = crop_of(picture, (x0 - 0.02, y0 - 0.01, x1 + 0.02, y1 + 0.01))
    after = engine.read(PageInput(reading=edge, crops=(crop,)), Effort.AUTO, never)
    assert texts(after) == TEXTS
    changed = [line for line, old in zip(after.lines, edge.lines, strict=True) if line.confidence is not None]
    assert [line.id for line in changed] == [wrong.id]
    assert changed[0].provenance.startswith("cloud:")


def test_a_line_the_edge_missed_is_added_where_it_stands(engine, picture, whole):
    gone = next(line for line in whole.lines if line.text == "16.70")
    regions = tuple(
        replace(region, lines=tuple(line for line in region.lines if line is not gone)) for region in whole.regions
    )
    crop = crop_of(picture, (0.0, 0.5, 1.0, 0.9))
    after = engine.read(PageInput(reading=replace(whole, regions=regions), crops=(crop,)), Effort.AUTO, never)
    assert texts(after) == TEXTS
    added = next(line for line in after.lines if line.text == "16.70")
    assert added.box == pytest.approx(gone.box, abs=0.02)


def test_without_crops_the_edge_reading_stands(engine, picture, whole):
    overview = encode_webp(picture, 20, grey=True)
    for given in (PageInput(reading=whole), PageInput(reading=whole, overview=overview)):
        assert engine.read(given, Effort.AUTO, never) == whole


def test_an_overview_without_a_reading_is_read(engine, picture):
    page = engine.read(PageInput(overview=encode_webp(picture, 60, grey=True)), Effort.AUTO, never)
    assert "TOTAL" in texts(page)


def test_neither_reading_nor_picture_is_an_error(engine):
    with pytest.raises(InputError, match="neither"):
        engine.read(PageInput(), Effort.AUTO, never)


def hostile():
    webp = encode_webp(np.zeros((40, 200, 3), np.uint8))
    return {
        "empty": b"",
        "text": b"not a picture at all",
        "truncated": webp[: len(webp) // 2],
        "noise": bytes(range(256)),
    }


@pytest.mark.parametrize("kind", ["empty", "text", "truncated", "noise"])
def test_hostile_bytes_are_an_unreadable_image(engine, whole, kind):
    data = hostile()[kind]
    with pytest.raises(UnreadableImage, match="crop-1"):
        engine.read(PageInput(reading=whole, crops=(Crop("crop-1", (0, 0, 1, 1), data),)), Effort.AUTO, never)
    with pytest.raises(UnreadableImage):
        engine.read(PageInput(image=data), Effort.AUTO, never)


def test_a_crop_that_unpacks_to_too_many_pixels_is_refused_unopened(engine, whole):
    buffer = io.BytesIO()
    Image.new("1", (9000, 9000)).save(buffer, "PNG")
    crop = Crop("crop-1", (0, 0, 1, 1), buffer.getvalue())
    with pytest.raises(ImageTooLarge):
        engine.read(PageInput(reading=whole, crops=(crop,)), Effort.AUTO, never)


def test_a_crop_without_area_changes_nothing(engine, picture, whole):
    flat = replace(crop_of(picture, (0.0, 0.0, 1.0, 1.0)), box=(0.2, 0.3, 0.2, 0.3))
    assert engine.read(PageInput(reading=whole, crops=(flat,)), Effort.AUTO, never) == whole


def test_a_crop_of_one_pixel_changes_nothing(engine, picture, whole):
    crop = Crop("crop-1", (0.0, 0.0, 0.01, 0.01), encode_webp(picture[:1, :1]))
    assert engine.read(PageInput(reading=whole, crops=(crop,)), Effort.AUTO, never) == whole


def test_reading_stops_between_crops_once_nobody_waits(engine, picture, whole):
    edge = spoiled(whole, "TOTAL", "T0TAL")
    crops = tuple(crop_of(picture, (0.0, 0.0, 1.0, 1.0), f"crop-{number}") for number in range(3))
    asked = 0

    def cancelled():
        nonlocal asked
        asked += 1
        return asked > 5

    with pytest.raises(EngineError, match="cancelled"):
        engine.read(PageInput(reading=edge, crops=crops), Effort.AUTO, cancelled)
    # A page read after one that was cancelled finds every lane free again.
    assert "TOTAL" in texts(engine.read(PageInput(reading=edge, crops=crops[:1]), Effort.AUTO, never))


def test_several_threads_get_the_same_answer(engine, picture, whole):
    with ThreadPoolExecutor(3) as pool:
        pages = list(pool.map(lambda _: engine.read(PageInput(image=png(picture)), Effort.AUTO, never), range(3)))
    assert [texts(page) for page in pages] == [texts(whole)] * 3


def test_a_missing_model_names_the_command_that_brings_it(tmp_path):
    with pytest.raises(ModelError, match="docferry models pull"):
        PipelineEngine.load(ModelStore(tmp_path, packaged_manifest()), 1)


def test_a_strip_longer_than_sixteen_bits_is_read_to_its_end(engine):
    strip = np.full((40_000, 60, 3), 255, np.uint8)
    cv2.putText(strip, "END", (4, 39_950), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (0, 0, 0), 2)
    page = engine.read(PageInput(image=png(strip)), Effort.AUTO, never)
    assert isinstance(page, Page)
    assert all(region.type in RegionType for region in page.regions)
    assert all(0.0 <= side <= 1.0 for line in page.lines for point in line.polygon for side in point)
