"""The artefact: old ones stay readable, new ones come back as written, broken ones are named."""

import json

import pytest

from docferry.calibration import VERSION, Calibration, LineHead, dump_calibration, load_calibration
from docferry.confidence.curves import Sum
from docferry.confidence.guarantees import Threshold
from docferry.confidence.signals import NAMES
from docferry.errors import ConfigurationError, TooFewLabels

OLD = {
    "knots": [[0.5, 0.1], [0.9, 0.8], [1.0, 0.99]],
    "reader": "reader@1",
    "documents": 10,
    "lines": 400,
    "data": "some",
    "data_sha256": "0" * 64,
    "date": "2026-01-01",
}


def threshold(target: float, least: float, confidence: float | None = None) -> Threshold:
    return Threshold(target, confidence, least, 100, 4000, 3000, 30)


def new() -> Calibration:
    line = LineHead(Sum(NAMES, (0.5,) * len(NAMES), -1.0), ((-2.0, 0.1), (3.0, 0.99)), ((-2.0, 0.4), (3.0, 0.0)))
    old = {key: value for key, value in OLD.items() if key != "knots"}
    return Calibration(
        knots=((0.5, 0.1), (1.0, 0.99)),
        **old,
        line=line,
        layout=((0.3, 0.4), (0.9, 0.95)),
        page=Sum(("a",), (1.0,), 0.0),
        fields={"total": Sum(("a", "b"), (1.0, 2.0), 0.5)},
        thresholds=(threshold(0.02, 0.97), threshold(0.05, 0.8), threshold(0.05, 0.9, 0.95)),
        version=VERSION,
    )


def test_an_artefact_of_version_one_still_reads() -> None:
    found = load_calibration(json.dumps(OLD), "old")
    assert found.version == 1
    assert found.line is None
    assert found.confidence(0.7) == pytest.approx(0.45)


def test_what_is_written_comes_back() -> None:
    assert load_calibration(dump_calibration(new()), "new") == new()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"knots": [[0.5, 0.9], [0.9, 0.1]]}, "not monotone"),
        ({"knots": []}, "not monotone"),
        ({"knots": "none"}, "not a calibration"),
        ({"version": VERSION + 1}, "this program knows"),
        ({"surplus": 1}, "not a calibration"),
        ({"line": {"sum": {"signals": ["a"], "weights": [1.0, 2.0], "bias": 0.0}}}, "one finite weight"),
    ],
)
def test_a_broken_artefact_is_named(change: dict, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_calibration(json.dumps({**OLD, **change}), "mine.json")
    assert "mine.json" in str(caught.value)


def test_an_artefact_over_other_signals_is_refused() -> None:
    tree = json.loads(dump_calibration(new()))
    tree["line"]["sum"]["signals"][0] = "something_else"
    with pytest.raises(ConfigurationError, match="other signals"):
        load_calibration(json.dumps(tree), "mine.json")


def test_a_map_that_falls_where_it_must_rise_is_refused() -> None:
    tree = json.loads(dump_calibration(new()))
    tree["line"]["right"] = [[-2.0, 0.9], [3.0, 0.1]]
    with pytest.raises(ConfigurationError, match="not monotone"):
        load_calibration(json.dumps(tree), "mine.json")


def test_the_threshold_of_a_target_is_the_loosest_that_keeps_it() -> None:
    assert new().threshold(0.05).least == 0.8
    assert new().threshold(0.03).least == 0.97
    assert new().threshold(0.05, 0.9).least == 0.9


@pytest.mark.parametrize(("target", "confidence"), [(0.01, None), (0.02, 0.95), (0.05, 0.99)])
def test_a_target_that_was_not_fitted_for_is_refused(target: float, confidence: float | None) -> None:
    with pytest.raises(TooFewLabels, match="holds no threshold"):
        new().threshold(target, confidence)
