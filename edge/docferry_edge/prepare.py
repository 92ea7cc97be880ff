"""From a captured frame to a page that can be read: upright, bounded in size, with a report on its quality.

Nothing is ever thresholded: thermal print is grey, and a hard black and white would lose it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import cv2
import numpy as np

from docferry.document import DOUBTFUL_ORIENTATION, Quality
from docferry.vision.images import ImageLimits, Pixels, decode
from docferry.vision.orientation import Orientation, OrientationClassifier, turned
from docferry_edge.preparation.geometry import Homography, from_corners, identity, quarter_turns, straightened, warp
from docferry_edge.preparation.light import brightened
from docferry_edge.preparation.quality import cropped_edges, measured
from docferry_edge.preparation.sheet import find_sheet, lean, sheet_size
from docferry_edge.preparation.skew import skew

LEAST_SKEW = 0.25
"""Degrees; a page that leans less is left as it is, since turning it softens every letter a little."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a camera, a folder or a command captured: an image file's bytes, unchanged.

    Attributes:
        data: The bytes; their length is the document's original size.
        name: Where it came from, for people: a file name or a camera's name.
        page: Which page of a file that holds several, from 0.
    """

    data: bytes
    name: str = "image"
    page: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PageImage:
    """A prepared page.

    Attributes:
        pixels: `(height, width, 3)` uint8 BGR; all relative coordinates refer to these.
        quality: What the picture is like; `text_height` is filled in by the reader.
        name: The frame's name.
        to_frame: From relative coordinates of this page to those of the captured frame, upright by its Exif: what a
            crop is to be cut from the frame at full resolution with.
    """

    pixels: Pixels
    quality: Quality = field(default_factory=Quality)
    name: str = "image"
    to_frame: Homography = field(default_factory=identity)

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        return int(self.pixels.shape[0])


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """How pages are prepared.

    Attributes:
        longest: The page's long side is scaled down to this; A4 at 300 dpi has 3508 pixels.
        limits: What a frame may cost before anything is decoded.
    """

    longest: int = 3508
    limits: ImageLimits = field(default_factory=ImageLimits)


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """A page on its way through the steps: pixels so far, what is known of them, and where they were in the frame."""

    pixels: Pixels
    quality: Quality = field(default_factory=Quality)
    to_frame: Homography = field(default_factory=identity)


Step = Callable[[Shot], Shot]
"""One step of preparation."""


def prepare(
    frame: Frame, classifier: OrientationClassifier | None = None, settings: PrepareSettings | None = None
) -> PageImage:
    """Decode a frame and make it a readable page.

    Args:
        frame: What was captured.
        classifier: Tells which way up the page is; without one the picture is taken as upright.
        settings: Bounds; the defaults when None.

    Raises:
        UnreadableImage: The bytes are no image we read, or a damaged one.
        ImageTooLarge: It exceeds the limits.
    """
    settings = settings or PrepareSettings()
    # Nothing but the shot may hold pixels here: a page that is turned would be in memory twice from then on.
    shot = Shot(_decoded(frame, settings))
    for step in steps(classifier):
        shot = step(shot)
    return PageImage(shot.pixels, shot.quality, frame.name, shot.to_frame)


def steps(classifier: OrientationClassifier | None) -> tuple[Step, ...]:
    """The steps every page goes through, in order; what is measured is the light as it came in."""
    if classifier is None:
        return (cut_out, look_at_edges, deskew, measure, brighten)
    return (
        cut_out,
        lambda shot: turn_upright(shot, classifier.classify(shot.pixels)),
        look_at_edges,
        deskew,
        measure,
        brighten,
    )


def _decoded(frame: Frame, settings: PrepareSettings) -> Pixels:
    longest = settings.longest
    return bounded(
        decode(frame.data, limits=settings.limits, name=frame.name, enough=longest, page=frame.page), longest
    )


def bounded(pixels: Pixels, longest: int) -> Pixels:
    """The picture scaled down so that neither side is longer than `longest`; never scaled up."""
    height, width = pixels.shape[:2]
    scale = longest / max(height, width)
    if scale >= 1:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def cut_out(shot: Shot) -> Shot:
    """Lay a sheet that was photographed on a table flat, without the table; anything else is left alone.

    The detector sees a fixed number of pixels of a page, so without the table it sees smaller print.
    """
    corners = find_sheet(shot.pixels)
    if corners is None:
        return shot
    width, height = sheet_size(corners, shot.pixels.shape[1], shot.pixels.shape[0])
    to_frame = from_corners(corners)
    quality = replace(shot.quality, skew=lean(corners, shot.pixels.shape[1], shot.pixels.shape[0]))
    return Shot(warp(shot.pixels, to_frame, width, height), quality, shot.to_frame @ to_frame)


def turn_upright(shot: Shot, found: Orientation) -> Shot:
    """Turn the page back if the classifier is sure that it is turned; else leave it and report the doubt."""
    if found.degrees == 0 or found.score < DOUBTFUL_ORIENTATION:
        quality = replace(shot.quality, orientation=0, orientation_score=found.upright_score)
        return replace(shot, quality=quality)
    quality = replace(shot.quality, orientation=found.degrees, orientation_score=found.score)
    return Shot(turned(shot.pixels, -found.degrees % 360), quality, shot.to_frame @ quarter_turns(-found.degrees % 360))


def deskew(shot: Shot) -> Shot:
    """Turn a leaning page straight, on a canvas that holds all of it; a page whose skew is doubtful is left alone."""
    degrees = skew(shot.pixels)
    if degrees is None or abs(degrees) < LEAST_SKEW:
        return shot
    quality = replace(shot.quality, skew=round(shot.quality.skew + degrees, 3))
    back, width, height = straightened(degrees, shot.pixels.shape[1], shot.pixels.shape[0])
    return Shot(warp(shot.pixels, back, width, height), quality, shot.to_frame @ back)


def look_at_edges(shot: Shot) -> Shot:
    """Count the edges of the picture that cut through print; before deskewing, which gives the page new edges."""
    return replace(shot, quality=replace(shot.quality, cropped_edges=cropped_edges(shot.pixels)))


def measure(shot: Shot) -> Shot:
    """Sharpness, exposure and glare of the page, and a hint for the person in front of it."""
    return replace(shot, quality=measured(shot.quality, shot.pixels))


def brighten(shot: Shot) -> Shot:
    """Even out shadow and dim light; a page that is bright all over keeps every pixel."""
    return replace(shot, pixels=brightened(shot.pixels))
