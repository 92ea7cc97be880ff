"""Building the bundle: a folder of faster models and the manifest that says what they are."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import onnx

from docferry.errors import ConfigurationError
from docferry.model_store import ModelStore
from docferry.model_store.bundle import Bundle, describe, write_manifest
from docferry.vision.recogniser import Recogniser, tensor_of
from docferry.vision.sessions import Tensor, open_network
from docferry_edge.models_build.lines import text_lines
from docferry_edge.models_build.quantise import folded, quantised, save
from docferry_edge.models_build.simplify import simplified
from docferry_edge.models_build.tail import shortened
from docferry_edge.read import MODELS, RECOGNISER

Told = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many steps of it are done."""

DEFAULT_SEED = 1
_LINES, _BATCH, _WIDTH = 128, 8, 512
_TOOLS = ("onnx", "onnxruntime", "numpy", "pillow", "opencv-python-headless")


def build(store: ModelStore, folder: Path, seed: int = DEFAULT_SEED, told: Told | None = None) -> Bundle:
    """Build the models and write the bundle.

    Args:
        store: Has the originals.
        folder: Where the bundle goes; made if needed, what it held is overwritten.
        seed: What the calibration lines are drawn with; the same seed and tools give the same bytes.
        told: Told how far it is.

    Raises:
        ModelError: An original is missing, or another network than this was written for.
        ConfigurationError: The folder cannot be written.
    """
    told = told or _silent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as work:
            files = {name: _built(name, store.path(name), Path(work), seed, told) for name in MODELS}
            placed = {name: file.replace(folder / file.name) for name, file in files.items()}
    except OSError as error:
        raise ConfigurationError(
            f"the bundle cannot be written: {error}", remedy=f"make {folder} writable, or name another folder"
        ) from error
    models = {name: describe(name, file, store.sha256(name)) for name, file in placed.items()}
    bundle = Bundle(models, seed, _tools())
    write_manifest(folder, bundle)
    return bundle


def _built(name: str, original: Path, work: Path, seed: int, told: Told) -> Path:
    what = f"folding {name}"
    told(what, 0, 2)
    target, plain = work / f"{name}.onnx", work / f"{name}.folded.onnx"
    folded(original, plain)
    told(what, 1, 2)
    save(simplified(onnx.load(plain)), target)
    told(what, 2, 2)
    if name == RECOGNISER:
        quantised(target, plain, _batches(seed, told))
        alphabet = Recogniser.of(open_network(original, threads=1)).alphabet
        save(shortened(onnx.load(plain), alphabet), target)
    # What onnxruntime cannot load must not get into a bundle.
    open_network(target, threads=1)
    return target


def _batches(seed: int, told: Told) -> Iterator[Tensor]:
    lines = text_lines(_LINES, seed)
    starts: Sequence[int] = range(0, _LINES, _BATCH)
    for number, start in enumerate(starts):
        told("calibrating", number, len(starts))
        # One width for all: onnxruntime's histograms want tensors of one shape.
        yield tensor_of([line.pixels[:, :_WIDTH] for line in lines[start : start + _BATCH]], _WIDTH)
    told("calibrating", len(starts), len(starts))


def _tools() -> dict[str, str]:
    return {name: version(name) for name in _TOOLS} | {"machine": platform.machine()}


def _silent(_what: str, _done: int, _total: int) -> None:
    pass
