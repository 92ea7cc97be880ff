"""A sheet on a table is found with all of its print, and nothing else is taken for one."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry_edge.preparation.geometry import apply, from_corners, warp
from docferry_edge.preparation.sheet import find_sheet, sheet_size
from tests.edge.preparation.papers import letter, on_table

PLACES = [
    [[0.3, 0.1], [0.7, 0.1], [0.7, 0.9], [0.3, 0.9]],
    [[0.32, 0.08], [0.66, 0.12], [0.74, 0.93], [0.24, 0.9]],
    [[0.25, 0.3], [0.6, 0.06], [0.8, 0.75], [0.42, 0.96]],
]


@pytest.mark.parametrize("corners", PLACES)
@pytest.mark.parametrize("light", [0.45, 1.0])
def test_the_corners_of_a_sheet_on_a_table_are_found(corners, light):
    found = find_sheet(on_table(letter(paper=240), corners, light=light))
    assert found is not None
    assert np.abs(found - np.array(corners)).max() < 0.02


@given(st.lists(st.floats(-0.05, 0.05), min_size=8, max_size=8))
@settings(deadline=None, max_examples=20)
def test_no_part_of_the_sheet_is_ever_cut(moves):
    corners = np.array(PLACES[0]) + np.array(moves).reshape(4, 2)
    found = find_sheet(on_table(letter(paper=235), corners))
    if found is None:
        return
    inside = apply(np.linalg.inv(from_corners(found)), corners)
    assert inside.min() >= -0.003
    assert inside.max() <= 1.003


def test_the_sheet_is_laid_out_as_it_was_before_the_camera_saw_it():
    page = letter(paper=240)
    photo = on_table(page, PLACES[1], 2400, 1800)
    corners = find_sheet(photo)
    width, height = sheet_size(corners, 2400, 1800)
    flat = cv2.resize(warp(photo, from_corners(corners), width, height), (900, 1200), interpolation=cv2.INTER_AREA)
    # Print falls where it was, to within the margin left around the sheet.
    rows = [40 + np.flatnonzero((picture[40:-40, 60:-60, 0] < 120).any(axis=1)) for picture in (page, flat)]
    assert rows[1][[0, -1]] == pytest.approx(rows[0][[0, -1]], abs=20)
    assert np.median(flat) == pytest.approx(240, abs=6)


def test_a_sheet_that_runs_out_of_the_frame_on_one_side_keeps_its_print():
    corners = [[0.3, -0.2], [0.7, -0.2], [0.7, 0.8], [0.3, 0.8]]
    found = find_sheet(on_table(letter(paper=240), corners))
    assert found is None or found[:2, 1].max() <= 0.005


@pytest.mark.parametrize(
    "flat",
    [
        letter(),
        letter(paper=200),
        np.full((900, 700, 3), 0, np.uint8),
        np.full((900, 700, 3), 255, np.uint8),
        np.random.default_rng(1).integers(0, 255, (900, 700, 3), dtype=np.uint8),
    ],
    ids=["scan", "grey scan", "black", "white", "noise"],
)
def test_what_fills_the_frame_is_left_alone(flat):
    assert find_sheet(flat) is None


def test_a_box_on_a_printed_page_is_no_sheet():
    page = letter(1200, 1600, paper=120, left=40)
    page[500:1200, 200:1000] = 250
    assert find_sheet(page) is None


def test_the_darker_part_of_a_page_in_shadow_is_not_cut_off():
    page = letter(1200, 1600, size=30, lines=32).astype(np.float64)
    page[:, :420] *= 0.4
    page[:200] *= 0.4
    page[:, 1100:] *= 0.4
    assert find_sheet(page.astype(np.uint8)) is None


@given(st.integers(1, 700), st.integers(1, 700), st.integers(0, 255))
@settings(deadline=None, max_examples=30)
def test_any_plain_picture_has_no_sheet(width, height, grey):
    assert find_sheet(np.full((height, width, 3), grey, np.uint8)) is None
