"""Where a point of the prepared page was in the frame."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.vision.orientation import turned
from docferry_edge.preparation.geometry import apply, from_corners, identity, quarter_turns, straightened, warp

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
relative = st.floats(0, 1)


def spot(width, height, x, y):
    """A black picture with one white spot around a relative place."""
    picture = np.zeros((height, width, 3), np.uint8)
    cv2.circle(picture, (round(x * width), round(y * height)), 6, (255, 255, 255), -1)
    return picture


def centre(picture):
    """The relative place of what is white."""
    ys, xs = np.nonzero(picture[:, :, 0] > 128)
    return (xs.mean() + 0.5) / picture.shape[1], (ys.mean() + 0.5) / picture.shape[0]


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_quarter_turn_leads_back_to_where_the_point_was(degrees):
    frame = spot(300, 200, 0.2, 0.3)
    page = turned(frame, degrees)
    back = apply(quarter_turns(degrees), np.array([centre(page)]))[0]
    assert back == pytest.approx((0.2, 0.3), abs=0.01)


@given(st.floats(-15, 15), st.integers(50, 900), st.integers(50, 900))
def test_straightening_keeps_all_of_the_picture(degrees, width, height):
    back, new_width, new_height = straightened(degrees, width, height)
    forth = apply(np.linalg.inv(back), CORNERS)
    assert forth.min() >= -1e-6
    assert forth.max() <= 1 + 1e-6
    assert new_width >= width * np.cos(np.radians(degrees)) - 1
    assert new_height >= height * np.cos(np.radians(degrees)) - 1


@pytest.mark.parametrize("degrees", [-9, 4, 15])
def test_what_was_warped_is_found_again_in_the_frame(degrees):
    frame = spot(400, 300, 0.25, 0.6)
    back, width, height = straightened(degrees, 400, 300)
    page = warp(frame, back, width, height)
    assert page.shape == (height, width, 3)
    assert apply(back, np.array([centre(page)]))[0] == pytest.approx((0.25, 0.6), abs=0.01)


@given(st.lists(st.tuples(relative, relative), min_size=1, max_size=9))
def test_corners_map_onto_corners_and_back(points):
    corners = np.array([[0.1, 0.2], [0.9, 0.1], [0.8, 0.9], [0.2, 0.95]])
    homography = from_corners(corners)
    assert apply(homography, CORNERS) == pytest.approx(corners, abs=1e-6)
    there = apply(homography, np.array(points))
    assert apply(np.linalg.inv(homography), there) == pytest.approx(np.array(points), abs=1e-6)


def test_the_map_that_moves_nothing_changes_no_pixel():
    picture = np.random.default_rng(3).integers(0, 255, (37, 53, 3), dtype=np.uint8)
    assert (warp(picture, identity(), 53, 37) == picture).all()


def test_outside_the_picture_there_is_paper():
    picture = np.full((100, 80, 3), 240, np.uint8)
    page = warp(picture, *straightened(10, 80, 100))
    assert (page == 240).all()
