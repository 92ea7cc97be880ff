"""The shape of a table from its picture: SLANet+, which writes HTML token by token and a box for each cell.

The network was trained on tables scaled to 488 pixels on their long side, padded with zeros at the right and below.
Boxes are relative to that square.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from docferry.errors import ModelError
from docferry.tables import Cell, Grid, placed
from docferry.vision.images import Pixels
from docferry.vision.sessions import Network, Tensor

_SIDE = 488
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)
_EMPTY_CELL = "<td></td>"
_SPAN = re.compile(r'(row|col)span="(\d+)"')


@dataclass(frozen=True, slots=True)
class Structure:
    """What the network saw.

    Attributes:
        grid: Cells without text; boxes, relative to the picture, hold a cell's content rather than the cell.
        score: Mean score of the tokens, 0..1.
    """

    grid: Grid
    score: float


@dataclass(frozen=True, slots=True)
class StructureReader:
    """The structure network. Safe to use from several threads at once."""

    network: Network
    tokens: tuple[str, ...]

    @classmethod
    def of(cls, network: Network) -> StructureReader:
        """A reader whose tokens are those stored in the network's metadata.

        Raises:
            ModelError: No `character` entry.
        """
        listed = network.metadata.get("character")
        if not listed:
            raise ModelError(
                "the table model's file holds no tokens (metadata key `character`)",
                remedy="use the table model from models.toml",
            )
        # PaddleOCR's convention: the first class begins a sequence, the one after the last token ends it.
        return cls(network, ("", *listed.split("\n")))

    def read(self, image: Pixels) -> Structure:
        """The structure of the table that fills a picture `(height, width, 3)`, BGR."""
        height, width = image.shape[:2]
        scale = _SIDE / max(height, width)
        places, probabilities = (output[0] for output in self.network.run(_tensor(image, scale)))
        classes, scores = probabilities.argmax(axis=1), probabilities.max(axis=1)
        ends = np.flatnonzero(classes >= len(self.tokens))
        count = int(ends[0]) if len(ends) else len(classes)
        shape = np.array([_SIDE / (scale * width), _SIDE / (scale * height)], dtype=np.float32)
        rows = self._rows(classes[:count].tolist(), places.reshape(len(places), -1, 2) * shape)
        return Structure(placed(rows), float(scores[:count].mean()) if count else 0.0)

    def _rows(self, classes: list[int], places: npt.NDArray[np.float32]) -> list[list[Cell]]:
        rows: list[list[Cell]] = []
        head = False
        # An open cell's spans come as tokens of their own before its `>`.
        spans: dict[str, int] | None = None
        begun = 0
        for step, number in enumerate(classes):
            word = self.tokens[number]
            if word in {"<thead>", "</thead>"}:
                head = word == "<thead>"
            elif word == "<tr>":
                rows.append([])
            elif word == _EMPTY_CELL:
                _row(rows).append(Cell(0, 0, header=head, box=_box(places[step])))
            elif word == "<td":
                spans, begun = {}, step
            elif spans is not None and (found := _SPAN.search(word)):
                spans[found[1]] = int(found[2])
            elif spans is not None and word == ">":
                box = _box(places[begun])
                _row(rows).append(
                    Cell(0, 0, rows=spans.get("row", 1), columns=spans.get("col", 1), header=head, box=box)
                )
                spans = None
        return rows


def _row(rows: list[list[Cell]]) -> list[Cell]:
    if not rows:
        rows.append([])
    return rows[-1]


def _box(corners: npt.NDArray[np.float32]) -> tuple[float, float, float, float]:
    x0, y0 = np.clip(corners.min(axis=0), 0.0, 1.0)
    x1, y1 = np.clip(corners.max(axis=0), 0.0, 1.0)
    return float(x0), float(y0), float(x1), float(y1)


def _tensor(image: Pixels, scale: float) -> Tensor:
    """`(1, 3, 488, 488)`, BGR as the network was trained."""
    height, width = image.shape[:2]
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    scaled = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    tensor = np.zeros((1, 3, _SIDE, _SIDE), dtype=np.float32)
    normal = (scaled.astype(np.float32) / 255 - _MEAN) / _DEVIATION
    tensor[0, :, : size[1], : size[0]] = normal.transpose(2, 0, 1)
    return tensor
