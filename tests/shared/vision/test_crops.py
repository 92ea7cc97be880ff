import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.vision.crops import crop, encode_crop
from docferry.vision.images import decode

SHARE = st.floats(0, 1, allow_nan=False)


def test_the_crop_covers_the_box_and_its_margin():
    image = np.zeros((100, 200, 3), dtype=np.uint8)
    image[40:60, 50:150] = 255
    pixels, covered = crop(image, (0.25, 0.4, 0.75, 0.6), margin=0.5)
    assert pixels.shape == (40, 120, 3)
    assert covered == (0.2, 0.3, 0.8, 0.7)
    assert pixels[10:30, 10:110].min() == 255
    assert pixels[:10].max() == 0


def test_margins_end_at_the_edge_of_the_page():
    image = np.zeros((50, 50, 3), dtype=np.uint8)
    pixels, covered = crop(image, (0.0, 0.0, 1.0, 1.0), margin=3)
    assert pixels.shape == image.shape
    assert covered == (0.0, 0.0, 1.0, 1.0)


@given(SHARE, SHARE, SHARE, SHARE, st.floats(0, 2), st.integers(1, 60), st.integers(1, 60))
def test_any_box_gives_pixels_that_cover_it(x0, y0, x1, y1, margin, width, height):
    box = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    image = np.zeros((height, width, 3), dtype=np.uint8)
    pixels, covered = crop(image, box, margin=margin)
    assert pixels.shape[0] == pytest.approx((covered[3] - covered[1]) * height)
    assert pixels.shape[1] == pytest.approx((covered[2] - covered[0]) * width)
    assert pixels.size > 0
    assert covered[0] <= box[0] + 1e-9
    assert covered[1] <= box[1] + 1e-9
    assert covered[2] >= box[2] - 1e-9
    assert covered[3] >= box[3] - 1e-9


def test_an_encoded_crop_decodes_to_its_pixels():
    image = np.full((100, 100, 3), 200, dtype=np.uint8)
    data, covered = encode_crop(image, (0.1, 0.1, 0.5, 0.3), margin=0)
    assert decode(data).shape == (20, 40, 3)
    assert covered == (0.1, 0.1, 0.5, 0.3)
