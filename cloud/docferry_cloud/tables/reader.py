"""A table from its picture: structure by network, text by lines, both brought together cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import cv2
import numpy as np

from docferry.document import Box
from docferry.model_store import ModelStore
from docferry.rectangles import around, in_pixels, in_shares
from docferry.tables import Cell, Grid
from docferry.vision.images import Pixels
from docferry.vision.quads import Quad
from docferry.vision.sessions import open_network
from docferry_cloud.deep.reader import DeepReader
from docferry_cloud.engine import Cancelled, check
from docferry_cloud.tables.matching import Placed, cell_of, cuts, joined
from docferry_cloud.tables.structure import StructureReader

MODEL = "slanet-plus"

_READABLE = 22.0
"""Lines at least this high, in pixels, are read as well as they can be; lower ones are read again, enlarged."""

_ENLARGED = 30.0
"""How high lines are made for that. On the pubtabnet sample, lines 9 px high: TEDS 0.968 at 18 px, 0.972 at 27 px."""

_MOST_ENLARGED = 4.0
_LEAST_SIDE = 16
_MOST_PIXELS = 6_000_000

_LEAST_SCORE = 0.7
"""A cell that no line fell into is read by itself, and believed from this score on: an empty one gives noise."""

_NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)
_INK = 40
"""Grey levels between the darkest and the lightest pixel of a cell that is not empty."""


@dataclass(frozen=True, slots=True)
class TableText:
    """One line of the table's picture, in its pixels."""

    quad: Quad
    text: str


@dataclass(frozen=True, slots=True)
class TableReader:
    """The table network and the text reader for cells. Safe to use from several threads at once."""

    structure: StructureReader
    text: DeepReader
    provenance: str

    @classmethod
    def load(cls, store: ModelStore, text: DeepReader, *, threads: int) -> TableReader:
        """Load the structure network beside a text reader and run it once.

        Raises:
            ModelError: The model is missing or cannot be loaded.
        """
        structure = StructureReader.of(open_network(store.path(MODEL), threads=threads))
        structure.read(np.full((64, 64, 3), 255, dtype=np.uint8))
        return cls(structure, text, f"cloud:{MODEL}@{store.sha256(MODEL)[:6]}")

    def read(
        self,
        image: Pixels,
        lines: Sequence[TableText],
        cancelled: Cancelled,
        *,
        reread: bool = True,
        least_score: float = 0.0,
    ) -> Grid:
        """The table that fills a picture; no cells where the network saw none.

        Args:
            image: `(height, width, 3)`, BGR, the table and a little around it.
            lines: What was read of it before; used where print is large enough, else the cells are read anew.
            reread: False where the lines were read from a sharper picture than this one: they stand then.
            least_score: A structure that the network scored lower is not believed, 0..1.
        """
        if min(image.shape[:2]) < _LEAST_SIDE:
            return Grid()
        seen = self.structure.read(image)
        check(cancelled)
        if not seen.grid.cells or seen.score < least_score:
            return Grid()
        scale = _scale(image, lines)
        if reread and (scale > 1 or not lines):
            image = np.asarray(cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC), np.uint8)
            lines = [TableText(line.quad, line.text) for line in self.text.read(image, cancelled)]
        height, width = image.shape[:2]
        boxes = [in_pixels(cell.box or _NOWHERE, width, height) for cell in seen.grid.cells]
        pieces = self._pieces(image, lines, boxes) if reread else _split(lines, boxes)
        check(cancelled)
        inside: list[list[Placed]] = [[] for _ in boxes]
        for piece in pieces:
            home = cell_of(piece.box, boxes)
            if home is not None:
                inside[home].append(piece)
        if reread:
            self._fill(image, boxes, inside)
        return Grid(
            tuple(
                replace(cell, text=joined(held), box=_cell_box(cell, held, image))
                for cell, held in zip(seen.grid.cells, inside, strict=True)
            )
        )

    def _pieces(self, image: Pixels, lines: Sequence[TableText], boxes: Sequence[Box]) -> list[Placed]:
        """The lines, those that run through several cells cut and read piece by piece."""
        pieces: list[Placed] = []
        parts: list[Box] = []
        for line in lines:
            box = _around(line.quad)
            places = cuts(box, boxes)
            if not places:
                pieces.append(Placed(box, line.text))
                continue
            ends = [box[0], *places, box[2]]
            parts += [(start, box[1], end, box[3]) for start, end in pairwise(ends)]
        read = self.text.main.read(image, [_quad(part) for part in parts])
        pieces += [Placed(part, answer.text) for part, answer in zip(parts, read, strict=True) if answer.text]
        return pieces

    def _fill(self, image: Pixels, boxes: Sequence[Box], inside: list[list[Placed]]) -> None:
        """Read the cells that no line fell into although there is ink in them."""
        empty = [number for number, held in enumerate(inside) if not held and _has_ink(image, boxes[number])]
        read = self.text.main.read(image, [_quad(_grown(boxes[number], image)) for number in empty])
        for number, answer in zip(empty, read, strict=True):
            if answer.text and answer.score >= _LEAST_SCORE:
                inside[number].append(Placed(boxes[number], answer.text))


