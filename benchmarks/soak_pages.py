"""Any number of mixed pages: a pool of generated and given pictures, each time a little different."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from benchmarks.generator.make import generate
from benchmarks.generator.truth import Kind, Language, Split

_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp"})
_MIX = ((Kind.RECEIPT, Language.EN), (Kind.INVOICE, Language.EN), (Kind.PAGE, Language.EN), (Kind.RECEIPT, Language.ZH))


def generated(count: int) -> list[bytes]:
    """So many photographs of generated receipts, invoices and pages, as JPEG files; the same ones every time."""
    pictures: list[bytes] = []
    for seed, (kind, language) in zip(range(count), itertools.cycle(_MIX), strict=False):
        sample = generate(kind, seed, Split.JUDGE, language=language)
        _, encoded = cv2.imencode(".jpg", sample.image, [cv2.IMWRITE_JPEG_QUALITY, 90])
        pictures.append(np.asarray(encoded).tobytes())
    return pictures


def given(folder: Path) -> list[Path]:
    """Every picture below a folder, in the order of names."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())


def varied(pool: Sequence[bytes | Path], count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """`count` files with names, no two alike: other sizes, qualities, turns and formats; odd ones stay as they are."""
    rng = random.Random(seed)
    for number in range(count):
        found = pool[number % len(pool)] if number < len(pool) else rng.choice(pool)
        data = found if isinstance(found, bytes) else found.read_bytes()
        yield _variant(number, data, rng)


def _variant(number: int, data: bytes, rng: random.Random) -> tuple[str, bytes]:
    scale, turn = rng.uniform(0.5, 1.1), rng.choice((0, 0, 0, 0, 90, 180, 270))
    kind = rng.choice(("JPEG", "JPEG", "JPEG", "PNG", "WEBP"))
    quality = rng.randint(60, 95)
    try:
        with Image.open(io.BytesIO(data)) as opened:
            picture = opened.convert(rng.choice(("RGB", "RGB", "L")))
    except (OSError, Image.DecompressionBombError):
        # What Pillow does not open goes in as it is: the agent must say what is wrong with it.
        return f"page-{number:06d}.bin", data
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    picture = picture.resize(size, Image.Resampling.BILINEAR).rotate(turn, expand=True)
    buffer = io.BytesIO()
    options = {"compress_level": 1} if kind == "PNG" else {"quality": quality}
    picture.save(buffer, kind, **options)
    return f"page-{number:06d}.{kind.lower()}", buffer.getvalue()
