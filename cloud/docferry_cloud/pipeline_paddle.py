"""Reading text through PaddleOCR on onnxruntime: the detector and the recogniser, from local folders only."""

from __future__ import annotations

import math
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import cv2
import numpy as np

from docferry.errors import EngineError, ModelError
from docferry.model_store import ModelStore
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad, cut_out, is_vertical, ordered, size, turned_around
from docferry.vision.recogniser import tidy
from docferry_cloud.paddle_directory import PaddleModel, paddle_directory

Cancelled = Callable[[], bool]
"""Says True once nobody waits for the answer any more."""

_LINE_HEIGHT = 48
_HASH_DIGITS = 6
_COORDINATES_END = 32_000
"""PaddleOCR's detector answers in 16-bit whole pixels."""

_Predictor = TypeVar("_Predictor")


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How pages and crops are read; the values were measured on receipts and A4 pages.

    Attributes:
        short_side: A page is scaled so that its short side has this many pixels before lines are looked for ...
        enlarge: ... but never enlarged more than this ...
        pixels: ... and never to more than this many pixels.
        box_threshold, unclip: DB's least mean probability of a line, and how far its core is grown back.
        batch_columns: Columns of one recogniser batch, padding included; bounds the memory of one run.
    """

    short_side: int = 960
    enlarge: float = 1.0
    pixels: int = 4_000_000
    box_threshold: float = 0.5
    unclip: float = 1.6
    batch_columns: int = 2048


@dataclass(frozen=True, slots=True)
class Recognised:
    """What one quad reads: the text (NFC, may be empty), its raw score 0..1, and the quad as it was read."""

    text: str
    score: float
    quad: Quad


class PaddleReader:
    """PaddleOCR's text detector and recogniser, in as many single-threaded lanes as there are threads to use.

    A predictor of PaddleOCR keeps state between calls and is not safe to share, so each call takes a lane for itself
    and waits for one where none is free. Single-threaded lanes carry more pages than one session with all threads.
    """

    def __init__(
        self, detectors: Sequence[Any], recognisers: Sequence[Any], provenance: str, settings: ReaderSettings
    ) -> None:
        self._detectors = _Lanes(detectors)
        self._recognisers = _Lanes(recognisers)
        self._lanes = len(recognisers)
        self._settings = settings
        self.provenance = provenance

    @classmethod
    def load(
        cls,
        store: ModelStore,
        *,
        threads: int,
        detector: str = "ppocrv5-det",
        recogniser: str = "ppocrv6-rec-small",
        settings: ReaderSettings | None = None,
    ) -> PaddleReader:
        """Load and warm up both networks `threads` times.

        Args:
            store: Has both models already; nothing is fetched.
            threads: How many lanes, at least 1.
            detector, recogniser: Names in the store.

        Raises:
            ModelError: A model is missing or cannot be loaded.
        """
        directories = store.root / "paddle"
        text_detection, text_recognition = _paddleocr(directories / "home")
        found = paddle_directory(store, detector)
        read = paddle_directory(store, recogniser)
        provenance = f"cloud:{recogniser}@{store.sha256(recogniser)[:_HASH_DIGITS]}"
        reader = cls(
            [_opened(text_detection, found) for _ in range(threads)],
            [_opened(text_recognition, read) for _ in range(threads)],
            provenance,
            settings or ReaderSettings(),
        )
        reader.warm_up()
        return reader

    def warm_up(self) -> None:
        """Run every lane once, so that the first page pays for no lazy set-up."""
        blank = np.full((64, 320, 3), 255, dtype=np.uint8)
        for detector in self._detectors.all():
            list(detector.predict_iter(blank))
        for recogniser in self._recognisers.all():
            list(recogniser.predict_iter(blank))

    def find(self, image: Pixels) -> list[Quad]:
        """The text lines on a page or crop, as quads in its pixels, in no particular order.

        Raises:
            EngineError: The detector failed.
        """
        image, shrunk = _within_coordinates(image)
        height, width = image.shape[:2]
        options = {
            "limit_type": "resize_long",
            "limit_side_len": seen_long_side(width, height, self._settings),
            "max_side_limit": _COORDINATES_END,
            "box_thresh": self._settings.box_threshold,
            "unclip_ratio": self._settings.unclip,
        }
        with self._detectors.one() as detector:
            polygons = _predicted(detector, image, options)[0]["dt_polys"]
        quads = [ordered(np.asarray(polygon, dtype=np.float32) / shrunk) for polygon in polygons]
        return [quad for quad in quads if min(size(quad)) >= 1]

    def read(self, image: Pixels, quads: Sequence[Quad], cancelled: Cancelled) -> list[Recognised]:
        """Read each quad; the answers stand in the order of `quads`.

        A line that runs up or down the page is read both ways, and the better score wins.

        Raises:
            EngineError: The recogniser failed, or `cancelled` said True between two batches.
        """
        answers = self._as_given(image, quads, cancelled)
        vertical = [number for number, quad in enumerate(quads) if is_vertical(quad)]
        turned = self._as_given(image, [turned_around(quads[number]) for number in vertical], cancelled)
        for number, other in zip(vertical, turned, strict=True):
            if other.score > answers[number].score:
                answers[number] = other
        return answers

    def _as_given(self, image: Pixels, quads: Sequence[Quad], cancelled: Cancelled) -> list[Recognised]:
        pieces = [cut_out(image, quad, _LINE_HEIGHT) for quad in quads]
        batches = list(_batches([piece.shape[1] for piece in pieces], self._settings.batch_columns))

        def run(batch: Sequence[int]) -> list[tuple[int, str, float]]:
            check(cancelled)
            with self._recognisers.one() as recogniser:
                results = _predicted(recogniser, [pieces[number] for number in batch], {"batch_size": len(batch)})
            return [
                (number, tidy(result["rec_text"]), float(result["rec_score"]))
                for number, result in zip(batch, results, strict=True)
            ]

        answers: dict[int, Recognised] = {}
        with ThreadPoolExecutor(max_workers=self._lanes, thread_name_prefix="docferry-read") as pool:
            for done in pool.map(run, batches):
                for number, text, score in done:
                    answers[number] = Recognised(text, score if text else 0.0, quads[number])
        return [answers[number] for number in range(len(quads))]


def check(cancelled: Cancelled) -> None:
    """Stop here if nobody waits any more.

    Raises:
        EngineError: `cancelled` said True.
    """
    if cancelled():
        raise EngineError("the reading was cancelled", remedy="submit the document again to read it after all")


def seen_long_side(width: int, height: int, settings: ReaderSettings) -> int:
    """How many pixels the detector sees along the long side of a page of that size."""
    scale = min(settings.short_side / min(width, height), settings.enlarge)
    scale = min(scale, math.sqrt(settings.pixels / (width * height)))
    return max(1, round(max(width, height) * scale))


class _Lanes(Generic[_Predictor]):
    """Predictors that are used by one caller at a time."""

    def __init__(self, predictors: Sequence[_Predictor]) -> None:
        self._all = tuple(predictors)
        self._free: queue.SimpleQueue[_Predictor] = queue.SimpleQueue()
        for predictor in predictors:
            self._free.put(predictor)

    def all(self) -> tuple[_Predictor, ...]:
        return self._all

    @contextmanager
    def one(self) -> Iterator[_Predictor]:
        predictor = self._free.get()
        try:
            yield predictor
        finally:
            self._free.put(predictor)


def _paddleocr(home: Path) -> tuple[Any, Any]:
    """PaddleOCR's two classes: the one place that imports it.

    PaddleX, underneath, reads its environment variables while it is imported: without the first it asks four model
    hubs whether they are there, without the second it makes folders in the home directory, which a hardened service
    may not write to. Both are set here because it offers no other way; what the administrator has set stands.

    Raises:
        ModelError: It is not installed.
    """
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
    os.environ.setdefault("PADDLE_PDX_CACHE_HOME", str(home))
    try:
        from paddleocr import TextDetection, TextRecognition
    except ImportError as error:
        raise ModelError(f"paddleocr cannot be imported: {error}", remedy="pip install 'docferry[cloud]'") from error
    return TextDetection, TextRecognition


def _opened(kind: Any, model: PaddleModel) -> Any:
    options = {
        "intra_op_num_threads": 1,
        "inter_op_num_threads": 1,
        # The arena keeps the largest page's buffers for ever, once for each lane.
        "enable_cpu_mem_arena": False,
        # Its warnings are about the exporter's shape annotations, which no reader can act on.
        "log_severity_level": 3,
    }
    try:
        return kind(
            model_name=model.name,
            model_dir=str(model.directory),
            engine="onnxruntime",
            engine_config=options,
            device="cpu",
        )
    # PaddleX and onnxruntime raise whatever comes; all of it means that this model cannot be used.
    except Exception as error:
        raise ModelError(
            f"paddleocr cannot load {model.name}: {error}",
            remedy="run `docferry models verify`, then `docferry models pull`",
            directory=str(model.directory),
        ) from error


def _predicted(predictor: Any, images: Any, options: dict[str, Any]) -> list[Any]:
    try:
        return list(predictor.predict_iter(images, **options))
    # PaddleX raises whatever comes from numpy, OpenCV and onnxruntime; a worker must outlive one bad page.
    except Exception as error:
        raise EngineError(
            f"paddleocr failed on this page: {type(error).__name__}: {error}",
            remedy="send the page as a sharper or smaller picture",
        ) from error


def _within_coordinates(image: Pixels) -> tuple[Pixels, float]:
    """The image small enough for 16-bit coordinates, and by how much it was scaled."""
    longest = max(image.shape[:2])
    if longest <= _COORDINATES_END:
        return image, 1.0
    scale = _COORDINATES_END / longest
    return np.asarray(cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), dtype=np.uint8), scale


def _batches(widths: Sequence[int], columns: int) -> Iterator[list[int]]:
    """Numbers of crops, narrow ones first, in batches of at most `columns` columns; PaddleOCR pads each to 320."""
    batch: list[int] = []
    for number in sorted(range(len(widths)), key=lambda n: (widths[n], n)):
        if batch and max(320, widths[number]) * (len(batch) + 1) > columns:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