def _split(lines: Sequence[TableText], boxes: Sequence[Box]) -> list[Placed]:
    """The lines, those that run through several cells split where their text has a space nearest to the cut."""
    pieces: list[Placed] = []
    for line in lines:
        box, rest = _around(line.quad), line.text
        start, whole = box[0], len(line.text)
        for place in cuts(box, boxes):
            wanted = round((place - box[0]) / (box[2] - box[0]) * whole) - (whole - len(rest))
            spaces = [at for at, letter in enumerate(rest) if letter == " "]
            at = min(spaces, key=lambda space: abs(space - wanted), default=None)
            if at is not None:
                pieces.append(Placed((start, box[1], place, box[3]), rest[:at]))
                rest, start = rest[at + 1 :], place
        pieces.append(Placed((start, box[1], box[2], box[3]), rest))
    return pieces


def _scale(image: Pixels, lines: Sequence[TableText]) -> float:
    """By how much to enlarge a table for reading its cells; 1 where its print is large enough."""
    heights = [box[3] - box[1] for box in (_around(line.quad) for line in lines)]
    # Without lines nobody knows; print that was too small to be found is the likeliest reason.
    height = median(heights) if heights else _ENLARGED / 3
    if height >= _READABLE:
        return 1.0
    most = math.sqrt(_MOST_PIXELS / (image.shape[0] * image.shape[1]))
    return max(1.0, min(_ENLARGED / height, _MOST_ENLARGED, most))


def _around(quad: Quad) -> Box:
    (x0, y0), (x1, y1) = quad.min(axis=0).tolist(), quad.max(axis=0).tolist()
    return x0, y0, x1, y1


def _quad(box: Box) -> Quad:
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float32)


def _grown(box: Box, image: Pixels) -> Box:
    """A little air around a cell's content: the network's boxes are good to a pixel or two of its own."""
    height, width = image.shape[:2]
    air = 0.12 * (box[3] - box[1])
    return max(0.0, box[0] - air), max(0.0, box[1] - air), min(width, box[2] + air), min(height, box[3] + air)


def _has_ink(image: Pixels, box: Box) -> bool:
    x0, y0, x1, y1 = (round(side) for side in box)
    inside = image[y0:y1, x0:x1]
    return bool(inside.size) and min(y1 - y0, x1 - x0) >= 4 and int(inside.max()) - int(inside.min()) >= _INK


def _cell_box(cell: Cell, held: Sequence[Placed], image: Pixels) -> Box | None:
    """Where the cell's text stands, relative to the picture; the network's box where there is none."""
    if not held:
        return cell.box
    height, width = image.shape[:2]
    return in_shares(around(piece.box for piece in held), width, height)
