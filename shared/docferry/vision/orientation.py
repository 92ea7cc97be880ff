"""Which way up a page is: a classifier over 0, 90, 180 and 270 degrees."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from docferry.errors import ModelError
from docferry.vision.images import Pixels
from docferry.vision.sessions import Network, Tensor

_SHORT_SIDE = 256
_CROP = 224
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255
_TURNS = {90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_COUNTERCLOCKWISE}


@dataclass(frozen=True, slots=True)
class Orientation:
    """The classifier's answer.

    Attributes:
        degrees: How far the page in the picture is turned clockwise: 0, 90, 180 or 270.
        score: The network's score for it, 0..1; trained with smoothed labels, it stays below 0.93 even when sure.
        upright_score: Its score for 0 degrees.
    """

    degrees: int
    score: float
    upright_score: float


@dataclass(frozen=True, slots=True)
class OrientationClassifier:
    """The page orientation network. Safe to use from several threads at once."""

    network: Network
    degrees: tuple[int, ...]

    @classmethod
    def of(cls, network: Network) -> OrientationClassifier:
        """A classifier whose classes are those stored in the network's metadata.

        Raises:
            ModelError: No `character` entry, or something other than the four right angles.
        """
        names = network.metadata.get("character", "").split("\n")
        if sorted(names) != ["0", "180", "270", "90"]:
            raise ModelError(
                f"the orientation model's file names its classes {names}, not 0, 90, 180, 270",
                remedy="use the orientation model from models.toml",
            )
        return cls(network, tuple(int(name) for name in names))

    def classify(self, image: Pixels) -> Orientation:
        """Judge a picture `(height, width, 3)`, BGR, by up to three squares along its long side."""
        scores = self.network.run(_tensor(image))[0].mean(axis=0)
        best = int(np.argmax(scores))
        return Orientation(self.degrees[best], float(scores[best]), float(scores[self.degrees.index(0)]))


def turned(image: Pixels, degrees: int) -> Pixels:
    """The picture turned clockwise by 0, 90, 180 or 270 degrees."""
    if degrees == 0:
        return image
    return np.asarray(cv2.rotate(image, _TURNS[degrees]), dtype=np.uint8)


def _tensor(image: Pixels) -> Tensor:
    height, width = image.shape[:2]
    scale = _SHORT_SIDE / min(height, width)
    # A strip of paper twenty times longer than wide is judged by its middle.
    size = (min(round(width * scale), 20 * _SHORT_SIDE), min(round(height * scale), 20 * _SHORT_SIDE))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small = np.asarray(cv2.resize(image, size, interpolation=how), dtype=np.uint8)
    squares = [_normalised(small[y : y + _CROP, x : x + _CROP]) for x, y in _corners(*size)]
    return np.stack(squares)


def _corners(width: int, height: int) -> list[tuple[int, int]]:
    """Top left corners of the squares to look at: the middle, and on long pages one to either side."""
    x, y = (width - _CROP) // 2, (height - _CROP) // 2
    if max(width, height) < 1.3 * min(width, height):
        return [(x, y)]
    quarter = (max(width, height) - _CROP) // 4
    along = (0, quarter) if height > width else (quarter, 0)
    return [(x, y), (x - along[0], y - along[1]), (x + along[0], y + along[1])]


def _normalised(square: Pixels) -> Tensor:
    """`(3, 224, 224)`."""
    return ((square.astype(np.float32) - _MEAN) / _DEVIATION).transpose(2, 0, 1)
