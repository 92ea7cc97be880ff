"""Ink at the rim of a line's box: marks left outside and print that is cut through."""

import numpy as np
import pytest

from docferry.vision.ink import ink_around


def quad(x0, y0, x1, y1):
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float32)


def sheet(*marks):
    page = np.full((200, 400, 3), 240, dtype=np.uint8)
    for x0, y0, x1, y1 in marks:
        page[y0:y1, x0:x1] = 30
    return page


WORD = (100, 90, 200, 110)
BOX = quad(95, 80, 205, 120)


def test_a_clean_line_has_no_ink_at_its_rim() -> None:
    (ink,) = ink_around(sheet(WORD), [BOX])
    assert (ink.before, ink.after, ink.top, ink.bottom) == (0.0, 0.0, 0.0, 0.0)
    assert ink.contrast == pytest.approx(210 / 255, abs=0.02)


def test_a_colon_left_outside_shows_after_the_text() -> None:
    (ink,) = ink_around(sheet(WORD, (212, 92, 216, 96), (212, 104, 216, 108)), [BOX])
    assert ink.after > 0.01
    assert ink.before == 0.0


def test_what_another_line_holds_is_no_ink_of_this_one() -> None:
    first, _ = ink_around(sheet(WORD, (215, 90, 300, 110)), [BOX, quad(206, 80, 305, 120)])
    assert first.after == 0.0


def test_a_box_that_cuts_through_print_shows_at_its_rim() -> None:
    (ink,) = ink_around(sheet((100, 60, 200, 110)), [BOX])
    assert ink.top > 0.5
    assert ink.bottom == 0.0


@pytest.mark.parametrize("box", [quad(-20, 80, 60, 120), quad(380, 180, 430, 230), quad(10, 10, 10.4, 10.4)])
def test_boxes_at_and_over_the_edge_are_taken(box) -> None:
    (ink,) = ink_around(sheet(WORD), [box])
    assert all(0.0 <= value <= 1.0 for value in (ink.before, ink.after, ink.top, ink.bottom, ink.contrast))
