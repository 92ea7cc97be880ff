"""Choosing among candidates, and what the shipped weights and curves must hold to."""

from __future__ import annotations

import pytest

from docferry.fields.candidates import Candidate
from docferry.fields.scoring import LinearScorer, choose, default_scorer


def candidate(key: str, **features: float) -> Candidate:
    return Candidate(key, key, key, (), features)


SCORER = LinearScorer({"total": {"good": 2.0, "bad": -2.0}}, {"total": [(0.2, 0.3), (0.6, 0.7), (0.9, 0.95)]}, 10)


def test_the_best_candidate_is_chosen():
    choice = choose("total", [candidate("a", bad=1), candidate("b", good=1)], SCORER)
    assert choice is not None
    assert choice.candidate.key == "b"


def test_candidates_with_the_same_answer_support_each_other():
    alone = choose("total", [candidate("a", good=1)], SCORER)
    twice = choose("total", [candidate("a", good=1), candidate("a", good=1)], SCORER)
    assert alone is not None
    assert twice is not None
    assert twice.probability > alone.probability


def test_absent_wins_over_poor_candidates():
    assert choose("total", [candidate("a", bad=1), candidate("b", bad=1)], SCORER) is None
    assert choose("total", [], SCORER) is None


def test_huge_scores_do_not_overflow():
    choice = choose("total", [candidate("a", good=5000), candidate("b", bad=5000)], SCORER)
    assert choice is not None
    assert choice.probability == pytest.approx(1.0)


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0.3), (0.2, 0.3), (0.4, 0.5), (0.9, 0.95), (1.0, 0.95)])
def test_confidence_is_read_off_the_curve(probability, share):
    assert SCORER.confidence("total", probability) == pytest.approx(share)


def test_the_shipped_curves_rise_and_promise_less_than_certainty():
    scorer = default_scorer()
    assert set(scorer.weights) == set(scorer.curves) == {"merchant", "address", "date", "total"}
    assert scorer.documents > 300
    for curve in scorer.curves.values():
        assert list(curve) == sorted(curve)
        assert [share for _, share in curve] == sorted(share for _, share in curve)
        assert all(0 < share < 1 for _, share in curve)
