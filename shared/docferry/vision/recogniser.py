"""Reading one line at a time: a CTC network over crops 48 pixels high."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from docferry.errors import ModelError
from docferry.vision.ctc import BLANK, Doubts, doubts_of
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad, cut_out, is_vertical, turned_around
from docferry.vision.sessions import Network, Tensor

HEIGHT = 48
"""Pixels the network wants a line to be high."""


@dataclass(frozen=True, slots=True)
class RecogniserSettings:
    """How lines are batched.

    Attributes:
        bucket: Widths are padded to a multiple of this, so that few input shapes occur.
        least: Narrower crops are padded to this width; the network reads very short inputs badly.
        longest: Crops are squeezed to this width at most (a line 66 times wider than high).
        batch_pixels: Columns in one batch, padding included; bounds the memory of one run.
        lanes: Batches run at the same time, each on a thread that lives for one call of `read`. With a network of one
            thread this beats one batch at a time over as many threads by a quarter: lanes never wait for each other.
    """

    bucket: int = 32
    least: int = 64
    longest: int = 3200
    batch_pixels: int = 1024
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Recognised:
    """What one quad says.

    Attributes:
        text: NFC; empty when the network saw nothing.
        score: Mean of `scores`, 0 for an empty text.
        scores: The network's score for each character the CTC path emitted, before any folding; 0..1.
        quad: The quad as it was read: a vertical line may have been turned around.
        peaks, gap: How sure the characters are at their best, and the blanks between them; see `docferry.vision.ctc`.
    """

    text: str
    score: float
    scores: tuple[float, ...]
    quad: Quad
    peaks: tuple[float, ...] = ()
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Recogniser:
    """The text line recogniser. Safe to use from several threads at once."""

    network: Network
    alphabet: tuple[str, ...]
    settings: RecogniserSettings = field(default_factory=RecogniserSettings)

    @classmethod
    def of(cls, network: Network, settings: RecogniserSettings | None = None) -> Recogniser:
        """A recogniser whose alphabet is the one stored in the network's metadata.

        Raises:
            ModelError: The file carries no `character` entry.
        """
        characters = network.metadata.get("character")
        if not characters:
            raise ModelError(
                "the recogniser's file holds no alphabet (metadata key `character`)",
                remedy="use a model from models.toml",
            )
        # PaddleOCR's convention: index 0 is CTC's blank, the space comes last.
        return cls(network, ("", *characters.split("\n"), " "), settings or RecogniserSettings())

    def read(self, image: Pixels, quads: Sequence[Quad]) -> list[Recognised]:
        """Read each quad of a page; the answers stand in the order of `quads`.

        Lines that run down or up the page are read both ways, and the better score wins.
        """
        readings = self._read_as_given(image, quads)
        vertical = [number for number, quad in enumerate(quads) if is_vertical(quad)]
        for number, other in zip(
            vertical, self._read_as_given(image, [turned_around(quads[n]) for n in vertical]), strict=True
        ):
            if other.score > readings[number].score:
                readings[number] = other
        return readings

    def _read_as_given(self, image: Pixels, quads: Sequence[Quad]) -> list[Recognised]:
        with _lanes(min(self.settings.lanes, len(quads))) as each:
            crops = list(each(partial(self._crop, image), quads))
            # Wide batches take longest and start first, so that the lanes end together.
            batches = list(self._batches([crop.shape[1] for crop in crops]))[::-1]
            readings: dict[int, Recognised] = {}
            for batch, read in zip(batches, each(partial(self._batch, crops), batches), strict=True):
                for number, (text, scores, doubts) in zip(batch, read, strict=True):
                    score = float(np.mean(scores)) if scores else 0.0
                    readings[number] = Recognised(text, score, scores, quads[number], *doubts)
        return [readings[number] for number in range(len(quads))]

    def _batch(self, crops: Sequence[Pixels], batch: Sequence[int]) -> list[tuple[str, tuple[float, ...], Doubts]]:
        width = self._padded(max(crops[number].shape[1] for number in batch))
        classes, scores = _best(self.network.run(tensor_of([crops[number] for number in batch], width)))
        return [self._decoded(*line) for line in zip(classes, scores, strict=True)]

    def _crop(self, image: Pixels, quad: Quad) -> Pixels:
        crop = cut_out(image, quad, HEIGHT)
        if crop.shape[1] > self.settings.longest:
            crop = np.asarray(cv2.resize(crop, (self.settings.longest, HEIGHT)), dtype=np.uint8)
        return crop

    def _padded(self, width: int) -> int:
        bucket = self.settings.bucket
        return max(self.settings.least, -(-width // bucket) * bucket)

    def _batches(self, widths: Sequence[int]) -> Iterator[list[int]]:
        """Numbers of crops, narrow ones first, in batches of at most `batch_pixels` columns, as many for each lane."""
        total = sum(map(self._padded, widths))
        rounds = math.ceil(total / (self.settings.lanes * self.settings.batch_pixels))
        most = min(self.settings.batch_pixels, math.ceil(total / (self.settings.lanes * max(1, rounds))))
        batch: list[int] = []
        for number in sorted(range(len(widths)), key=lambda n: (widths[n], n)):
            if batch and self._padded(widths[number]) * (len(batch) + 1) > most:
                yield batch
                batch = []
            batch.append(number)
        if batch:
            yield batch

    def _decoded(
        self, classes: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]
    ) -> tuple[str, tuple[float, ...], Doubts]:
        """Greedy CTC: the best class of every column, repeats collapsed, blanks dropped."""
        kept = classes != BLANK
        kept[1:] &= classes[1:] != classes[:-1]
        text = "".join(self.alphabet[index] for index in classes[kept])
        return tidy(text), tuple(scores[kept].tolist()), doubts_of(classes, scores)


@contextmanager
def _lanes(count: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` over that many threads; the plain one where a thread would have nobody beside it."""
    if count < 2:
        yield map
        return
    with ThreadPoolExecutor(count, thread_name_prefix="lane") as pool:
        yield pool.map


