"""Untrusted bytes to pixels, and pixels to WebP.

The header is read first: format, size and pixel count are checked before anything the size of the picture is
allocated. What comes out is always `(height, width, 3)` uint8 in BGR order, upright by its Exif orientation,
and carries no metadata.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from docferry.errors import DocferryError, ImageTooLarge, UnreadableImage

Pixels = npt.NDArray[np.uint8]
"""An image, `(height, width, 3)`, uint8, BGR."""

FORMATS = ("JPEG", "PNG", "WebP", "TIFF", "BMP", "GIF", "AVIF", "PNM")
"""What `decode` reads: any page of a TIFF, and of GIF and animated pictures the first frame."""

WEBP_MAX_SIDE = 16383
"""The longest side that the WebP format can express."""

_REMEDY_FORMAT = f"give a photo or scan in one of: {', '.join(FORMATS)}"
_REMEDY_DAMAGED = "take the picture or copy the file again"
_EXIF_ORIENTATION = 0x0112
_STRIP = 256
_JPEG_SCAN, _JPEG_END = b"\xff\xda", b"\xff\xd9"
_JPEG_READING = {
    1: cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION,
    2: cv2.IMREAD_REDUCED_COLOR_2 | cv2.IMREAD_IGNORE_ORIENTATION,
    4: cv2.IMREAD_REDUCED_COLOR_4 | cv2.IMREAD_IGNORE_ORIENTATION,
    8: cv2.IMREAD_REDUCED_COLOR_8 | cv2.IMREAD_IGNORE_ORIENTATION,
}
# TIFF 6.0, NewSubfileType: bit 0 says "reduced resolution of another image", bit 2 "transparency mask".
_SUBFILE_TYPE = 254
_NO_PAGE = 0b101


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What an image may cost; pixels are a page's. A4 at 600 dpi, the largest scan one meets, has 35 megapixels."""

    max_bytes: int = 64 * 1024 * 1024
    max_pixels: int = 100_000_000
    max_pages: int = 50


def page_count(data: bytes, *, limits: ImageLimits | None = None, name: str = "image") -> int:
    """How many pages an image file holds: of a TIFF those that are no thumbnails or masks, of anything else one.

    Raises:
        UnreadableImage: Empty, damaged, or not a format in `FORMATS`.
        ImageTooLarge: More bytes or pages than `limits` allow.
    """
    limits = limits or ImageLimits()
    with _opened(data, limits, name) as picture:
        frames = _page_frames(picture, limits.max_pages + 1)
    if len(frames) > limits.max_pages:
        raise ImageTooLarge(
            f"{name}: more than {limits.max_pages} pages", remedy="split it into several documents", file=name
        )
    return len(frames)


