import numpy as np

from docferry_edge.models_build.lines import HEIGHT, text_lines


def test_the_same_seed_draws_the_same_lines():
    one, other = text_lines(24, 7), text_lines(24, 7)
    assert [line.text for line in one] == [line.text for line in other]
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(one, other, strict=True))


def test_another_seed_draws_others():
    assert [line.text for line in text_lines(8, 1)] != [line.text for line in text_lines(8, 2)]


def test_lines_are_as_the_recogniser_gets_its_crops():
    for line in text_lines(40, 3):
        height, width, channels = line.pixels.shape
        assert (height, channels) == (HEIGHT, 3)
        assert 1 <= width <= 3200
        assert line.pixels.dtype == np.uint8
        assert line.text.strip()
