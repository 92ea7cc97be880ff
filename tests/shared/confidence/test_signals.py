"""Each signal rises where a reading deserves doubt, and none ever fails on a text or a box."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.confidence.signals import DIRECTIONS, NAMES, page_signals
from docferry.document import Ink, Line, Page, Region, RegionType, Trace

NO_INK = Ink(0.0, 0.0, 0.0, 0.0, 1.0)


def line(number, text, x1=0.9, *, height=0.02, score=0.99, trace=None):
    width = min(x1 - 0.01, 0.012 * max(1, len(text)))
    y0 = 0.02 + 0.03 * number
    box = ((x1 - width, y0), (x1, y0), (x1, y0 + height), (x1 - width, y0 + height))
    return Line(f"r1.l{number + 1}", text, box, score, trace=trace)


def page(*lines):
    return Page(600, 1000, (Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, 0.9, lines=tuple(lines)),))


def signal(name, *lines):
    """The named signal of the last line."""
    return page_signals(page(*lines))[-1][NAMES.index(name)]


def of_text(name, text):
    return signal(name, line(0, text))


PRICES = [line(n, text) for n, text in enumerate(["12.50", "4.20", "7.95", "24.65"])]


def test_every_signal_has_one_name_and_one_direction() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(DIRECTIONS)
    assert all(len(row) == len(NAMES) for row in page_signals(page(*PRICES)))


def test_a_number_without_a_point_is_suspected_in_a_column_of_prices() -> None:
    assert signal("bare_in_column", *PRICES, line(4, "300")) > 1.0
    assert signal("bare_in_column", *PRICES, line(4, "3.00")) == 0.0
    assert signal("bare_in_column", *PRICES, line(4, "300", x1=0.5)) == 0.0


def test_a_column_of_whole_numbers_is_not_suspected_for_two_prices_that_end_there() -> None:
    years = [line(n + 2, str(1990 + n)) for n in range(8)]
    alone = signal("bare_in_column", *PRICES[:2], line(2, "300"))
    assert signal("bare_in_column", *PRICES[:2], *years) < 0.5 * alone


def test_a_space_in_place_of_the_point_is_seen() -> None:
    assert of_text("space_for_point", "3 00") == 1.0
    assert of_text("space_for_point", "Phone 03 44") == 0.0


def test_prices_that_add_up_speak_for_each_other() -> None:
    adding = [line(n, text) for n, text in enumerate(["4.20", "7.95", "12.15"])]
    assert signal("amount_sums", *adding) == 1.0
    assert signal("amount_sums", *adding[:2], line(2, "12.75")) == 0.0


@pytest.mark.parametrize(
    ("name", "doubtful", "fine"),
    [
        ("digit_among_letters", "Jalan B0nn", "Jalan Bonn 14"),
        ("letter_among_digits", "0l2 1O5", "012 105"),
        ("broken_case", "ToTAL", "TOTAL Paid"),
        ("missing_stop", "about half of it When the rest came", "about half of it. When the rest came"),
        ("stop_inside", "the meadow. the archive", "the meadow. The archive"),
        ("run_together", "the teacher.Another one", "the teacher. Another one"),
        ("unbalanced", "TOTAL (RM", "TOTAL (RM)"),
        ("dangling", ",Jalan Besar", "Jalan Besar."),
        ("currency_slip", "SS143.06", "S$143.06"),
        ("leading_zero", "050", "0.50"),
        ("broken_date", "45/18/2021", "15/08/2021"),
        ("stray_script", "Jalan 一 Besar", "Jalan Besar"),
        ("repetition", "ababababababab", "Jalan Besar 14/3"),
    ],
)
def test_the_shape_of_a_text_gives_slips_away(name: str, doubtful: str, fine: str) -> None:
    assert of_text(name, doubtful) > of_text(name, fine) == 0.0


def test_a_decimal_point_among_commas_is_odd() -> None:
    commas = [line(n, text) for n, text in enumerate(["12,50", "4,20"])]
    assert signal("odd_mark", *commas, line(2, "3.90")) == 1.0
    assert signal("odd_mark", line(0, "Summe EUR"), line(1, "3.90")) == 1.0
    assert signal("odd_mark", line(0, "Total USD"), line(1, "3.90")) == 0.0


def test_a_label_that_lost_its_colon_is_seen_by_the_others() -> None:
    def rows(last: str) -> list[Line]:
        lines = []
        for n, text in enumerate(["Total :", "Cash :", last]):
            lines += [line(n, f"{n + 1}.00"), line(n, text, x1=0.4)]
        return lines

    assert signal("lost_colon", *rows("Change")) > signal("lost_colon", *rows("Change :")) == 0.0


def test_one_bad_character_shows_though_the_mean_is_high() -> None:
    good = line(0, "TOTAL 24.75", trace=Trace((0.999,) * 11, 0.0, 0.9, NO_INK))
    bad = line(0, "TOTAL 24.75", trace=Trace((*(0.999,) * 10, 0.4), 0.0, 0.9, NO_INK))
    for name in ("doubt_worst", "doubt_sum", "doubt_digits"):
        assert signal(name, bad) > signal(name, good) + 3


def test_ink_beside_the_box_and_a_doubtful_gap_show() -> None:
    trace = Trace((0.999,) * 5, 0.0, 0.9, NO_INK)
    still = line(0, "TOTAL", trace=trace)
    assert signal("ink_after", replace(still, trace=replace(trace, ink=replace(NO_INK, after=0.1)))) > 1.0
    assert signal("doubt_gap", replace(still, trace=replace(trace, gap=0.4))) > signal("doubt_gap", still)


@given(st.lists(st.text(max_size=40), max_size=6), st.floats(0, 1))
def test_no_text_makes_a_signal_fail(texts: list[str], score: float) -> None:
    lines = [line(n, text, score=score) for n, text in enumerate(texts)]
    for row in page_signals(page(*lines)):
        assert all(math.isfinite(value) for value in row)


coordinate = st.floats(0, 1)
point = st.tuples(coordinate, coordinate)


@given(st.lists(st.tuples(point, point, point, point), min_size=1, max_size=5))
def test_no_box_makes_a_signal_fail(polygons: list) -> None:
    lines = [Line(f"r1.l{n + 1}", "9.00", polygon, 0.9) for n, polygon in enumerate(polygons)]
    for row in page_signals(page(*lines)):
        assert all(math.isfinite(value) for value in row)
