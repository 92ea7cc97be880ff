import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from docferry.document import RegionType
from docferry.errors import ModelError
from docferry.vision.detector import Detector, DetectorSettings, input_size
from docferry.vision.layout import LayoutDetector
from docferry.vision.orientation import OrientationClassifier, turned
from docferry.vision.quads import size
from docferry.vision.recogniser import Recogniser, RecogniserSettings, tidy
from docferry.vision.sessions import open_network

_spec = importlib.util.spec_from_file_location("vision_pages", Path(__file__).with_name("pages.py"))
pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pages)


def top_to_bottom(quads):
    return sorted(quads, key=lambda quad: float(quad[:, 1].mean()))


@pytest.mark.parametrize("first", ["docferry.vision.sessions", "docferry_edge.models_build.quantise"])
def test_onnxruntime_keeps_no_device_id_and_reports_to_nobody(tmp_path, first):
    code = f"import {first}, onnxruntime; onnxruntime.get_available_providers(); onnxruntime.SessionOptions()"
    # It also keeps quiet where a CI is, so this process must not look like one.
    quiet = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=quiet)
    assert list(tmp_path.iterdir()) == []


def test_every_drawn_line_is_found_and_read_exactly(detector, recogniser):
    image = pages.drawn(pages.LETTER)
    quads = top_to_bottom(detector.detect(image).quads)
    assert len(quads) == len(pages.LETTER)
    read = recogniser.read(image, quads)
    assert tuple(line.text for line in read) == pages.LETTER
    for line in read:
        assert line.score > 0.9
        assert len(line.scores) == len(line.text)
        assert line.score == pytest.approx(np.mean(line.scores))


def test_quads_hold_the_text_closely(detector):
    image = pages.drawn(("A single line of text",), height=300, top=120)
    (quad,) = detector.detect(image).quads
    ink = np.argwhere(image[:, :, 0] < 128)
    (top, left), (bottom, right) = ink.min(axis=0), ink.max(axis=0)
    assert quad[0] == pytest.approx([left, top], abs=14)
    assert quad[2] == pytest.approx([right, bottom], abs=14)


def test_answers_do_not_depend_on_batching(detector, recogniser):
    image = pages.drawn(pages.LETTER)
    quads = detector.detect(image).quads
    alone = [recogniser.read(image, [quad])[0].text for quad in quads]
    assert [line.text for line in recogniser.read(image, quads)] == alone
    one_by_one = Recogniser(recogniser.network, recogniser.alphabet, RecogniserSettings(batch_pixels=1))
    assert [line.text for line in one_by_one.read(image, quads)] == alone


def test_slanted_lines_are_read_too(detector, recogniser):
    image = pages.drawn(pages.LETTER, left=120, top=150, height=720)
    turn = cv2.getRotationMatrix2D((450, 360), -8, 1.0)
    slanted = cv2.warpAffine(image, turn, (900, 720), flags=cv2.INTER_CUBIC, borderValue=(255, 255, 255))
    read = recogniser.read(slanted, top_to_bottom(detector.detect(slanted).quads))
    assert [line.text for line in read] == list(pages.LETTER)


@pytest.mark.parametrize("degrees", [90, 270])
def test_a_line_that_runs_down_or_up_is_read_and_keeps_its_direction(detector, recogniser, degrees):
    image = turned(pages.drawn(("Printed along the margin",), width=600, height=160), degrees)
    (quad,) = detector.detect(image).quads
    (line,) = recogniser.read(image, [quad])
    assert line.text == "Printed along the margin"
    along = line.quad[1] - line.quad[0]
    assert (along[1] > 0) == (degrees == 90)
    assert size(line.quad)[0] > size(line.quad)[1]


def test_nothing_on_the_page_gives_no_lines(detector, layout, recogniser):
    for grey in (0, 128, 255):
        image = np.full((600, 400, 3), grey, dtype=np.uint8)
        assert detector.detect(image).quads == ()
        assert all(box.score <= 1 for box in layout.detect(image))
    assert recogniser.read(image, []) == []


