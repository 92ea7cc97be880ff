"""The pictures of a page that reached the cloud, and which of them shows a place sharpest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docferry.document import Box, Page
from docferry.vision.images import ImageLimits, Pixels, decode
from docferry.vision.orientation import turned
from docferry_cloud.documents.files import FileKind, kind_of
from docferry_cloud.documents.pdf import read_page
from docferry_cloud.engine import PageInput
from docferry_cloud.pipeline_geometry import within
from docferry_cloud.vlm.pictures import crop

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
_LIMITS = ImageLimits(max_bytes=16 * 1024 * 1024, max_pixels=40_000_000)
_SLACK = 0.004
"""How far a place may stick out of a crop that shows it; the wire rounds boxes."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A picture of a piece of the upright page."""

    box: Box
    image: Pixels

    @property
    def scale(self) -> float:
        """Pixels for one page width: larger is sharper."""
        width: int = self.image.shape[1]
        return width / max(self.box[2] - self.box[0], 1e-6)


def views(page: PageInput, read: Page) -> tuple[View, ...]:
    """The pictures that show the page as it was read: upright, and no less sharp than what it was read from.

    An overview is one only where nothing else was there to read: otherwise the reader has seen more than it shows.

    Raises:
        UnreadableImage, ImageTooLarge: One of them cannot be used.
    """
    found = []
    if page.image is not None:
        whole = _whole(page.image, page.image_page, read)
        if whole is not None:
            found.append(View(WHOLE, whole))
    elif page.reading is None and page.overview is not None:
        found.append(View(WHOLE, _upright(decode(page.overview, name="overview"), read)))
    found += [
        View(each.box, decode(each.data, limits=_LIMITS, name=f"crop {each.part_id}"))
        for each in page.crops
        if each.box[2] > each.box[0] and each.box[3] > each.box[1]
    ]
    return tuple(found)


def has_view(page: PageInput) -> bool:
    """Whether there may be a picture to look at, without decoding one."""
    if page.image is not None:
        return kind_of(page.image) in {FileKind.PICTURE, FileKind.PDF}
    return bool(page.crops) or (page.reading is None and page.overview is not None)


def whole(shown: Sequence[View]) -> View | None:
    """The picture of the whole page, if there is one."""
    return next((view for view in shown if view.box == WHOLE), None)


def sharpest(shown: Sequence[View], box: Box) -> View | None:
    """The sharpest picture that shows a place from end to end; None where none does."""
    return max((view for view in shown if within(box, view.box, _SLACK)), key=lambda view: view.scale, default=None)


def cut_out(view: View, box: Box, angle: int = 0) -> Pixels | None:
    """A place of the page out of a picture of it."""
    x0, y0, x1, y1 = view.box
    wide, high = x1 - x0, y1 - y0
    inner = ((box[0] - x0) / wide, (box[1] - y0) / high, (box[2] - x0) / wide, (box[3] - y0) / high)
    return crop(view.image, inner, angle)


def _whole(data: bytes, number: int, read: Page) -> Pixels | None:
    kind = kind_of(data)
    if kind is FileKind.PICTURE:
        return _upright(decode(data, name="page", page=number), read)
    if kind is not FileKind.PDF:
        # Office and HTML files have no pixels; they were read without loss.
        return None
    page = read_page(data, number)
    return page.image if page.layer is not None else _upright(page.image, read)


def _upright(image: Pixels, read: Page) -> Pixels:
    return turned(image, -read.quality.orientation % 360) if read.quality.orientation else image
