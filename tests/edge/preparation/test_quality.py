"""Each fault a person can mend is measured, and the worst is said in one sentence."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.document import Quality
from docferry_edge.preparation.quality import blur, cropped_edges, glare, grey_at, hint, measured
from tests.edge.preparation.papers import letter, on_table


@pytest.mark.parametrize("sigma", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("ink", [0, 150])
def test_the_width_of_edges_is_the_blur_that_made_them(sigma, ink):
    picture = np.full((400, 400), 230, np.uint8)
    picture[100:300, 100:300] = ink
    assert blur(cv2.GaussianBlur(picture, (0, 0), sigma)) == pytest.approx(sigma, rel=0.2)


def test_a_blurred_page_is_told_from_a_sharp_one_with_little_on_it():
    little = letter(lines=1)
    assert measured(Quality(), little).hint == ""
    assert "hold still" in measured(Quality(), cv2.GaussianBlur(letter(), (0, 0), 4)).hint


def test_faded_print_is_not_called_blurred():
    assert measured(Quality(), letter(paper=240, ink=185)).blur < 1.5


def test_a_reflection_is_glare_and_white_paper_is_not():
    page = letter(paper=190).astype(np.float64)
    y, x = np.mgrid[: page.shape[0], : page.shape[1]]
    lamp = 260 * np.exp(-((x - 450) ** 2 + (y - 500) ** 2) / (2 * 170**2))
    lit = np.clip(page + lamp[:, :, None], 0, 255).astype(np.uint8)
    quality = measured(Quality(), lit)
    assert 0.03 < quality.glare < 0.4
    assert "Glare" in quality.hint
    assert glare(grey_at(letter(), 1000)) == 0
    boxes = np.full((900, 700, 3), 150, np.uint8)
    boxes[200:500, 100:500] = 255
    assert glare(grey_at(boxes, 1000)) == 0


def test_every_edge_that_cuts_through_print_is_counted():
    page = letter(width=1000, lines=30)
    assert cropped_edges(page) == 0
    assert cropped_edges(page[76:]) == 1
    assert cropped_edges(page[76:, :400]) == 2
    cut = measured(Quality(cropped_edges=1), page[76:])
    assert "cut off" in cut.hint


def test_a_scanner_s_black_border_and_a_table_cut_no_print():
    page = letter(width=1000)
    page[:12] = 0
    page[:, -9:] = 20
    assert cropped_edges(page) == 0
    for y in range(0, page.shape[0], 7):
        page[y : y + 4, : 2 + y % 3] = 0
    assert cropped_edges(page) == 0
    assert cropped_edges(on_table(letter(), [[0.3, 0.1], [0.7, 0.1], [0.7, 0.9], [0.3, 0.9]])) == 0


@pytest.mark.parametrize(
    ("quality", "words"),
    [
        (Quality(brightness=0.05, contrast=0.02), "more light"),
        (Quality(brightness=0.9, contrast=0.01, sharpness=2), "into view"),
        (Quality(brightness=0.8, contrast=0.5, sharpness=500, blur=3), "hold still"),
        (Quality(brightness=0.8, contrast=0.5, sharpness=500, glare=0.1), "lamp"),
        (Quality(brightness=0.8, contrast=0.5, sharpness=500, text_height=6), "closer"),
        (Quality(brightness=0.8, contrast=0.5, sharpness=500, cropped_edges=1), "cut off"),
        (Quality(brightness=0.05, contrast=0.5, sharpness=3, cropped_edges=4), "more light"),
    ],
)
def test_the_hint_names_the_worst_fault(quality, words):
    assert words in hint(quality)
    assert hint(quality).count(":") == 1


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 2**32 - 1), st.integers(0, 255))
@settings(deadline=None, max_examples=40)
def test_any_picture_can_be_measured(width, height, seed, high):
    picture = np.random.default_rng(seed).integers(0, high + 1, (height, width, 3), dtype=np.uint8)
    quality = measured(Quality(cropped_edges=cropped_edges(picture)), picture)
    assert np.isfinite([quality.sharpness, quality.blur, quality.brightness, quality.contrast, quality.glare]).all()
    assert 0 <= quality.glare <= 1
    assert 0 <= quality.cropped_edges <= 4
