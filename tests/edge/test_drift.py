"""The watch over the audit slice is quiet while predictions hold and loud soon after they do not."""

import random

from hypothesis import given
from hypothesis import strategies as st

from docferry_edge.drift import AuditOutcome, watch_drift


def outcomes(count: int, seed: int, *, true: float, predicted: float = 0.03, lines: int = 40) -> list[AuditOutcome]:
    generator = random.Random(seed)
    found = []
    for _ in range(count):
        # Documents differ; the prediction knows half of it.
        factor = generator.gammavariate(2, 0.5)
        risk = min(1.0, true * factor)
        wrong = sum(generator.random() < risk for _ in range(lines))
        found.append(AuditOutcome(predicted * (0.5 + 0.5 * factor), wrong / lines, lines))
    return found


def test_while_predictions_hold_alarms_are_as_rare_as_stated() -> None:
    alarms = sum(watch_drift(outcomes(200, seed, true=0.03), quiet=1000).alarm_at is not None for seed in range(60))
    # One in 1000 documents at most: 60 runs of 200 documents may see twelve.
    assert alarms <= 12


def test_a_doubled_risk_is_told_within_the_audits_of_some_weeks() -> None:
    delays = [watch_drift(outcomes(600, seed, true=0.06)).alarm_at for seed in range(20)]
    assert all(delay is not None for delay in delays)
    assert sorted(delays)[10] < 200


def test_a_broken_reader_is_told_at_once() -> None:
    assert (watch_drift(outcomes(100, 1, true=0.4)).alarm_at or 100) < 20


def test_a_long_quiet_time_does_not_delay_the_alarm() -> None:
    fresh = watch_drift(outcomes(300, 2, true=0.12)).alarm_at
    late = watch_drift([*outcomes(1000, 3, true=0.02), *outcomes(300, 2, true=0.12)]).alarm_at
    assert fresh is not None
    assert late is not None
    assert late - 1000 <= fresh + 10


def test_fewer_mistakes_than_predicted_are_no_alarm() -> None:
    assert watch_drift(outcomes(1000, 4, true=0.005)).alarm_at is None


def test_the_advice_says_both_rates() -> None:
    told = watch_drift(outcomes(200, 5, true=0.2)).advice
    assert told.startswith("refit the calibration")
    assert "predicted" in told
    assert watch_drift([]).advice == "nothing audited yet"


rate = st.floats(0, 1)


@given(st.lists(st.builds(AuditOutcome, rate, rate, st.integers(0, 50)), max_size=50))
def test_the_capital_never_falls_below_nothing(found: list[AuditOutcome]) -> None:
    assert watch_drift(found).evidence >= 0.0
