"""Whether bytes are a picture that the engines can take, told from the header alone."""

from __future__ import annotations

import io

from PIL import Image

from docferry.errors import ImageTooLarge, UnreadableImage
from docferry.v1 import envelope_pb2 as pb

MAX_PIXELS = 100_000_000
_PICTURES = frozenset({pb.PART_KIND_OVERVIEW, pb.PART_KIND_CROP, pb.PART_KIND_PAGE})
_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "TIFF", "BMP", "GIF", "PPM")


def is_picture(part: pb.Part) -> bool:
    """Whether a part must be a picture; an original may be any file, and says by its media type what it is."""
    return part.kind in _PICTURES or part.media_type.startswith("image/")


def check_picture(data: bytes, name: str, field: str) -> None:
    """Check format and size without decoding a pixel. `field` is where the bytes stand in the request.

    Raises:
        UnreadableImage: No picture in a format we read.
        ImageTooLarge: More pixels than `MAX_PIXELS`.
    """
    width, height = _size(data, name, field)
    if width < 1 or height < 1:
        raise UnreadableImage(f"{name}: the picture has no pixels", remedy="take it again", field=field)
    if width * height > MAX_PIXELS:
        raise ImageTooLarge(
            f"{name}: {width} x {height} pixels, the limit is {MAX_PIXELS // 1_000_000} megapixels",
            remedy="scale it down; 300 dots per inch are enough to read",
            field=field,
        )


def media_type(head: bytes, name: str, field: str) -> str:
    """The MIME type of a picture by its first bytes.

    Raises:
        UnreadableImage: No picture in a format we read.
    """
    return Image.MIME[_format(head, name, field)]


def _size(data: bytes, name: str, field: str) -> tuple[int, int]:
    kind = _format(data, name, field)
    try:
        with Image.OPEN[kind][0](io.BytesIO(data), b"") as picture:
            return picture.size
    # Pillow's parsers answer damage with nearly every exception there is.
    except Exception as error:
        raise UnreadableImage(
            f"{name}: the picture is damaged: {error}", remedy="take it again, or send it again", field=field
        ) from error


def _format(data: bytes, name: str, field: str) -> str:
    Image.init()
    for kind in _FORMATS:
        accepts = Image.OPEN[kind][1]
        # `Image.open` would do this too, but warns about large pictures before our own bound is asked.
        if accepts is None or accepts(data[:16]) is True:
            return kind
    raise UnreadableImage(
        f"{name}: this is not a picture in a format we read", remedy=f"send one of {', '.join(_FORMATS)}", field=field
    )
