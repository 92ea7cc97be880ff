import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.vision.quads import absolute, cut_out, is_vertical, ordered, relative, size, turned_around

SIDES = st.floats(20, 400)


def rectangle(width, height, degrees, centre=(500.0, 500.0)):
    """Corners clockwise from the top left of a rectangle turned clockwise by `degrees`."""
    angle = math.radians(degrees)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    corners = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2
    return (corners @ turn + centre).astype(np.float32)


@given(SIDES, st.floats(1, 8), st.floats(-44, 44), st.permutations(range(4)))
def test_lines_that_run_across_start_at_their_top_left(height, aspect, degrees, order):
    corners = rectangle(height * aspect, height, degrees)
    assert ordered(corners[list(order)]) == pytest.approx(corners, abs=0.01)


@given(SIDES, st.floats(1.6, 8), st.floats(-44, 44), st.permutations(range(4)))
def test_lines_that_run_down_start_at_their_top_right(width, aspect, degrees, order):
    corners = rectangle(width, width * aspect, degrees)
    quad = ordered(corners[list(order)])
    assert quad == pytest.approx(np.roll(corners, -1, axis=0), abs=0.01)
    assert is_vertical(quad)
    assert size(quad) == pytest.approx((width * aspect, width), rel=1e-3)


@given(SIDES, SIDES, st.floats(0, 360))
def test_order_is_always_clockwise_and_keeps_the_corners(width, height, degrees):
    corners = rectangle(width, height, degrees)
    quad = ordered(corners)
    x, y = quad[:, 0].astype(float), quad[:, 1].astype(float)
    doubled_area = float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))
    assert doubled_area == pytest.approx(2 * width * height, rel=0.01)
    assert sorted(map(tuple, quad.tolist())) == sorted(map(tuple, corners.tolist()))


def test_turning_around_twice_changes_nothing():
    quad = ordered(rectangle(100, 20, 7))
    assert (turned_around(turned_around(quad)) == quad).all()
    assert (turned_around(quad)[0] == quad[2]).all()


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_relative_and_absolute_are_inverse(width, height):
    polygon = ((0.1, 0.2), (0.5, 0.25), (0.5, 0.3), (0.1, 0.28))
    back = relative(absolute(polygon, width, height), width, height)
    assert np.array(back) == pytest.approx(np.array(polygon), abs=1e-5)


def test_relative_stays_on_the_page():
    quad = np.array([[-5, -5], [120, -5], [120, 70], [-5, 70]], dtype=np.float32)
    assert relative(quad, 100, 50) == ((0, 0), (1, 0), (1, 1), (0, 1))


def word(text="HELLO 123"):
    image = np.full((80, 400, 3), 255, dtype=np.uint8)
    cv2.putText(image, text, (20, 55), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (0, 0, 0), 3, cv2.LINE_AA)
    return image


@pytest.mark.parametrize("degrees", [0, 5, -20, 37, 90, 180, 270])
def test_a_turned_line_is_cut_out_straight(degrees):
    image = word()
    canvas = np.full((700, 700, 3), 255, dtype=np.uint8)
    corners = rectangle(400, 80, degrees, (350.0, 350.0))
    source = np.array([[0, 0], [400, 0], [400, 80], [0, 80]], dtype=np.float32)
    matrix = cv2.getPerspectiveTransform(source, corners)
    cv2.warpPerspective(image, matrix, (700, 700), canvas, cv2.INTER_CUBIC, cv2.BORDER_TRANSPARENT)
    crop = cut_out(canvas, corners, 80)
    assert abs(crop.shape[1] - 400) <= 2
    straight = cv2.resize(crop, (400, 80))
    assert np.abs(straight.astype(int) - image).mean() < 12


@given(st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=4, max_size=4))
def test_a_strange_quad_still_gives_a_crop(corners):
    image = np.full((100, 100, 3), 255, dtype=np.uint8)
    crop = cut_out(image, np.array(corners, dtype=np.float32), 48)
    assert crop.shape[0] == 48
    assert crop.shape[1] >= 1
