"""Finding a page's blocks: a PicoDet network trained on CDLA (ten classes of document layout).

The network has a head per stride with class scores and, for each of the four sides, a distribution over distances
(Generalized Focal Loss, Li et al. 2020): the distance is the distribution's mean, in strides from the cell's centre.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
import numpy.typing as npt

from docferry.document import CDLA_REGION_TYPES
from docferry.errors import ModelError
from docferry.reading_order import LayoutBox
from docferry.vision.images import Pixels
from docferry.vision.sessions import Network, Tensor

_WIDTH, _HEIGHT = 608, 800
_STRIDES = (8, 16, 32, 64)
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255


@dataclass(frozen=True, slots=True)
class LayoutSettings:
    """Which boxes are kept.

    Attributes:
        score: A box's class score must be above this.
        overlap: Of two boxes of one class that overlap more than this (intersection over union), the weaker goes.
        candidates: No more cells than this enter the comparison.
    """

    score: float = 0.4
    overlap: float = 0.5
    candidates: int = 400


@dataclass(frozen=True, slots=True)
class LayoutDetector:
    """The layout network. Safe to use from several threads at once."""

    network: Network
    classes: tuple[str, ...]
    settings: LayoutSettings = field(default_factory=LayoutSettings)

    @classmethod
    def of(cls, network: Network, settings: LayoutSettings | None = None) -> LayoutDetector:
        """A layout detector whose classes are those stored in the network's metadata.

        Raises:
            ModelError: No `character` entry, or a class that is not CDLA's.
        """
        classes = tuple(network.metadata.get("character", "").split("\n"))
        unknown = [name for name in classes if name not in CDLA_REGION_TYPES]
        if unknown:
            raise ModelError(
                f"the layout model's file names classes we do not know: {unknown}",
                remedy="use the layout model from models.toml",
            )
        return cls(network, classes, settings or LayoutSettings())

    def detect(self, image: Pixels) -> tuple[LayoutBox, ...]:
        """Blocks of a page `(height, width, 3)`, BGR; relative boxes, best score first, raw (they may overlap)."""
        outputs = self.network.run(_tensor(image))
        count = len(_STRIDES)
        scores = np.concatenate([head[0] for head in outputs[:count]])
        distances = [head[0] for head in outputs[count:]]
        boxes = np.concatenate([_decoded(head, stride) for head, stride in zip(distances, _STRIDES, strict=True)])
        return self._kept(boxes, scores)

    def _kept(self, boxes: npt.NDArray[np.float32], scores: Tensor) -> tuple[LayoutBox, ...]:
        cells, classes = np.nonzero(scores > self.settings.score)
        strength = scores[cells, classes]
        order = np.argsort(-strength, kind="stable")[: self.settings.candidates]
        found: list[LayoutBox] = []
        taken: list[tuple[int, npt.NDArray[np.float32]]] = []
        for index in order:
            box, kind = boxes[cells[index]], int(classes[index])
            if any(kind == other and _overlap(box, rival) > self.settings.overlap for other, rival in taken):
                continue
            taken.append((kind, box))
            x0, y0, x1, y1 = (float(value) for value in box)
            if x1 > x0 and y1 > y0:
                region = CDLA_REGION_TYPES[self.classes[kind]]
                found.append(LayoutBox(region, (x0, y0, x1, y1), float(strength[index])))
        return tuple(found)


def _tensor(image: Pixels) -> Tensor:
    """`(1, 3, 800, 608)`; the page is squeezed to the network's shape, as in its training."""
    shrinking = image.shape[0] > _HEIGHT and image.shape[1] > _WIDTH
    scaled = cv2.resize(image, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA if shrinking else cv2.INTER_LINEAR)
    tensor = np.empty((1, 3, _HEIGHT, _WIDTH), dtype=np.float32)
    for channel in range(3):
        np.subtract(scaled[:, :, channel], _MEAN[channel], out=tensor[0, channel])
        tensor[0, channel] *= 1 / _DEVIATION[channel]
    return tensor


def _decoded(distribution: Tensor, stride: int) -> npt.NDArray[np.float32]:
    """Relative boxes `(cells, 4)` from `(cells, 4 * bins)` logits over the distances to left, top, right, bottom."""
    logits = distribution.reshape(len(distribution), 4, -1)
    weights = np.exp(logits - logits.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    distance = (weights @ np.arange(weights.shape[2], dtype=np.float32)) * stride
    rows, columns = -(-_HEIGHT // stride), -(-_WIDTH // stride)
    y, x = np.divmod(np.arange(rows * columns), columns)
    centre = (np.stack([x, y, x, y], axis=1) + 0.5) * stride
    sides = centre + distance * np.array([-1, -1, 1, 1], dtype=np.float32)
    relative = sides / np.array([_WIDTH, _HEIGHT, _WIDTH, _HEIGHT], dtype=np.float32)
    return np.asarray(np.clip(relative, 0.0, 1.0), dtype=np.float32)


def _overlap(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> float:
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    areas = (one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1])
    return float(shared / max(areas - shared, 1e-9))
