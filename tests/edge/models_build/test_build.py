"""`docferry models build`: the built models read as the originals do, and come out the same each time."""

import numpy as np
import pytest
from typer.testing import CliRunner

from docferry import model_commands
from docferry.model_store.bundle import install_bundle, read_manifest
from docferry.vision.images import Pixels
from docferry_edge.models_build import command
from docferry_edge.models_build.build import build
from docferry_edge.models_build.lines import TextLine, text_lines
from docferry_edge.prepare import PageImage
from docferry_edge.read import MODELS, Reader

# Building takes a minute: it runs once for this file, and once more for the test marked long.
pytestmark = pytest.mark.xdist_group("models_build")

SAME_TEXT = 0.95
"""Of the lines the original reads right, clean and worn, the least share that the built one must read right."""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    from docferry.model_store import default_store

    folder = tmp_path_factory.mktemp("bundle")
    steps: list[tuple[str, int, int]] = []
    build(default_store(), folder, seed=1, told=lambda *step: steps.append(step))
    assert all(0 <= done <= total for _, done, total in steps)
    assert {"calibrating", *(f"folding {name}" for name in MODELS)} == {what for what, _, _ in steps}
    return folder


def whole(pixels: Pixels) -> np.ndarray:
    height, width = pixels.shape[:2]
    return np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)


def read(reader: Reader, line: TextLine) -> str:
    return reader.recogniser.read(line.pixels, [whole(line.pixels)])[0].text


def sheet(lines) -> Pixels:
    page = np.full((80 * len(lines) + 80, 1000, 3), 255, dtype=np.uint8)
    for number, line in enumerate(lines):
        pixels = line.pixels[:, :900]
        page[60 + 80 * number : 108 + 80 * number, 50 : 50 + pixels.shape[1]] = pixels
    return page


def test_built_models_read_right_what_the_originals_do(bundle, store):
    original = Reader.load(store, threads=1)
    install_bundle(bundle, store)
    built = Reader.load(store, threads=1)
    lines = text_lines(120, seed=99)
    right = [line for line in lines if read(original, line) == line.text]
    assert len(right) > 90
    assert sum(read(built, line) == line.text for line in right) / len(right) >= SAME_TEXT


def test_built_detector_and_layout_find_what_the_originals_find(bundle, store):
    original = Reader.load(store, threads=1)
    install_bundle(bundle, store)
    built = Reader.load(store, threads=1)
    page = PageImage(sheet(text_lines(10, seed=98)))
    for one, other in zip(built.layout.detect(page.pixels), original.layout.detect(page.pixels), strict=True):
        assert one.type == other.type
        assert one.box == pytest.approx(other.box, abs=1e-3)
    for one, other in zip(
        built.detector.detect(page.pixels).quads, original.detector.detect(page.pixels).quads, strict=True
    ):
        assert one == pytest.approx(other, abs=0.5)


def test_a_reading_says_that_built_models_made_it(bundle, store):
    assert Reader.load(store, threads=1).name.startswith("ppocrv6-small@")
    install_bundle(bundle, store)
    digits = read_manifest(bundle).models["ppocrv6-rec-small"].sha256[:6]
    assert Reader.load(store, threads=1).name == f"ppocrv6-small-int8@{digits}"


def test_a_kiosk_needs_only_the_bundle(bundle, store):
    install_bundle(bundle, store)
    for name in MODELS:
        store.path(name).unlink()
    reader = Reader.load(store, threads=1)
    assert reader.read_all(PageImage(sheet(text_lines(3, seed=4)))).document.pages


def test_the_manifest_says_what_made_the_bytes(bundle, store):
    found = read_manifest(bundle)
    assert found.seed == 1
    assert {"onnx", "onnxruntime", "numpy", "pillow", "opencv-python-headless", "machine"} == set(found.tools)
    assert {name: model.source for name, model in found.models.items()} == {name: store.sha256(name) for name in MODELS}


@pytest.mark.long
def test_building_again_gives_the_same_bytes(bundle, store, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "default_store", lambda: store)
    app = model_commands.typer.Typer()
    app.command()(command.build)
    result = CliRunner().invoke(app, [str(tmp_path / "again"), "--seed", "1"])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("built") == len(MODELS)
    assert read_manifest(tmp_path / "again") == read_manifest(bundle)
