"""Thresholds keep the stated risk on documents they have not seen, and refuse what the labels cannot bear."""

import random

import pytest

from docferry.confidence.guarantees import Judged, documents_needed, find_threshold
from docferry.errors import TooFewLabels


def drawn(count: int, seed: int, *, base: float = 0.06, spread: float = 3.0, lines: int = 30) -> list[Judged]:
    """Documents whose lines are wrong together: a few of them are bad all over."""
    generator = random.Random(seed)
    documents = []
    for _ in range(count):
        hardness = generator.gammavariate(1 / spread, spread)
        rows = []
        for _ in range(lines):
            doubt = min(0.95, base * hardness * generator.expovariate(1))
            # The confidence knows the line and not quite the document.
            sure = 1 - min(0.95, doubt * generator.uniform(0.4, 1.6))
            rows.append((round(sure, 4), generator.random() >= doubt))
        documents.append(Judged(tuple(rows)))
    return documents


def risk(documents: list[Judged], least: float) -> float:
    accepted = [right for document in documents for sure, right in document.lines if sure >= least]
    return 1 - sum(accepted) / len(accepted)


@pytest.mark.parametrize("target", [0.02, 0.05])
def test_on_average_the_risk_of_new_documents_meets_the_target(target: float) -> None:
    held_out = drawn(1500, 99)
    found = [find_threshold(drawn(60, seed), target) for seed in range(30)]
    assert sum(risk(held_out, one.least) for one in found) / len(found) <= target
    assert min(one.coverage for one in found) > 0.3


def test_an_assured_claim_fails_as_seldom_as_it_says() -> None:
    held_out = drawn(1500, 98)
    found = [find_threshold(drawn(150, 1000 + seed), 0.05, 0.9) for seed in range(20)]
    assert sum(risk(held_out, one.least) > 0.05 for one in found) <= 2
    assert sum(one.coverage for one in found) / len(found) > 0.5


def test_an_assured_claim_accepts_no_more_than_one_on_average() -> None:
    documents = drawn(200, 5)
    assert find_threshold(documents, 0.05, 0.95).least >= find_threshold(documents, 0.05).least


def test_a_lower_risk_asks_for_more_confidence() -> None:
    documents = drawn(200, 6)
    strict, middle, loose = (find_threshold(documents, target) for target in (0.02, 0.05, 0.1))
    assert strict.least >= middle.least >= loose.least
    assert strict.coverage <= middle.coverage <= loose.coverage


def test_without_any_error_few_more_documents_are_needed_than_by_the_binomial_test() -> None:
    # 0.98 ** 149 and 0.95 ** 59 are the first below 0.05.
    assert 149 <= documents_needed(0.02, 0.95) <= 165
    assert 59 <= documents_needed(0.05, 0.95) <= 66
    needed = documents_needed(0.02, 0.95)
    perfect = [Judged(((0.99, True),) * 20)] * needed
    assert find_threshold(perfect, 0.02, 0.95).coverage == 1.0
    with pytest.raises(TooFewLabels, match=f"at least {needed}"):
        find_threshold(perfect[1:], 0.02, 0.95)


def test_labels_without_errors_do_not_allow_every_claim() -> None:
    perfect = [Judged(((0.99, True),) * 3)] * 20
    with pytest.raises(TooFewLabels):
        find_threshold(perfect, 0.01)
    assert find_threshold(perfect * 5, 0.01).coverage == 1.0


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_reader_that_is_wrong_where_it_is_sure_gets_no_threshold(confidence: float | None) -> None:
    documents = [Judged(((0.99, n % 4 != 0), (0.5, True))) for n in range(200)]
    with pytest.raises(TooFewLabels, match="surest lines are wrong"):
        find_threshold(documents, 0.05, confidence)


def test_one_bad_document_weighs_as_one_document() -> None:
    good = [Judged(((0.99, True),) * 40)] * 50
    worst = Judged(((0.99, False),) * 40)
    with pytest.raises(TooFewLabels):
        find_threshold([*good, worst, worst], 0.05)
    assert find_threshold([*good, *good, worst, worst], 0.05).wrong == 80


def test_the_claim_says_its_sample_and_its_coverage() -> None:
    found = find_threshold(drawn(80, 7), 0.05)
    for part in ("on average", "5.0%", "80 it was fitted on", f"{found.coverage:.0%}", str(found.wrong)):
        assert part in found.claim
    assert "with probability 90%" in find_threshold(drawn(150, 7), 0.1, 0.9).claim
