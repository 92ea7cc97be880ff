"""Cutting pieces of a prepared page from the captured frame itself, as sharp as it is, without preparing it again.

What preparing found out, where the page lies in the frame, is kept with the document; the frame's pixels do the rest. A
piece comes straight and upright like the page, but in the frame's own light; only a whole page is evened out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import cv2
import numpy as np

from docferry.document import Box
from docferry.errors import UnreadableImage
from docferry.vision.images import WEBP_MAX_SIDE, ImageLimits, Pixels, decode, picture_size
from docferry_edge.preparation.geometry import Homography, Points, apply, warp
from docferry_edge.preparation.light import brightened
from docferry_edge.prepare import Frame, PageImage

_WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
_AVERAGE_FROM = 1.5
"""A piece that is shrunk more than this is averaged, not sampled: thin strokes would drop out."""


@dataclass(frozen=True, slots=True)
class PageGeometry:
    """How a prepared page lies in its captured frame.

    Attributes:
        width, height: Pixels of the prepared page.
        frame_width, frame_height: Pixels of the frame, upright by its Exif.
        to_frame: The homography from relative coordinates of the page to those of the frame, row by row.
    """

    width: int
    height: int
    frame_width: int
    frame_height: int
    to_frame: tuple[float, ...]

    @property
    def homography(self) -> Homography:
        """`to_frame` as a matrix."""
        return np.array(self.to_frame, dtype=np.float64).reshape(3, 3)


def geometry_of(page: PageImage, frame: Frame) -> PageGeometry | None:
    """How a page that was prepared from a frame lies in it; None if the frame is no picture that could be cut."""
    try:
        width, height = picture_size(frame.data, name=frame.name)
    except UnreadableImage:
        return None
    return PageGeometry(page.width, page.height, width, height, tuple(map(float, page.to_frame.ravel())))


def to_json(pages: Sequence[PageGeometry]) -> str:
    """The geometry of a document's pages as it is stored."""
    return json.dumps([asdict(page) for page in pages])


def from_json(text: str) -> tuple[PageGeometry, ...]:
    """The stored geometry of a document's pages."""
    return tuple(PageGeometry(**{**page, "to_frame": tuple(page["to_frame"])}) for page in json.loads(text))


def sharpness(geometry: PageGeometry, box: Box = _WHOLE) -> float:
    """Pixels of the frame along a side for one of the prepared page, over a piece of the page: its sharpest side's.

    In a photo taken at a slant one side is nearer than the other; going by the nearest one loses nothing.
    """
    corners = apply(geometry.homography, _corners(box)) * (geometry.frame_width, geometry.frame_height)
    across, down, back, up = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)
    width, height = (box[2] - box[0]) * geometry.width, (box[3] - box[1]) * geometry.height
    return max(float(max(across, back)) / width, float(max(down, up)) / height) if width > 0 and height > 0 else 0.0


def cut(
    frame: Frame, geometry: PageGeometry, box: Box | None, scale: float, limits: ImageLimits | None = None
) -> Pixels:
    """A piece of the page as a picture of its own.

    Args:
        frame: The captured file the page was prepared from.
        geometry: Where the page lies in it.
        box: Which piece, relative to the page; None for the whole page.
        scale: Pixels along a side wanted for one of the prepared page; the frame's own sharpness is the most there is,
            and nothing is blown up.

    Raises:
        UnreadableImage, ImageTooLarge: The frame cannot be used.
    """
    place = box or _WHOLE
    native = max(sharpness(geometry, place), 1e-6)
    width, height = (place[2] - place[0]) * geometry.width, (place[3] - place[1]) * geometry.height
    used = min(scale, native, WEBP_MAX_SIDE / max(width, height))
    longest = max(geometry.frame_width, geometry.frame_height)
    pixels = decode(frame.data, limits=limits, name=frame.name, enough=math.ceil(longest * used / native))
    over = max(pixels.shape[:2]) / longest * native / used
    size = _size(width * used, height * used)
    to_frame = geometry.homography @ _to_page(place)
    if over < _AVERAGE_FROM:
        piece = warp(pixels, to_frame, *size)
    else:
        large = warp(pixels, to_frame, *_size(size[0] * over, size[1] * over))
        piece = np.asarray(cv2.resize(large, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    return brightened(piece) if box is None else piece


def _to_page(box: Box) -> Homography:
    """From relative coordinates of a piece to those of the page."""
    return np.array([[box[2] - box[0], 0, box[0]], [0, box[3] - box[1], box[1]], [0, 0, 1.0]])


def _corners(box: Box) -> Points:
    return np.array([[box[0], box[1]], [box[2], box[1]], [box[2], box[3]], [box[0], box[3]]])


def _size(width: float, height: float) -> tuple[int, int]:
    return max(1, round(width)), max(1, round(height))
