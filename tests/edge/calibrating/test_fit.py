"""A fit finds what tells right from wrong, keeps its claims on new documents, and leans on the prior where it must."""

import pytest

from docferry.calibration import dump_calibration, load_calibration
from docferry.confidence.curves import read_off
from docferry.confidence.guarantees import documents_needed
from docferry.confidence.signals import DIRECTIONS, NAMES
from docferry.errors import TooFewLabels
from docferry_edge.calibrating.fit import Claim, fit

CLAIMS = [Claim(0.02), Claim(0.05), Claim(0.10, 0.9)]


@pytest.fixture(scope="module")
def labels(drawing):
    return drawing.documents(150)


@pytest.fixture(scope="module")
def fitted(labels):
    return fit(labels, CLAIMS, data="drawn", date="2026-01-01")


def judged(calibration, documents):
    head = calibration.line
    return [(read_off(head.right, head.sum.value(line.signals)), line.right) for one in documents for line in one.lines]


def test_weights_fall_on_the_signals_that_tell_and_keep_their_directions(fitted) -> None:
    weights = dict(zip(NAMES, fitted.calibration.line.sum.weights, strict=True))
    assert weights["doubt_worst"] < -0.3
    assert weights["page_doubt"] < -0.2
    assert weights["amount_sums"] > 0.1
    assert all(weight * way >= 0 for weight, way in zip(weights.values(), DIRECTIONS, strict=True))


def test_the_artefact_states_its_sample_and_comes_back(fitted, labels) -> None:
    calibration = fitted.calibration
    assert (calibration.documents, calibration.lines) == (150, 150 * 25)
    assert len(calibration.data_sha256) == 64
    assert calibration.version == 2
    assert load_calibration(dump_calibration(calibration), "file") == calibration


def test_confidences_are_honest_on_new_documents(fitted, drawing) -> None:
    pairs = sorted(judged(fitted.calibration, drawing.documents(200, seed=7)))
    for start in range(0, len(pairs), 1000):
        part = pairs[start : start + 1000]
        assert sum(sure for sure, _ in part) / len(part) == pytest.approx(
            sum(right for _, right in part) / len(part), abs=0.05
        )


def test_claims_hold_on_new_documents(fitted, drawing) -> None:
    assert not fitted.refused
    pairs = judged(fitted.calibration, drawing.documents(400, seed=8))
    for threshold in fitted.calibration.thresholds:
        accepted = [right for sure, right in pairs if sure >= threshold.least]
        assert 1 - sum(accepted) / len(accepted) <= threshold.target_risk + 0.005
        assert len(accepted) / len(pairs) > 0.3


def test_the_order_of_documents_changes_nothing(labels, fitted) -> None:
    again = fit(labels[::-1], CLAIMS, data="drawn", date="2026-01-01")
    assert again.calibration == fitted.calibration


def test_pages_fields_and_layout_get_their_heads(fitted) -> None:
    calibration = fitted.calibration
    assert calibration.page.weights[0] > 0
    assert calibration.fields["total"].weights[3] > 0
    assert calibration.layout[-1][1] > calibration.layout[0][1]


def test_few_documents_lean_on_the_prior(drawing, fitted) -> None:
    few = drawing.documents(12, seed=3)
    adapted = fit(few, [], data="few", date="2026-01-01", prior=fitted.calibration).calibration
    assert adapted.page == fitted.calibration.page
    assert adapted.fields == fitted.calibration.fields
    assert adapted.layout == fitted.calibration.layout
    place = NAMES.index("doubt_worst")
    assert adapted.line.sum.weights[place] == pytest.approx(fitted.calibration.line.sum.weights[place], abs=0.25)


def test_a_claim_that_the_labels_cannot_bear_is_refused_and_the_others_stand(drawing) -> None:
    found = fit(drawing.documents(40), [Claim(0.10), Claim(0.01, 0.99)], data="few", date="2026-01-01")
    assert [one.target_risk for one in found.calibration.thresholds] == [0.10]
    ((claim, error),) = found.refused
    assert claim == Claim(0.01, 0.99)
    assert f"at least {documents_needed(0.01, 0.99)}" in str(error)


def test_too_few_documents_are_refused(drawing) -> None:
    with pytest.raises(TooFewLabels, match="too few to fit on"):
        fit(drawing.documents(5), CLAIMS, data="few", date="2026-01-01")
