"""What parts cost in bytes and what they are worth: how many of the wrong lines they show come back right.

Both are measured on generated pages by `benchmarks.fit_prices` and ship as `prices.json`. Predictions decide between
parts; what a part really costs is known once it is packed.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import pairwise
from typing import Any

from docferry.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Grade:
    """One way to send print.

    Attributes:
        text_height: Pixels that a line of text is high in the picture.
        quality: WebP quality, 1..100.
        repair: Share of the wrong lines shown like this that are right after the cloud has read them, 0..1; right
            lines that it spoils are taken off.
        crop_rate, page_rate: Bytes for a pixel of a tight crop, and of a whole page with its empty places.
    """

    text_height: float
    quality: int
    repair: float
    crop_rate: float
    page_rate: float


@dataclass(frozen=True, slots=True)
class Prices:
    """The measured table.

    Attributes:
        grades: Rising in text height, then in quality.
        picture: Bytes of any picture before its first pixel: the file's head and the part's message.
        envelope: Bytes of an envelope without structure and pictures.
        structure, line, character: Bytes of a structure: at all, for each line, for each character.
        data: What the sample was, in words; with the date, the readers and its size.
    """

    grades: tuple[Grade, ...]
    picture: float
    envelope: float
    structure: float
    line: float
    character: float
    data: str = ""

    def crop(self, pixels: float, grade: Grade) -> float:
        """Bytes of a crop with so many pixels."""
        return self.picture + grade.crop_rate * pixels

    def page(self, pixels: float, grade: Grade) -> float:
        """Bytes of a whole page with so many pixels."""
        return self.picture + grade.page_rate * pixels

    def reading(self, lines: int, characters: int) -> float:
        """Bytes of a request that holds nothing but the structure."""
        return self.envelope + self.structure + self.line * lines + self.character * characters

    def at(self, text_height: float, quality: int) -> Grade:
        """The grade for any height and quality, between and beyond those measured.

        Between two heights rates and repair are interpolated, beyond the last one they stay; likewise for quality.
        """
        qualities = sorted({grade.quality for grade in self.grades})
        columns = [self._height(text_height, each) for each in qualities]
        return replace(
            _between([(float(grade.quality), grade) for grade in columns], float(quality)),
            text_height=text_height,
            quality=quality,
        )

    def scaled(self, factor: float) -> Prices:
        """The same prices for pictures that cost `factor` times as many bytes a pixel, e.g. for paper full of noise."""
        grades = (
            replace(grade, crop_rate=factor * grade.crop_rate, page_rate=factor * grade.page_rate)
            for grade in self.grades
        )
        return replace(self, grades=tuple(grades))

    def _height(self, text_height: float, quality: int) -> Grade:
        return _between([(grade.text_height, grade) for grade in self.grades if grade.quality == quality], text_height)


def load_prices(text: str, source: str) -> Prices:
    """Prices from their JSON artefact.

    Raises:
        ConfigurationError: It is not one, or a number is out of its range; `source` names it in the error.
    """
    try:
        tree: dict[str, Any] = json.loads(text)
        grades = tuple(Grade(**grade) for grade in tree.pop("grades"))
        prices = Prices(grades=grades, **tree)
        rates = [rate for grade in grades for rate in (grade.crop_rate, grade.page_rate)]
        sound = bool(grades) and all(0.0 <= grade.repair <= 1.0 and 1 <= grade.quality <= 100 for grade in grades)
        positive = all(value >= 0 and math.isfinite(value) for value in (*rates, prices.picture, prices.envelope))
        ordered = all((a.text_height, a.quality) < (b.text_height, b.quality) for a, b in pairwise(grades))
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"{source}: not a table of prices: {error}", remedy="use one that benchmarks.fit_prices has written"
        ) from None
    if not (sound and positive and ordered):
        raise ConfigurationError(f"{source}: a price is out of its range", remedy="fit the table again")
    return prices


@functools.cache
def default_prices() -> Prices:
    """The prices that ship with the package."""
    file = resources.files("docferry_edge") / "prices.json"
    return load_prices(file.read_text(encoding="utf-8"), "the shipped prices")


def _between(points: Sequence[tuple[float, Grade]], at: float) -> Grade:
    """The grade at a place between measured ones; the nearest one beyond the ends."""
    if at <= points[0][0]:
        return points[0][1]
    for (x0, low), (x1, high) in pairwise(points):
        if at <= x1:
            share = (at - x0) / (x1 - x0)
            return replace(
                low,
                repair=low.repair + share * (high.repair - low.repair),
                crop_rate=low.crop_rate + share * (high.crop_rate - low.crop_rate),
                page_rate=low.page_rate + share * (high.page_rate - low.page_rate),
            )
    return points[-1][1]
