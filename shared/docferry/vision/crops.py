"""Cutting places out of a page's pixels, for the few that travel to the cloud."""

from __future__ import annotations

from docferry.document import Box
from docferry.vision.images import Pixels, encode_webp


def crop(image: Pixels, box: Box, *, margin: float = 0.0) -> tuple[Pixels, Box]:
    """Cut an upright relative box out of a page.

    Args:
        image: The page, `(height, width, 3)`.
        box: Relative, 0..1.
        margin: Extra on every side, as a share of the box's height.

    Returns:
        The pixels (a view, at least 1x1) and the relative box they really cover: margins end at the page's edge and
        sides are rounded outwards to whole pixels.
    """
    height, width = image.shape[:2]
    x0, y0, x1, y1 = box
    extra = margin * (y1 - y0) * height
    left = _inside(x0 * width - extra, width - 1)
    top = _inside(y0 * height - extra, height - 1)
    right = max(left + 1, _inside(-(-(x1 * width + extra) // 1), width))
    bottom = max(top + 1, _inside(-(-(y1 * height + extra) // 1), height))
    return image[top:bottom, left:right], (left / width, top / height, right / width, bottom / height)


def encode_crop(
    image: Pixels, box: Box, *, margin: float = 0.25, quality: int = 80, grey: bool = False
) -> tuple[bytes, Box]:
    """A crop as WebP without metadata, and the relative box it covers."""
    pixels, covered = crop(image, box, margin=margin)
    return encode_webp(pixels, quality, grey=grey), covered


def _inside(value: float, most: int) -> int:
    return int(min(max(value, 0), most))
