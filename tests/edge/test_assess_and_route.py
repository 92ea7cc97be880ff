"""The fail-safe rules always escalate, and crops are the fewest whose predicted risk meets the target."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.calibration import Calibration
from docferry.document import Document, Line, Page, Quality, Reading, Region, RegionType
from docferry.fields import extract_fields
from docferry.route import Decision
from docferry_edge.assess import Assessment, assess
from docferry_edge.examine import default_calibration
from docferry_edge.route import Policy, is_audited, plan

IDENTITY = Calibration(((0.0, 0.0), (1.0, 1.0)), "reader", 1, 1, "none", "", "2026-01-01")
NO_AUDIT = Policy(target_risk=0.02, audit_share=0.0, crop_lines=6)


def reading(rows: list[tuple[str, float]], quality: Quality | None = None) -> Reading:
    step = 1 / (len(rows) + 1)
    lines = tuple(
        Line(f"r1.l{n + 1}", text, box(0.1, n * step, 0.1 + 0.02 * len(text), n * step + 0.4 * step), score)
        for n, (text, score) in enumerate(rows)
    )
    region = Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, lines=lines)
    regions = (region,) if rows else ()
    document = Document((Page(600, 900, regions, quality or Quality()),))
    return Reading(replace(document, fields=extract_fields(document)), "reader")


def box(x0: float, y0: float, x1: float, y1: float):
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


RECEIPT = [
    ("GREEN LEAF MART SDN BHD", 1.0),
    ("NO 5 JALAN BESAR 50000 KUALA LUMPUR", 1.0),
    ("RECEIPT 000123", 1.0),
    ("DATE 12/03/2018", 1.0),
    ("TEA 3.50", 1.0),
    ("RICE 5.50", 1.0),
    ("TOTAL RM 9.00", 1.0),
    ("CASH RM 10.00", 1.0),
    ("CHANGE RM 1.00", 1.0),
]


def judged(rows: list[tuple[str, float]], quality: Quality | None = None) -> Assessment:
    return assess(reading(rows, quality), IDENTITY)


def codes(assessment: Assessment) -> set[str]:
    return {reason.code for reason in plan(assessment, NO_AUDIT, "id").route.reasons}


def test_a_receipt_read_surely_goes_up_as_structure_and_overview() -> None:
    chosen = plan(judged(RECEIPT), NO_AUDIT, "id")
    assert chosen.route.decision is Decision.OVERVIEW
    assert chosen.route.reasons[0].code == "RISK_MET"
    assert chosen.route.risk <= NO_AUDIT.target_risk


@pytest.mark.parametrize(
    ("rows", "quality", "code"),
    [
        ([], None, "NOTHING_READ"),
        (RECEIPT, Quality(orientation_score=0.4), "DOUBTFUL_ORIENTATION"),
        (RECEIPT, Quality(orientation_score=float("nan")), "DOUBTFUL_ORIENTATION"),
        ([row for row in RECEIPT if "DATE" not in row[0]], None, "MISSING_FIELD"),
    ],
)
def test_what_the_edge_cannot_vouch_for_sends_the_page(rows: list, quality: Quality | None, code: str) -> None:
    chosen = plan(judged(rows, quality), NO_AUDIT, "id")
    assert chosen.route.decision is Decision.PAGE
    assert code in {reason.code for reason in chosen.route.reasons}


@pytest.mark.parametrize("score", [float("nan"), -0.1, 1.5, float("inf")])
def test_an_impossible_score_is_never_taken_for_sure(score: float) -> None:
    assessment = judged([*RECEIPT[:-1], ("CHANGE RM 1.00", score)])
    chosen = plan(assessment, NO_AUDIT, "id")
    assert chosen.route.decision is Decision.CROPS
    assert "IMPOSSIBLE_SCORE" in codes(assessment)


def test_a_repetition_loop_is_seen_even_at_full_score() -> None:
    assessment = judged([*RECEIPT, ("thethethethethethethe", 1.0)])
    assert "REPETITION" in codes(assessment)
    assert plan(assessment, NO_AUDIT, "id").crops


def test_printed_rules_are_no_repetition_loop() -> None:
    assessment = judged([*RECEIPT, ("--------------------", 1.0), ("********************", 1.0)])
    assert "REPETITION" not in codes(assessment)


def test_the_riskiest_lines_are_cropped_first_and_no_more_than_needed() -> None:
    rows = [*RECEIPT[:-2], ("CASH RM 10.00", 0.7), ("CHANGE RM 1.00", 0.99)]
    chosen = plan(judged(rows), NO_AUDIT, "id")
    assert chosen.route.decision is Decision.CROPS
    assert len(chosen.crops) == 1
    y0, y1 = chosen.crops[0].box[1], chosen.crops[0].box[3]
    assert y0 < 7 / 10 + 0.02 < y1


def test_when_too_many_lines_are_in_doubt_the_page_goes_up() -> None:
    rows = [(text, 0.5) for text, _ in RECEIPT]
    assert plan(judged(rows), NO_AUDIT, "id").route.decision is Decision.PAGE


def test_the_audit_slice_is_the_same_everywhere_and_about_its_share() -> None:
    audited = [is_audited(f"document-{n}", 0.05) for n in range(4000)]
    assert audited == [is_audited(f"document-{n}", 0.05) for n in range(4000)]
    assert 0.03 < sum(audited) / 4000 < 0.07
    assert not any(is_audited(f"document-{n}", 0.0) for n in range(100))
    first = next(n for n in range(1000) if is_audited(f"document-{n}", 0.05))
    chosen = plan(judged(RECEIPT), replace(NO_AUDIT, audit_share=0.05), f"document-{first}")
    assert chosen.route.decision is Decision.PAGE
    assert chosen.route.reasons[0].code == "AUDIT"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.001, 0.5))
def test_crops_lie_on_the_page_and_every_plan_names_a_reason(scores: list[float], target: float) -> None:
    rows = [(f"LINE {n} 1.00", score) for n, score in enumerate(scores)]
    chosen = plan(judged(rows), Policy(target, 0.0, 12), "id")
    assert chosen.route.reasons
    assert 0.0 <= chosen.route.risk <= 1.0
    for crop in chosen.crops:
        x0, y0, x1, y1 = crop.box
        assert 0 <= x0 < x1 <= 1
        assert 0 <= y0 < y1 <= 1


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_the_shipped_calibration_gives_a_probability_for_anything(score: float) -> None:
    assert 0.0 <= default_calibration().confidence(score) <= 1.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_shipped_calibration_is_monotone(a: float, b: float) -> None:
    calibration = default_calibration()
    low, high = sorted((a, b))
    assert calibration.confidence(low) <= calibration.confidence(high)


def test_the_shipped_calibration_says_where_it_comes_from() -> None:
    calibration = default_calibration()
    assert calibration.lines >= 5000
    assert calibration.documents >= 100
    assert "generator" in calibration.data
    assert len(calibration.data_sha256) == 64
