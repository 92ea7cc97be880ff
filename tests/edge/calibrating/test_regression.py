"""Weights keep their sign, a prior holds where labels are few, and isotonic maps rise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry_edge.calibrating.regression import Linear, fit_logistic, isotonic


def sample(lines, weights, bias, seed=0):
    generator = np.random.default_rng(seed)
    signals = generator.normal(size=(lines, len(weights)))
    odds = bias + signals @ np.array(weights)
    return signals, (generator.random(lines) < 1 / (1 + np.exp(-odds))).astype(float)


def test_weights_are_found_again() -> None:
    signals, right = sample(20000, [-1.0, 0.5, 0.0], 2.0)
    found = fit_logistic(signals, right, (-1, 1, 0), strength=1.0)
    assert found.weights == pytest.approx((-1.0, 0.5, 0.0), abs=0.08)
    assert found.bias == pytest.approx(2.0, abs=0.1)


def test_a_weight_never_takes_the_sign_its_signal_forbids() -> None:
    signals, right = sample(2000, [1.0, -0.5], 1.0)
    assert fit_logistic(signals, right, (-1, 1), strength=1.0).weights == (0.0, 0.0)


def test_few_labels_stay_near_the_prior_and_many_leave_it() -> None:
    prior = Linear(1.0, (-2.0, 0.0))
    few, many = (
        fit_logistic(*sample(count, [-0.2, 0.0], 1.0), (-1, 0), strength=300.0, prior=prior).weights[0]
        for count in (40, 30000)
    )
    assert few == pytest.approx(-2.0, abs=0.3)
    assert many == pytest.approx(-0.2, abs=0.15)


def test_a_signal_that_never_varies_does_no_harm() -> None:
    signals, right = sample(500, [-1.0, 0.0], 1.0)
    signals[:, 1] = 3.0
    found = fit_logistic(signals, right, (-1, -1), strength=1.0)
    assert np.isfinite([found.bias, *found.weights]).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=400))
def test_an_isotonic_map_rises_within_bounds(pairs: list) -> None:
    knots = isotonic(((score, float(value)) for score, value in pairs), least=20)
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(knots))
    assert all(0.0 < value < 1.0 for _, value in knots)


def test_no_number_of_right_lines_proves_certainty() -> None:
    knots = isotonic([(0.9, 1.0)] * 500)
    assert knots[-1][1] < 1.0