def _best(outputs: Sequence[Tensor]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Best class and its score for every line and column; built networks give just these, originals all classes."""
    if len(outputs) == 2:
        return outputs[0].astype(np.int64, copy=False), outputs[1]
    classes = outputs[0].argmax(axis=2)
    return classes, np.take_along_axis(outputs[0], classes[:, :, None], axis=2)[:, :, 0]


def tidy(text: str) -> str:
    """NFC, single spaces, and ASCII punctuation in lines without Chinese, Japanese or Korean letters.

    The network was trained mostly on Chinese and likes full-width forms; in a Latin line `：` means `:`.
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return text if _has_cjk(text) else text.translate(_NARROW)


_NARROW = {full: full - 0xFEE0 for full in range(0xFF01, 0xFF5F)} | {
    ord("、"): ",",
    ord("。"): ".",
    ord("【"): "[",
    ord("】"): "]",
}


def unstroked(text: str) -> str:
    """A line of a page without Chinese or Japanese, where the network still saw some: its strokes are dashes.

    The network has no way to tell a lone dash from the Chinese one; the page's other lines have. A line with any
    other Chinese or Japanese letter is left as it is.
    """
    dashes = text.translate(_DASHES)
    return text if _has_cjk(dashes) else tidy(dashes)


_DASHES = {ord("一"): "–", ord("ー"): "–", ord("二"): "=", ord("三"): "≡"}


def has_cjk(text: str) -> bool:
    """Whether a Chinese, Japanese or Korean letter stands in the text that is more than a stroke or three."""
    return _has_cjk(text.translate(_DASHES))


def _has_cjk(text: str) -> bool:
    return any(
        "\u3040" <= letter <= "\u30ff" or "\u3400" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7a3"
        for letter in text
    )


def tensor_of(crops: Sequence[Pixels], width: int) -> Tensor:
    """What the network sees of crops 48 pixels high: `(n, 3, 48, width)` in -1..1, padded on the right with 0."""
    tensor = np.zeros((len(crops), 3, HEIGHT, width), dtype=np.float32)
    for number, crop in enumerate(crops):
        part = tensor[number, :, :, : crop.shape[1]]
        np.multiply(crop.transpose(2, 0, 1), np.float32(2 / 255), out=part)
        part -= 1
    return tensor
