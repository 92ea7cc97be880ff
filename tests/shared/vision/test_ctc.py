"""What a CTC path says beside its text."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from docferry.vision.ctc import doubts_of


def path(*columns: tuple[int, float]):
    return np.array([c for c, _ in columns], dtype=np.int64), np.array([s for _, s in columns], dtype=np.float32)


def test_a_character_is_as_sure_as_its_best_column() -> None:
    doubts = doubts_of(*path((0, 1.0), (7, 0.6), (7, 0.9), (0, 1.0), (7, 0.8)))
    assert doubts.peaks == pytest.approx((0.9, 0.8))


def test_a_doubtful_blank_apart_from_characters_is_a_gap_and_one_beside_them_is_not() -> None:
    apart = doubts_of(*path((7, 0.9), (0, 0.7), (0, 0.55), (0, 0.99), (8, 0.9)))
    assert apart.gap == pytest.approx(0.45)
    beside = doubts_of(*path((7, 0.9), (0, 0.5), (8, 0.9)))
    assert beside.gap == 0.0


def test_nothing_read_is_nothing_doubted() -> None:
    assert doubts_of(*path()) == ((), 0.0)
    assert doubts_of(*path((0, 0.99), (0, 0.98))).peaks == ()


def test_the_recogniser_gives_one_peak_a_character(recogniser) -> None:
    page = Image.new("RGB", (620, 120), "white")
    ImageDraw.Draw(page).text((60, 60), "Total amount due 1,204.50", "black", ImageFont.load_default(30))
    quad = np.array([[50, 50], [560, 50], [560, 105], [50, 105]], dtype=np.float32)
    (read,) = recogniser.read(np.asarray(page)[:, :, ::-1], [quad])
    assert len(read.peaks) == len(read.scores) > 10
    assert all(peak >= score for peak, score in zip(read.peaks, read.scores, strict=True))
