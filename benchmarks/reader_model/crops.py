"""Crops of single lines, as a router would cut them: amounts, dates, short words and small sentences.

No text that is trained on is ever asked for in a test: `held_out` decides by the text alone, in every process alike.
"""

from __future__ import annotations

import enum
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from benchmarks.generator import ink, light
from benchmarks.generator.fonts import FONTS, Face, load
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import entries, words

Grey = NDArray[np.uint8]

CHARACTERS = " #$%&'()*+,-./0123456789:@ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""What the crops are made of."""

LONGEST = 18
"""Characters of the longest line."""

UNIT = 28
"""Pixels along a side of what becomes one visual token; a line is one unit high."""

_FACES = (Face.MONO, Face.SANS, Face.SERIF)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Text(enum.Enum):
    """What is written on a crop."""

    AMOUNT = "amount"
    DATE = "date"
    WORD = "word"
    SENTENCE = "sentence"


SHARES = {Text.AMOUNT: 0.3, Text.DATE: 0.25, Text.WORD: 0.3, Text.SENTENCE: 0.15}
"""How often each occurs."""


@dataclass(frozen=True, slots=True)
class Crop:
    """A drawn line.

    Attributes:
        pixels: H x W, grey, 28 to 41 high, as cut from a page.
        text: What it says.
        middles: The middle of every character, as a share of the width.
    """

    pixels: Grey
    text: str
    middles: tuple[float, ...]


def held_out(text: str) -> bool:
    """Whether `text` belongs to the tests: one in eight does."""
    return zlib.crc32(text.encode()) % 8 == 0


def draw_text(rng: random.Random, *, unseen: bool, kinds: Sequence[Text] = tuple(Text), longest: int = LONGEST) -> str:
    """A text of at most `longest` characters, from the tests' part if `unseen`, else from the training's."""
    while True:
        text = _MAKERS[rng.choices(kinds, [SHARES[kind] for kind in kinds])[0]](rng)
        if len(text) <= longest and held_out(text) == unseen:
            return text


def draw_crop(text: str, rng: random.Random, split: Split = Split.TRAIN) -> Crop:
    """`text` in one of the split's fonts, printed and photographed a little."""
    font = rng.choice(FONTS[split][rng.choice(_FACES)])
    face = load(font.path(bold=bool(font.bold) and rng.random() < 0.3), rng.randint(22, 30))
    ascent, descent = face.getmetrics()
    top, bottom, left, right = (rng.randint(0, 5) for _ in range(4))
    height = min(max(UNIT, ascent + descent + top + bottom - 4), UNIT + 13)
    width = max(UNIT, round(face.getlength(text)) + left + right)
    page = Image.new("L", (width, height), 255)
    ImageDraw.Draw(page).text((left, height - bottom - descent + 2), text, fill=0, font=face, anchor="ls")
    ends = [left + face.getlength(text[:count]) for count in range(len(text) + 1)]
    middles = tuple((start + end) / 2 / width for start, end in pairwise(ends))
    return Crop(_degraded(np.asarray(page), rng), text, middles)


def to_grid(pixels: Grey, columns: int | None = None) -> Grey:
    """One unit high and a whole number of units wide, as Qwen2-VL's image processor scales such a crop.

    `columns` more than that many are filled up with white, so that crops of several widths stand in one batch.
    """
    width = pixels.shape[1]
    wanted = max(1, round(width / UNIT)) * UNIT
    scaled = np.asarray(Image.fromarray(pixels).resize((wanted, UNIT), Image.Resampling.BICUBIC))
    missing = 0 if columns is None else columns * UNIT - wanted
    return np.pad(scaled, ((0, 0), (0, missing)), constant_values=255) if missing > 0 else scaled


def _degraded(page: Grey, rng: random.Random) -> Grey:
    noise = np.random.default_rng(rng.getrandbits(32))
    printed = np.asarray(1 - page.astype(np.float32) / 255, dtype=np.float32)
    if rng.random() < 0.5:
        printed = ink.spread(printed, rng.choice((-1, 1)) * rng.uniform(0.05, 0.3))
    paper, contrast = rng.uniform(0.88, 1.0), rng.uniform(0.6, 0.88)
    picture = light.blurred((paper - contrast * printed).astype(np.float32), rng.uniform(0.2, 0.8))
    picture = picture + noise.standard_normal(picture.shape, dtype=np.float32) * np.float32(rng.uniform(0, 0.02))
    return np.clip(np.rint(picture * 255), 0, 255).astype(np.uint8)


def _amount(rng: random.Random) -> str:
    value = f"{round(10 ** rng.uniform(0, 4.5)) / 100 + rng.choice((0, rng.randint(0, 900))):,.2f}"
    return rng.choice(("", "", "", "$", "$ ", "RM ", "RM", "-", "EUR ")) + value


def _date(rng: random.Random) -> str:
    year, month, day = rng.randint(1990, 2035), rng.randint(1, 12), rng.randint(1, 28)
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{day:02}/{month:02}/{year}",
            f"{day:02}-{month:02}-{year % 100:02}",
            f"{day:02}.{month:02}.{year}",
            f"{day} {_MONTHS[month - 1]} {year}",
            f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}",
        )
    )


def _word(rng: random.Random) -> str:
    known = rng.choice(vocabulary())
    if rng.random() < 0.5:  # letters that no word list has together
        letters = "bcdfghjklmnpqrstvwxyz", "aeiou"
        known = "".join(rng.choice(letters[index % 2]) for index in range(rng.randint(2, 9)))
    if rng.random() < 0.25:
        known = f"{known} {rng.randint(1, 999)}"
    return rng.choice((known, known.upper(), known.capitalize(), known.lower()))


def _sentence(rng: random.Random) -> str:
    table = words(Split.TRAIN, Language.EN)
    return " ".join(rng.choice(table[part]) for part in ("adjectives", "nouns", "verbs"))


@lru_cache(maxsize=1)
def vocabulary() -> tuple[str, ...]:
    """The training split's words that can be written with `CHARACTERS`, in a fixed order."""
    found = {word for text in entries(words(Split.TRAIN, Language.EN)) for word in text.split()}
    return tuple(sorted(word for word in found if len(word) <= LONGEST and set(word) <= set(CHARACTERS)))


_MAKERS = {Text.AMOUNT: _amount, Text.DATE: _date, Text.WORD: _word, Text.SENTENCE: _sentence}
