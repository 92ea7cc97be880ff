"""Shadows and dim light are taken off; good light is left alone; grey print stays grey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry_edge.preparation.light import brightened
from tests.edge.preparation.papers import letter


def paper_levels(page):
    """Paper brightness in a grid of places: the 90th percentile of each."""
    blocks = [page[y : y + 200, x : x + 200] for y in range(0, 1000, 200) for x in range(0, 800, 200)]
    return np.array([np.percentile(block, 90) for block in blocks])


def test_a_shadow_across_a_page_is_lifted():
    page = letter(paper=235).astype(np.float64)
    shade = np.linspace(1.0, 0.45, page.shape[1])[None, :, None]
    dim = (page * shade).astype(np.uint8)
    before, after = paper_levels(dim), paper_levels(brightened(dim))
    assert after.min() / after.max() > before.min() / before.max() + 0.1


def test_a_dim_page_becomes_bright():
    dim = letter(paper=110, ink=20)
    bright = brightened(dim)
    assert np.median(bright) > 220
    assert bright.min() < 30


def test_a_scan_is_left_alone_at_no_cost():
    page = letter()
    assert brightened(page) is page


@pytest.mark.parametrize("grey", [0, 90, 255])
def test_where_nothing_is_to_be_seen_nothing_is_brought_out(grey):
    page = np.full((600, 400, 3), grey, np.uint8)
    assert brightened(page) is page


def test_faded_print_in_dim_light_stays_grey_and_gains_contrast():
    dim = letter(paper=150, ink=105)
    bright = brightened(dim)
    assert len(np.unique(bright)) > 15
    assert np.ptp(np.percentile(bright, (1, 90))) > np.ptp(np.percentile(dim, (1, 90)))


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**32 - 1), st.integers(1, 255))
@settings(deadline=None, max_examples=40)
def test_any_picture_comes_through_in_its_shape(width, height, seed, high):
    picture = np.random.default_rng(seed).integers(0, high + 1, (height, width, 3), dtype=np.uint8)
    out = brightened(picture)
    assert out.shape == picture.shape
    assert out.dtype == np.uint8
