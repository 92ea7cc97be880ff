"""The pages of a document as pictures, from whatever reached the cloud about them."""

from __future__ import annotations

import cv2

from docferry.document import Page
from docferry.errors import PixelsUnavailable, UnreadableImage
from docferry.vision.images import Pixels, decode
from docferry.vision.orientation import turned
from docferry_cloud.documents.files import FileKind, kind_of
from docferry_cloud.documents.pdf import read_page
from docferry_cloud.engine import PageInput

_QUALITY = 85


def page_picture(given: PageInput, read: Page, number: int, *, longer_side: int | None = None) -> bytes:
    """A page as JPEG, upright: the sharpest picture of the whole of it.

    Args:
        given: What reached the cloud.
        read: What was made of it.
        number: Page number, from 0, for the error.
        longer_side: Pixels that it has at most along its longer side; None for as many as there are.

    Raises:
        PixelsUnavailable: No picture of the whole page is here.
    """
    # A part that has not come (whole) yet is none.
    data = given.image or given.overview
    kind = FileKind.PICTURE if data is None else kind_of(data)
    if data is None or kind not in {FileKind.PICTURE, FileKind.PDF}:
        raise PixelsUnavailable(
            f"there is no picture of page {number + 1}",
            remedy="ask the device for the page (RequestPart), or export another format",
        )
    own = bool(given.image)
    if kind is FileKind.PDF:
        image = read_page(data, given.image_page).image
    else:
        image = _decoded(data, given.image_page if own else 0, number)
    # An edge sends pages as it has prepared them; a file that went up as it is was turned by whoever read it.
    if own and given.reading is None and read.quality.orientation:
        image = turned(image, -read.quality.orientation % 360)
    longest = max(image.shape[:2])
    if longer_side is not None and longest > longer_side:
        height, width = (max(1, round(side * longer_side / longest)) for side in image.shape[:2])
        image = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA).astype(image.dtype, copy=False)
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1].tobytes()


def _decoded(data: bytes, page: int, number: int) -> Pixels:
    try:
        return decode(data, page=page)
    except UnreadableImage as error:
        raise PixelsUnavailable(
            f"the picture of page {number + 1} is not whole: {error}",
            remedy="export again once the analysis has finished, or export another format",
        ) from error
