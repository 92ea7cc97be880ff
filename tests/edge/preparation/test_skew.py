"""The lean of a page's lines is found to a fraction of a degree, or not claimed at all."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry_edge.preparation.skew import skew
from tests.edge.preparation.papers import leaning, letter


@pytest.mark.parametrize("degrees", [-12, -7.3, -3, -1, -0.4, 0, 0.3, 1.6, 5, 9.9, 13])
@pytest.mark.parametrize("size", [14, 24, 40])
def test_the_lean_of_a_page_is_found(degrees, size):
    found = skew(leaning(letter(size=size, lines=16), degrees))
    assert found == pytest.approx(degrees, abs=0.2)


def test_columns_whose_lines_do_not_meet_do_not_mislead():
    page = np.hstack([letter(700, 1000, 18, left=30), np.roll(letter(700, 1000, 18, left=30), 13, axis=0)])
    for degrees in (-6, 0, 2.5):
        assert skew(leaning(page, degrees)) == pytest.approx(degrees, abs=0.2)


def test_a_table_of_rules_without_letters_tells_its_lean():
    page = np.full((1000, 800, 3), 255, np.uint8)
    for y in range(100, 900, 60):
        cv2.line(page, (60, y), (740, y), (0, 0, 0), 2)
    assert skew(leaning(page, 3)) == pytest.approx(3, abs=0.3)
    assert skew(leaning(page, -4)) == pytest.approx(-4, abs=0.3)


def test_a_shadow_does_not_change_the_answer():
    page = leaning(letter(), 4).astype(np.float64)
    shade = np.linspace(1.0, 0.3, page.shape[1])[None, :, None]
    shade = np.where(np.arange(page.shape[0])[:, None, None] > 500, shade * 0.6, shade)
    assert skew((page * shade).astype(np.uint8)) == pytest.approx(4, abs=0.2)


@pytest.mark.parametrize("grey", [0, 128, 255])
def test_an_empty_page_has_no_lean(grey):
    assert skew(np.full((900, 700, 3), grey, np.uint8)) is None


def test_noise_has_no_lean():
    assert skew(np.random.default_rng(1).integers(0, 255, (900, 700, 3), dtype=np.uint8)) is None


def test_a_page_on_its_side_has_no_lean():
    found = skew(cv2.rotate(letter(), cv2.ROTATE_90_CLOCKWISE))
    assert found is None or abs(found) < 1


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_tiny_pictures_of_any_shape_are_no_trouble(width, height, seed):
    found = skew(np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8))
    assert found is None or abs(found) <= 15
