"""Pieces are cut from the captured frame where the page's geometry says, as sharp as the frame is."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.errors import UnreadableImage
from docferry_edge.cutting import cut, geometry_of, sharpness
from docferry_edge.page_geometry import PageGeometry, from_json, to_json
from docferry_edge.prepare import Frame, PageImage, PrepareSettings, prepare
from tests.edge.preparation.papers import leaning, letter, on_table

CORNERS = [(0.2, 0.1), (0.8, 0.12), (0.83, 0.9), (0.17, 0.88)]
BOX = (0.1, 0.1, 0.6, 0.3)


def frame(pixels, kind=".png"):
    done, data = cv2.imencode(kind, pixels)
    assert done
    return Frame(data.tobytes(), "photo")


def prepared(pixels, kind=".png", longest=3508):
    captured = frame(pixels, kind)
    page = prepare(captured, settings=PrepareSettings(longest=longest))
    geometry = geometry_of(page, captured)
    assert geometry is not None
    return captured, page, geometry


def likeness(one, other):
    """Correlation of two pictures of one size, grey."""
    grey = [cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY).astype(float).ravel() for picture in (one, other)]
    return float(np.corrcoef(grey)[0, 1])


def piece(page: PageImage, box):
    x0, y0, x1, y1 = (round(v * s) for v, s in zip(box, (page.width, page.height) * 2, strict=True))
    return page.pixels[y0:y1, x0:x1]


@pytest.mark.parametrize(
    "photo",
    [letter(), leaning(letter(), 4.0), on_table(letter(1200, 1500), CORNERS, 2400, 2400)],
    ids=["scan", "leaning", "on a table"],
)
def test_a_piece_of_the_frame_is_that_piece_of_the_page(photo):
    captured, page, geometry = prepared(photo)
    # A box of whole pixels, so that the page's own piece is exact.
    sides = (page.width, page.height) * 2
    box = tuple(round(value * side) / side for value, side in zip(BOX, sides, strict=True))
    made = cut(captured, geometry, box, 1.0)
    expected = piece(page, box)
    # In a photo at a slant the far end of a sheet has fewer pixels than the page made of it.
    for got, most in zip(made.shape, expected.shape, strict=True):
        assert 0.9 * most <= got <= most
    made = cv2.resize(made, expected.shape[1::-1])
    assert likeness(made, expected) > 0.97
    # Half a line higher up it would be another piece.
    assert likeness(made, np.roll(expected, 17, axis=0)) < 0.5


def test_a_frame_that_is_larger_than_its_page_gives_sharper_pieces_and_nothing_is_blown_up():
    captured, page, geometry = prepared(letter(1800, 2400, size=48, left=140), longest=1200)
    assert (page.width, page.height) == (900, 1200)
    assert sharpness(geometry) == pytest.approx(2.0, abs=0.01)
    coarse, fine, most = (cut(captured, geometry, BOX, scale) for scale in (1.0, 2.0, 8.0))
    assert coarse.shape[:2] == (240, 450)
    assert fine.shape[:2] == (480, 900)
    assert most.shape[:2] == pytest.approx(fine.shape[:2], abs=1)
    blown_up = cv2.resize(coarse, fine.shape[1::-1], interpolation=cv2.INTER_CUBIC)

    def edges(picture):
        return cv2.Laplacian(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), cv2.CV_64F).var()

    assert edges(fine) > 1.5 * edges(blown_up)


def test_a_piece_that_is_wanted_small_is_averaged_and_a_large_photo_is_not_decoded_in_full():
    captured, page, geometry = prepared(letter(1800, 2400, size=48, left=140), kind=".jpg", longest=2400)
    small = cut(captured, geometry, None, 0.25)
    assert small.shape[:2] == (600, 450)
    expected = cv2.resize(page.pixels, (450, 600), interpolation=cv2.INTER_AREA)
    assert likeness(small, expected) > 0.98


def test_the_whole_page_is_evened_out_as_it_was_prepared():
    shaded = letter().astype(float) * np.linspace(0.45, 1.0, 900)[None, :, None]
    captured, page, geometry = prepared(shaded.astype(np.uint8))
    made = cut(captured, geometry, None, 1.0)
    assert made.shape == page.pixels.shape
    assert np.abs(made.astype(int) - page.pixels.astype(int)).mean() < 2.0


def test_what_is_no_picture_has_no_geometry_and_cannot_be_cut():
    page = PageImage(np.full((90, 60, 3), 255, np.uint8))
    assert geometry_of(page, Frame(b"good", "a")) is None
    with pytest.raises(UnreadableImage):
        cut(Frame(b"good", "a"), PageGeometry(60, 90, 60, 90, tuple(np.eye(3).ravel())), None, 1.0)


@given(
    st.lists(
        st.builds(
            PageGeometry,
            *[st.integers(1, 20_000)] * 4,
            to_frame=st.tuples(*[st.floats(-10, 10, allow_subnormal=False)] * 9),
        ),
        max_size=3,
    )
)
def test_geometry_comes_back_from_the_outbox_as_it_went_in(pages):
    assert from_json(to_json(pages)) == tuple(pages)
