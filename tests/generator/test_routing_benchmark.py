"""What the routing benchmark counts is what it says."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fit_prices import rising
from benchmarks.line_labels import right_lines
from benchmarks.routing import auroc, expected_error
from benchmarks.routing_unit import ORDERS, Unit, curve, summary


def at(x0, x1, text, y=10):
    return [(x0, y), (x1, y), (x1, y + 10), (x0, y + 10)], text


def test_a_line_is_right_whatever_its_case_and_marks_but_not_without_its_decimal_point() -> None:
    truth = [at(0, 100, "TOTAL: RM 9.00"), at(0, 100, "Sdn. Bhd.", 40), at(0, 100, "3.50", 70)]
    read = {"a": at(0, 100, "Total RM 9.00"), "b": at(0, 100, "SDN BHD", 40), "c": at(0, 100, "350", 70)}
    assert right_lines(truth, read) == {"a": True, "b": True, "c": False}
    assert right_lines(truth, read, exact=True)["a"] is False


def test_rows_that_were_cut_differently_are_compared_as_one() -> None:
    truth = [at(0, 100, "TEA 3.50")]
    read = {"a": at(0, 45, "TEA"), "b": at(55, 100, "3.50")}
    assert right_lines(truth, read) == {"a": True, "b": True}
    assert right_lines(truth, {**read, "b": at(55, 100, "3.60")}) == {"a": False, "b": False}


def test_a_line_with_nothing_to_compare_by_is_left_out_unless_it_says_something() -> None:
    assert right_lines([at(0, 100, "TEA")], {"a": at(0, 100, "TEA"), "b": at(0, 100, "***", 500)}) == {"a": True}
    assert right_lines([at(0, 100, "TEA")], {"b": at(0, 100, "GHOST", 500)}) == {"b": False}


@given(st.dictionaries(st.tuples(st.sampled_from([10.0, 20.0, 30.0]), st.sampled_from([20, 40])), st.floats(0, 1)))
def test_shares_are_made_to_rise_both_ways(shares) -> None:
    fixed = rising(shares)
    assert fixed.keys() == shares.keys()
    for (height, quality), share in fixed.items():
        for (other_height, other_quality), other in fixed.items():
            if (height == other_height and quality < other_quality) or (
                quality == other_quality and height < other_height
            ):
                assert share <= other + 1e-6


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=60))
def test_the_area_is_the_share_of_pairs_in_order(pairs) -> None:
    right = [score for score, good in pairs if good]
    wrong = [score for score, good in pairs if not good]
    if not right or not wrong:
        assert auroc(pairs) == 1.0
        return
    wins = sum((r > w) + 0.5 * (r == w) for r in right for w in wrong)
    assert auroc(pairs) == pytest.approx(wins / len(right) / len(wrong))


def test_the_calibration_error_is_nothing_where_confidence_is_the_share() -> None:
    rng = random.Random(0)
    pairs = [(p, rng.random() < p) for p in (rng.random() for _ in range(20_000))]
    assert expected_error(pairs) < 0.02
    assert expected_error([(0.9, False)] * 100) == pytest.approx(0.9)


def units(count: int = 400) -> list[Unit]:
    rng = random.Random(1)
    lines = []
    for number in range(count):
        wrong = rng.random() < 0.2
        gain = rng.choice((0, 1)) if wrong else rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 0, -1))
        value = rng.uniform(0.3, 1) if wrong else rng.uniform(0, 0.5)
        lines.append(Unit(f"d{number % 20}", rng.randint(500, 900), gain, rng.random(), value, rng.random()))
    return lines


def test_no_order_beats_the_oracle_and_a_good_one_beats_chance() -> None:
    lines = units()
    best = curve(lines, ORDERS["oracle"])
    for order in ORDERS.values():
        assert (curve(lines, order) <= best + 1e-9).all()
    found = summary(lines, resamples=50)
    assert found["at_25"]["oracle"] == 1.0
    assert found["better_than"]["random"]["low"] > 0
    assert found["better_than"]["threshold"]["low"] > 0
