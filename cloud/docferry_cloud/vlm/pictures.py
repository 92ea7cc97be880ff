"""Pictures as the model was trained to see them: cut out, turned, scaled; and as bytes for a server."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping

import cv2
import numpy as np
from PIL import Image

from docferry.document import Box
from docferry.vision.images import Pixels

LAYOUT_SIDE = 1036
"""The page is stretched to a square of this side for its layout: 37 x 37 visual tokens."""

_TOKEN = 28
"""Pixels along a side that become one visual token."""
_LEAST_SIDE = 28
_MOST_RATIO = 50.0
_MOST_TOKENS = 2048

_READABLE = 30.0
"""Lines as high as this, in pixels, are read as well as higher ones; larger print is scaled down to it."""

_QUALITY = 90
FORMATS: Mapping[str, tuple[str, str]] = {
    "webp": ("WEBP", "image/webp"),
    "jpeg": ("JPEG", "image/jpeg"),
    "png": ("PNG", "image/png"),
}
"""How crops may travel to a server."""


def page_picture(image: Pixels) -> Pixels:
    """The whole page as the layout question wants it; its aspect ratio is not kept."""
    return np.asarray(cv2.resize(image, (LAYOUT_SIDE, LAYOUT_SIDE), interpolation=cv2.INTER_CUBIC), np.uint8)


def crop(image: Pixels, box: Box, angle: int = 0) -> Pixels | None:
    """A piece of the page, turned counter-clockwise by `angle` degrees (0, 90, 180, 270); None where it has no area."""
    height, width = image.shape[:2]
    x0, y0 = max(0, math.floor(box[0] * width)), max(0, math.floor(box[1] * height))
    x1, y1 = min(width, math.ceil(box[2] * width)), min(height, math.ceil(box[3] * height))
    if x1 <= x0 or y1 <= y0:
        return None
    return np.ascontiguousarray(np.rot90(image[y0:y1, x0:x1], angle // 90 % 4))


def fitted(image: Pixels, text_height: float = 0.0) -> Pixels:
    """A crop with sides and tokens within what the model takes.

    Args:
        text_height: Of its lines, in pixels; 0 where nobody knows. Print larger than need be costs tokens and is scaled
            down.
    """
    image = _padded(image)
    height, width = image.shape[:2]
    scale = 1.0
    if text_height > _READABLE:
        scale = _READABLE / text_height
    short = min(height, width)
    scale = max(scale, _LEAST_SIDE / short) if scale * short < _LEAST_SIDE else scale
    scale = min(scale, math.sqrt(_MOST_TOKENS * _TOKEN**2 / (height * width)))
    if scale == 1.0:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_CUBIC if scale > 1 else cv2.INTER_AREA
    return np.asarray(cv2.resize(image, size, interpolation=how), np.uint8)


def visual_tokens(image: Pixels) -> int:
    """How many tokens a picture costs, near enough: sides go to multiples of 28 pixels."""
    height, width = image.shape[:2]
    return int(max(1, round(height / _TOKEN)) * max(1, round(width / _TOKEN)))


def data_url(image: Pixels, form: str) -> str:
    """A picture for a server; `form` is a name in `FORMATS`."""
    encoder, media_type = FORMATS[form]
    buffer = io.BytesIO()
    as_rgb(image).save(buffer, format=encoder, quality=_QUALITY)
    return f"data:{media_type};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def as_rgb(image: Pixels) -> Image.Image:
    """A picture for libraries that speak Pillow."""
    return Image.fromarray(np.ascontiguousarray(image[..., ::-1]))


def _padded(image: Pixels) -> Pixels:
    """White above and below, or left and right, of a picture that is too long for its height."""
    height, width = image.shape[:2]
    missing_y = max(0, math.ceil(width / _MOST_RATIO) - height)
    missing_x = max(0, math.ceil(height / _MOST_RATIO) - width)
    if not missing_x and not missing_y:
        return image
    top, left = missing_y // 2, missing_x // 2
    sides = (top, missing_y - top, left, missing_x - left)
    return np.asarray(cv2.copyMakeBorder(image, *sides, cv2.BORDER_CONSTANT, value=(255, 255, 255)), np.uint8)
