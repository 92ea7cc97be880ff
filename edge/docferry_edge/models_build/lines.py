"""Lines of text to calibrate on: drawn, worn and photographed by the project itself, the same for the same seed.

Static quantisation only needs the ranges that activations take, so the text is nonsense of the right shape. Pillow's
own font is the one font every machine has in the very same version; OpenCV's stroke fonts add thin, printer-like ink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from docferry.vision.images import Pixels

HEIGHT = 48

_SYLLABLES = tuple("ka lo mi ten ra so vel bri an do pu ster gen lin har tor wes qui jo fex zam shy".split())  # noqa: SIM905
_MARKS = "/-.:,%#&()*+@'\"!?<>=;_[]$€£"
_STROKES = (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_COMPLEX, cv2.FONT_HERSHEY_PLAIN)


@dataclass(frozen=True, slots=True)
class TextLine:
    """One drawn line.

    Attributes:
        text: What stands on it.
        pixels: `(48, width, 3)` BGR, as the recogniser gets its crops.
    """

    text: str
    pixels: Pixels


def text_lines(count: int, seed: int) -> list[TextLine]:
    """Lines as receipts, forms and letters have them; every fourth only lightly worn, the rest as cameras see them.

    Args:
        count: How many.
        seed: The same seed gives the same pixels, with the same versions of Pillow, OpenCV and numpy.
    """
    random = np.random.default_rng(seed)
    return [_line(random, number % 4 == 0) for number in range(count)]


def _line(random: np.random.Generator, clean: bool) -> TextLine:
    text = _TEXTS[random.integers(len(_TEXTS))](random)
    high = int(random.integers(14, 60))
    # The first 95 printable characters are all that OpenCV's fonts have.
    drawn = _stroked if text.isascii() and random.random() < 0.2 else _printed
    grey = drawn(text, high, random)
    worn = grey if clean else _worn(grey, random)
    return TextLine(text, _cropped(worn, random))


def _word(random: np.random.Generator) -> str:
    word = "".join(_SYLLABLES[index] for index in random.integers(len(_SYLLABLES), size=random.integers(1, 4)))
    return (word, word.capitalize(), word.upper())[random.integers(3)]


def _words(random: np.random.Generator) -> str:
    return " ".join(_word(random) for _ in range(random.integers(1, 9)))


def _amount(random: np.random.Generator) -> str:
    return f"{random.integers(0, 10 ** random.integers(1, 6))}.{random.integers(100):02d}"


def _row(random: np.random.Generator) -> str:
    return f"{random.integers(1, 99)} x {_words(random)} {_amount(random)}"


def _code(random: np.random.Generator) -> str:
    letters = "".join(chr(65 + index) for index in random.integers(26, size=random.integers(0, 4)))
    digits = "".join(str(digit) for digit in random.integers(10, size=random.integers(2, 14)))
    return f"{letters}{digits}"


def _date(random: np.random.Generator) -> str:
    mark = "/-."[random.integers(3)]
    day, month, year = random.integers(1, 29), random.integers(1, 13), random.integers(1990, 2040)
    return f"{day:02d}{mark}{month:02d}{mark}{year} {random.integers(24):02d}:{random.integers(60):02d}"


def _marked(random: np.random.Generator) -> str:
    return " ".join(f"{_word(random)}{_MARKS[random.integers(len(_MARKS))]}" for _ in range(random.integers(1, 6)))


_TEXTS: tuple[Callable[[np.random.Generator], str], ...] = (_words, _words, _amount, _row, _code, _date, _marked)


def _printed(text: str, high: int, random: np.random.Generator) -> Pixels:
    font = ImageFont.load_default(high)
    left, top, right, bottom = font.getbbox(text)
    pad = high // 2
    page = Image.new("L", (int(right - left) + 2 * pad, int(bottom - top) + 2 * pad), _paper(random))
    pen = ImageDraw.Draw(page)
    pen.text((pad - left, pad - top), text, _ink(random), font, stroke_width=int(high > 30 and random.random() < 0.3))
    return np.asarray(page, dtype=np.uint8)


def _stroked(text: str, high: int, random: np.random.Generator) -> Pixels:
    face = _STROKES[random.integers(len(_STROKES))]
    thick = int(random.integers(1, 3))
    scale = cv2.getFontScaleFromHeight(face, max(8, round(high * 0.7)), thick)
    text = text.translate({ord("€"): "E", ord("£"): "L"})
    (width, height), base = cv2.getTextSize(text, face, scale, thick)
    pad = high // 2
    page = np.full((height + base + 2 * pad, width + 2 * pad), _paper(random), dtype=np.uint8)
    cv2.putText(page, text, (pad, pad + height), face, scale, (_ink(random),), thick, cv2.LINE_AA)
    return page


def _paper(random: np.random.Generator) -> int:
    return int(random.integers(170, 256))


def _ink(random: np.random.Generator) -> int:
    return int(random.integers(0, 110))


def _worn(grey: Pixels, random: np.random.Generator) -> Pixels:
    """Slant, shadow, blur, noise and JPEG, each as strong as on a usable photo."""
    height, width = grey.shape
    slant = float(random.uniform(-0.02, 0.02)) * min(1.0, 8 * height / width)
    shear = np.array([[1, random.uniform(-0.15, 0.15), 0], [slant, 1, -slant * width / 2]], dtype=np.float64)
    page: npt.NDArray[Any] = cv2.warpAffine(grey, shear, (width, height), borderMode=cv2.BORDER_REPLICATE)
    page = page * np.linspace(random.uniform(0.6, 1.0), random.uniform(0.6, 1.0), width, dtype=np.float32)
    page = cv2.GaussianBlur(page, (0, 0), float(random.uniform(0.3, 0.035 * height)))
    page = page + random.normal(0, random.uniform(0, 9), page.shape)
    worn = np.clip(page, 0, 255).astype(np.uint8)
    _, data = cv2.imencode(".jpg", worn, [cv2.IMWRITE_JPEG_QUALITY, int(random.integers(35, 95))])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), dtype=np.uint8)


def _cropped(grey: Pixels, random: np.random.Generator) -> Pixels:
    """Cut as the detector cuts: a little paper all round, 48 pixels high, tinted like the lamp above it."""
    cut = int(grey.shape[0] * random.uniform(0, 0.2))
    grey = grey[cut : grey.shape[0] - cut, cut : grey.shape[1] - cut]
    width = min(3200, max(1, round(grey.shape[1] * HEIGHT / grey.shape[0])))
    how = cv2.INTER_AREA if grey.shape[0] > 2 * HEIGHT else cv2.INTER_LINEAR
    small = cv2.resize(grey, (width, HEIGHT), interpolation=how)
    tint = random.uniform(0.85, 1.0, 3)
    return np.asarray((small[:, :, None] * tint), dtype=np.uint8)
