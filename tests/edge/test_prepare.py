import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from docferry.document import DOUBTFUL_ORIENTATION, Quality
from docferry.errors import ImageTooLarge, UnreadableImage
from docferry.model_store import default_store
from docferry.vision.images import ImageLimits
from docferry.vision.orientation import Orientation, OrientationClassifier
from docferry.vision.sessions import open_network
from docferry_edge.preparation.quality import hint
from docferry_edge.prepare import (
    Frame,
    PrepareSettings,
    Shot,
    measure,
    prepare,
    turn_upright,
)


@pytest.fixture(scope="module")
def classifier():
    return OrientationClassifier.of(open_network(default_store().path("page-orientation"), threads=1))


def letter(width=900, height=1200):
    page = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(28)
    for number in range(14):
        pen.text((60, 60 + 60 * number), f"Line number {number} of an ordinary letter", "black", font)
    return page


def frame(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return Frame(buffer.getvalue(), "letter")


def test_an_upright_page_comes_through_unchanged(classifier):
    image = letter()
    page = prepare(frame(image), classifier)
    assert (page.pixels[:, :, ::-1] == np.asarray(image)).all()
    assert page.quality.orientation == 0
    assert page.quality.orientation_score >= DOUBTFUL_ORIENTATION
    assert page.name == "letter"
    assert (page.width, page.height) == (900, 1200)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_page_is_turned_back(classifier, degrees):
    image = letter()
    # Pillow turns counter-clockwise.
    page = prepare(frame(image.rotate(-degrees, expand=True)), classifier)
    assert (page.pixels[:, :, ::-1] == np.asarray(image)).all()
    assert page.quality.orientation == degrees
    assert page.quality.orientation_score >= DOUBTFUL_ORIENTATION


def test_exif_orientation_is_applied_before_the_network_looks(classifier):
    exif = Image.Exif()
    exif[0x0112] = 6
    page = prepare(frame(letter().rotate(90, expand=True), exif=exif), classifier)
    assert (page.width, page.height) == (900, 1200)
    assert page.quality.orientation == 0


def test_a_doubtful_answer_turns_nothing_and_is_reported():
    shot = Shot(np.zeros((4, 6, 3), dtype=np.uint8))
    doubtful = turn_upright(shot, Orientation(180, DOUBTFUL_ORIENTATION - 0.01, 0.2))
    assert doubtful.pixels is shot.pixels
    assert doubtful.quality.orientation == 0
    assert doubtful.quality.orientation_score == 0.2
    sure = turn_upright(shot, Orientation(90, DOUBTFUL_ORIENTATION, 0.1))
    assert sure.pixels.shape == (6, 4, 3)
    assert (sure.quality.orientation, sure.quality.orientation_score) == (90, DOUBTFUL_ORIENTATION)


def test_a_picture_without_any_text_is_doubtful(classifier):
    noise = np.random.default_rng(2).integers(0, 255, (400, 300, 3), dtype=np.uint8)
    page = prepare(frame(Image.fromarray(noise)), classifier)
    assert page.quality.orientation == 0
    assert page.quality.orientation_score < DOUBTFUL_ORIENTATION


def test_a_large_page_is_scaled_down_and_a_small_one_is_left_alone():
    settings = PrepareSettings(longest=1000)
    for kind in ("PNG", "JPEG"):
        page = prepare(frame(Image.new("RGB", (1500, 3000), "white"), kind), None, settings)
        assert page.pixels.shape == (1000, 500, 3)
    assert prepare(frame(letter(300, 400)), None, settings).pixels.shape == (400, 300, 3)


def test_a_strip_of_paper_keeps_at_least_one_pixel():
    page = prepare(frame(Image.new("RGB", (2, 9000), "white")), None, PrepareSettings(longest=1000))
    assert page.pixels.shape == (1000, 1, 3)


def test_blur_darkness_and_faded_print_are_measured():
    sharp = prepare(frame(letter())).quality
    blurred = prepare(frame(letter().filter(ImageFilter.GaussianBlur(4)))).quality
    dark = prepare(frame(letter().point(lambda value: value // 10))).quality
    faded = prepare(frame(letter().point(lambda value: 215 + value // 8))).quality
    assert sharp.hint == ""
    assert blurred.sharpness < sharp.sharpness / 20
    assert "hold still" in blurred.hint
    assert dark.brightness < 0.15
    assert "light" in dark.hint
    assert faded.contrast < sharp.contrast


def test_faded_print_is_not_thresholded_away():
    faded = letter().point(lambda value: 180 + value * 20 // 255)
    pixels = prepare(frame(faded)).pixels
    assert len(np.unique(pixels)) > 15
    assert np.ptp(pixels) >= 20


@pytest.mark.parametrize(
    ("quality", "word"),
    [
        (Quality(brightness=0.05, contrast=0.02), "light"),
        (Quality(brightness=0.9, contrast=0.01, sharpness=2), "into view"),
        (Quality(brightness=0.8, contrast=0.5, sharpness=3), "hold still"),
        (Quality(brightness=0.8, contrast=0.5, sharpness=500, text_height=6), "closer"),
    ],
)
def test_the_hint_names_the_worst_fault(quality, word):
    assert word in hint(quality)


def test_a_good_page_needs_no_hint():
    assert hint(Quality(brightness=0.8, contrast=0.5, sharpness=500, text_height=25)) == ""


def test_bad_frames_are_errors_that_name_the_frame():
    with pytest.raises(UnreadableImage, match=r"cam0: the file is empty"):
        prepare(Frame(b"", "cam0"))
    with pytest.raises(ImageTooLarge, match="letter"):
        prepare(frame(letter()), settings=PrepareSettings(limits=ImageLimits(max_pixels=1000)))


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 255))
@settings(deadline=None, max_examples=50)
def test_any_plain_picture_can_be_measured(width, height, grey):
    quality = measure(Shot(np.full((height, width, 3), grey, dtype=np.uint8))).quality
    assert quality.sharpness == 0
    assert quality.contrast == 0
    assert quality.brightness == pytest.approx(grey / 255, abs=0.001)
    assert quality.hint
