"""Where a prepared page lies in its captured file: what is kept with a document, to cut more from the file later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


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


def to_json(pages: Sequence[PageGeometry]) -> str:
    """The geometry of a document's pages as it is stored."""
    return json.dumps([asdict(page) for page in pages])


def from_json(text: str) -> tuple[PageGeometry, ...]:
    """The stored geometry of a document's pages."""
    return tuple(PageGeometry(**{**page, "to_frame": tuple(page["to_frame"])}) for page in json.loads(text))