@pytest.mark.parametrize("shape", [(1, 1), (3, 900), (900, 3), (40, 40), (20_000, 30)])
def test_odd_shapes_crash_nothing(detector, layout, orientation, shape):
    image = np.random.default_rng(1).integers(0, 255, (*shape, 3), dtype=np.uint8)
    height, width = shape
    for quad in detector.detect(image).quads:
        assert (quad >= 0).all()
        assert (quad <= [width, height]).all()
    layout.detect(image)
    assert orientation.classify(image).degrees in (0, 90, 180, 270)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (620, 877), (1654, 2339), (900, 9000), (20_000, 10)])
def test_the_detector_sees_multiples_of_32_within_its_bounds(width, height):
    settings = DetectorSettings()
    seen = input_size(width, height, settings)
    assert all(side % 32 == 0 and 32 <= side <= settings.long_side for side in seen)
    assert seen[0] * seen[1] <= settings.area * 1.15 + 32 * settings.long_side


def test_small_print_is_looked_at_closer_and_every_line_found_once(detector):
    lines = [f"Clause {number} of the small print that nobody is meant to read" for number in range(80)]
    page = pages.drawn(lines, width=2000, height=2800, size=12, left=150, top=120, pitch=30)
    unaided = Detector(detector.network, DetectorSettings(small=0)).detect(page)
    found = detector.detect(page)
    assert found.scale[0] > 1.5 * unaided.scale[0]
    middles = sorted(float(quad[:, 1].mean()) for quad in found.quads)
    assert middles == pytest.approx([120 + 30 * number + 7 for number in range(80)], abs=6)


def test_the_detection_says_at_what_scale_it_looked(detector):
    image = pages.drawn(pages.LETTER, width=2400, height=3200)
    scale = detector.detect(image).scale
    seen = input_size(2400, 3200, detector.settings)
    assert scale == (seen[0] / 2400, seen[1] / 3200)


def test_a_page_of_text_is_seen_as_text(layout):
    paragraph = ["Some words that fill the line from margin to margin"] * 12
    found = layout.detect(pages.drawn(paragraph, width=900, pitch=36, height=1200))
    (text,) = [box for box in found if box.type is RegionType.TEXT]
    assert text.score > 0.5
    assert text.box == pytest.approx((0.067, 0.05, 0.82, 0.41), abs=0.05)
    for box in found:
        x0, y0, x1, y1 = box.box
        assert 0 <= x0 < x1 <= 1
        assert 0 <= y0 < y1 <= 1
    assert [box.score for box in found] == sorted((box.score for box in found), reverse=True)


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_the_orientation_of_a_page_is_told(orientation, degrees):
    image = turned(pages.drawn(pages.LETTER * 2, width=1000), degrees)
    found = orientation.classify(image)
    assert found.degrees == degrees
    assert found.score > 0.7
    assert (found.upright_score == found.score) == (degrees == 0)


def test_turning_is_clockwise():
    image = np.zeros((2, 3, 3), dtype=np.uint8)
    image[0, 0] = 9
    assert turned(image, 90)[0, 1, 0] == 9
    assert turned(image, 180)[1, 2, 0] == 9
    assert turned(image, 270)[2, 0, 0] == 9
    assert turned(image, 0) is image


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("TOTAL：９.00", "TOTAL:9.00"),
        ("（CASH）", "(CASH)"),
        ("合计：９.00元", "合计：９.00元"),
        ("  two   words ", "two words"),
        ("e\u0301", "\u00e9"),
        ("", ""),
    ],
)
def test_full_width_forms_are_folded_in_latin_lines_only(raw, expected):
    assert tidy(raw) == expected


def test_a_file_that_is_no_network_is_named(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"broken\.onnx") as caught:
        open_network(path, threads=1)
    assert "docferry models" in caught.value.remedy


@pytest.mark.parametrize("kind", [Recogniser, LayoutDetector, OrientationClassifier])
def test_a_network_for_another_task_is_refused(kind, detector):
    with pytest.raises(ModelError):
        kind.of(detector.network)