def decode(
    data: bytes,
    *,
    limits: ImageLimits | None = None,
    name: str = "image",
    enough: int | None = None,
    page: int = 0,
) -> Pixels:
    """Decode an image file held in memory.

    Args:
        data: The file's bytes.
        limits: Bounds on bytes and pixels, checked before decoding; the defaults when None.
        name: What to call the image in errors, usually its file name.
        enough: A long side that is enough for the caller. A JPEG more than twice that long is reduced by a power of two
            while it is decoded, which is cheaper than decoding all of it; its long side stays at least `enough`.
        page: Which page of a TIFF, from 0; see `page_count`.

    Returns:
        Pixels `(height, width, 3)`, uint8, BGR, upright by Exif; transparency is laid on white.

    Raises:
        UnreadableImage: Empty, damaged, cut short, or not a format in `FORMATS`.
        ImageTooLarge: More bytes or pixels than `limits` allow.
    """
    limits = limits or ImageLimits()
    with _opened(data, limits, name) as picture:
        if page:
            picture.seek(_page_frames(picture, page + 1)[page])
        _check_pixels(picture, limits, name)
        if picture.format == "JPEG":
            reduction = 1 if enough is None else _reduction(picture.size, enough)
            if (pixels := _whole_jpeg(data, picture, reduction)) is not None:
                return _upright(pixels, _orientation(picture))
            picture.draft(None, (max(1, picture.width // reduction), max(1, picture.height // reduction)))
        picture.load()
        return _upright(_bgr(picture, name), _orientation(picture))


@contextlib.contextmanager
def _opened(data: bytes, limits: ImageLimits, name: str) -> Iterator[ImageFile.ImageFile]:
    """The file as Pillow sees it; whatever goes wrong with it inside the block gets its name.

    Raises:
        UnreadableImage: Empty, damaged, cut short, or not a format in `FORMATS`.
        ImageTooLarge: More bytes than `limits` allow, or frames larger than the header says.
    """
    if not data:
        raise UnreadableImage(f"{name}: the file is empty", remedy=_REMEDY_DAMAGED, file=name)
    if len(data) > limits.max_bytes:
        raise ImageTooLarge(
            f"{name}: {len(data):,} bytes, the limit is {limits.max_bytes:,}",
            remedy="save it smaller, or send it to the cloud as it is",
            file=name,
        )
    plugin = _plugin(data, name)
    try:
        with plugin(io.BytesIO(data)) as picture:
            yield picture
    except DocferryError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError) as error:
        raise ImageTooLarge(
            f"{name}: its frames are larger than its header says", remedy="save it smaller", file=name
        ) from error
    # Pillow's decoders answer damage with nearly every exception there is (struct.error, IndexError, SyntaxError, ...).
    except Exception as error:
        raise UnreadableImage(
            f"{name}: the image is damaged or cut short: {error}", remedy=_REMEDY_DAMAGED, file=name
        ) from error


def _page_frames(picture: ImageFile.ImageFile, most: int) -> list[int]:
    """Numbers of the frames that are pages, at most so many; always the first frame."""
    if not isinstance(picture, TiffImagePlugin.TiffImageFile):
        return [0]
    found = [0]
    # Thumbnails and masks stand between pages; a chain of nothing else must end too.
    for number in range(1, 4 * most):
        if len(found) == most:
            break
        try:
            picture.seek(number)
        except EOFError:
            break
        if not int(picture.tag_v2.get(_SUBFILE_TYPE, 0)) & _NO_PAGE:
            found.append(number)
    picture.seek(0)
    return found


def picture_size(data: bytes, *, name: str = "image") -> tuple[int, int]:
    """Width and height in pixels of an image file, upright by its Exif orientation, from its header alone.

    Raises:
        UnreadableImage: Empty, damaged, or not a format in `FORMATS`.
    """
    try:
        with _plugin(data, name)(io.BytesIO(data)) as picture:
            width, height = picture.size
            return (height, width) if _orientation(picture) >= 5 else (width, height)
    except DocferryError:
        raise
    # As in `decode`: Pillow's parsers answer damage with nearly every exception there is.
    except Exception as error:
        raise UnreadableImage(f"{name}: the image is damaged: {error}", remedy=_REMEDY_DAMAGED, file=name) from error


def encode_webp(image: Pixels, quality: int = 60, *, grey: bool = False) -> bytes:
    """Encode pixels as lossy WebP without any metadata.

    Args:
        image: `(height, width, 3)` BGR.
        quality: 0 (smallest) .. 100.
        grey: Drop the colour first; text loses nothing and the file shrinks.

    Raises:
        ImageTooLarge: A side is longer than WebP can express.
    """
    height, width = image.shape[:2]
    if max(height, width) > WEBP_MAX_SIDE:
        raise ImageTooLarge(
            f"{width}x{height} pixels do not fit WebP, whose sides end at {WEBP_MAX_SIDE}", remedy="scale it down first"
        )
    if grey:
        picture = Image.fromarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))
    else:
        picture = Image.fromarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=quality, method=4)
    return buffer.getvalue()


def _plugin(data: bytes, name: str) -> type[ImageFile.ImageFile]:
    """The Pillow class for the file's signature; `Image.open` would warn about size in its own words first."""
    for signature, plugin in _SIGNATURES:
        if data.startswith(signature):
            return plugin
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return WebPImagePlugin.WebPImageFile
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis"):
        return AvifImagePlugin.AvifImageFile
    kind = _other_kind(data)
    raise UnreadableImage(f"{name}: {kind}", remedy=_REMEDY_FORMAT, file=name)


_SIGNATURES: tuple[tuple[bytes, type[ImageFile.ImageFile]], ...] = (
    (b"\xff\xd8\xff", JpegImagePlugin.JpegImageFile),
    (b"\x89PNG\r\n\x1a\n", PngImagePlugin.PngImageFile),
    (b"BM", BmpImagePlugin.BmpImageFile),
    (b"GIF87a", GifImagePlugin.GifImageFile),
    (b"GIF89a", GifImagePlugin.GifImageFile),
    (b"II*\x00", TiffImagePlugin.TiffImageFile),
    (b"MM\x00*", TiffImagePlugin.TiffImageFile),
    (b"II+\x00", TiffImagePlugin.TiffImageFile),
    (b"MM\x00+", TiffImagePlugin.TiffImageFile),
    (b"P4", PpmImagePlugin.PpmImageFile),
    (b"P5", PpmImagePlugin.PpmImageFile),
    (b"P6", PpmImagePlugin.PpmImageFile),
)


def _other_kind(data: bytes) -> str:
    """What the bytes are, in words, when they are no image we read."""
    if data.startswith(b"%PDF"):
        return "this is a PDF, and the edge reads images"
    if data[4:8] == b"ftyp":
        return "this is a HEIC/HEIF picture or a video, which we do not read"
    if data.startswith(b"PK\x03\x04"):
        return "this is a zip archive or an Office file, not an image"
    try:
        data[:512].decode("utf-8")
    except UnicodeDecodeError:
        return "this is not an image in any format we read"
    return "this is text, not an image"


def _check_pixels(picture: Image.Image, limits: ImageLimits, name: str) -> None:
    width, height = picture.size
    if width < 1 or height < 1:
        raise UnreadableImage(f"{name}: the image has no pixels", remedy=_REMEDY_DAMAGED, file=name)
    if width * height > limits.max_pixels:
        raise ImageTooLarge(
            f"{name}: {width} x {height} pixels, the limit is {limits.max_pixels / 1e6:g} megapixels",
            remedy="scale it down; 300 dots per inch are enough to read",
            file=name,
        )


def _reduction(size: tuple[int, int], enough: int) -> int:
    """The greatest of the powers of two a JPEG can be reduced by that keeps its long side at least `enough`."""
    return next((by for by in (8, 4, 2) if max(size) >= by * enough), 1)


def _whole_jpeg(data: bytes, picture: Image.Image, reduction: int) -> Pixels | None:
    """The pixels of a grey or colour JPEG that is all there, straight from OpenCV; None leaves the file to Pillow.

    Both use the same library and give the same pixels, but Pillow's own copy takes four bytes a pixel and is then
    copied. OpenCV fills in what a cut-short file lacks without saying so: so the last scan must have its end (within
    one, 0xFF is followed by 0x00 or a restart marker alone), and for anything else Pillow finds the words.
    """
    if picture.mode not in ("L", "RGB") or data.rfind(_JPEG_END) <= data.rfind(_JPEG_SCAN):
        return None
    try:
        pixels = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), _JPEG_READING[reduction])
    except cv2.error:
        return None
    expected = -(-picture.height // reduction), -(-picture.width // reduction), 3
    if pixels is None or pixels.shape != expected:
        return None
    return np.asarray(pixels, dtype=np.uint8)


def _orientation(picture: Image.Image) -> int:
    """The Exif orientation 1..8; 1 where there is none or the block is damaged."""
    try:
        value: Any = picture.getexif().get(_EXIF_ORIENTATION, 1)
    # A damaged metadata block must not cost us a good picture, and its parser raises anything.
    except Exception:  # noqa: BLE001
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _upright(image: Pixels, orientation: int) -> Pixels:
    """Undo an Exif orientation (CIPA DC-008, tag 0x0112): the even ones are mirrored, 5..8 also transposed."""
    if orientation >= 5:
        image = image.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        image = image[:, ::-1]
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    return np.ascontiguousarray(image)


def _bgr(picture: Image.Image, name: str) -> Pixels:
    """The picture's pixels, a strip of rows at a time: Pillow's own copy is as much memory as a page may cost once."""
    if picture.mode == "F":
        raise UnreadableImage(
            f"{name}: its pixels are floating-point numbers", remedy="save it with 8 bits per channel", file=name
        )
    width, height = picture.size
    # 16-bit and 32-bit integer grey counts by its high byte; Pillow's own conversion would clip at 255.
    shift = 8 if picture.mode.startswith("I") and int(np.max(picture.getextrema())) > 255 else 0
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    for top in range(0, height, _STRIP):
        bottom = min(height, top + _STRIP)
        pixels[top:bottom] = _strip(picture.crop((0, top, width, bottom)), shift)
    return pixels


def _strip(picture: Image.Image, shift: int) -> Pixels:
    if picture.mode.startswith("I"):
        wide = np.asarray(picture).astype(np.int64) >> shift
        return np.asarray(cv2.cvtColor(np.clip(wide, 0, 255).astype(np.uint8), cv2.COLOR_GRAY2BGR), dtype=np.uint8)
    if picture.has_transparency_data:
        rgba = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
    rgb = picture if picture.mode == "RGB" else picture.convert("RGB")
    return np.asarray(cv2.cvtColor(np.asarray(rgb), cv2.COLOR_RGB2BGR), dtype=np.uint8)
