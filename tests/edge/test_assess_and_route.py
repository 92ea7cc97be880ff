"""The fail-safe rules always escalate, and what goes up is the cheapest whose predicted risk meets the target."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.calibration import Calibration
from docferry.document import Document, Line, Page, Quality, Reading, Region, RegionType
from docferry.fields import extract_fields
from docferry.route import Decision, PicturePlan
from docferry_edge.assess import Assessment, assess
from docferry_edge.examine import default_calibration
from docferry_edge.prices import Grade, Prices
from docferry_edge.route import Mode, Policy, Room, is_audited
from docferry_edge.route import plan as plan_with

IDENTITY = Calibration(((0.0, 0.0), (1.0, 1.0)), "reader", 1, 1, "none", "", "2026-01-01")
NO_AUDIT = Policy(target_risk=0.02, audit_share=0.0)
PRICES = Prices(
    grades=(
        Grade(16.0, 30, 0.20, 0.10, 0.06),
        Grade(16.0, 60, 0.24, 0.16, 0.10),
        Grade(24.0, 30, 0.38, 0.08, 0.05),
        Grade(24.0, 60, 0.40, 0.12, 0.08),
    ),
    picture=180.0,
    envelope=220.0,
    structure=250.0,
    line=7.0,
    character=0.3,
)
"""Invented, so that tests do not move when the shipped table is fitted anew."""


def plan(assessment, policy, document_id, **options):
    return plan_with(assessment, policy, document_id, **{"prices": PRICES, **options})


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


def test_a_receipt_read_surely_goes_up_as_structure_alone() -> None:
    chosen = plan(judged(RECEIPT), NO_AUDIT, "id")
    assert chosen.route.decision is Decision.STRUCTURE
    assert chosen.overview is None
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


def test_when_the_page_is_cheaper_than_its_crops_it_goes_up() -> None:
    rows = [(text, 0.5) for text, _ in RECEIPT]
    blank = replace(PRICES, grades=tuple(replace(grade, page_rate=0.01) for grade in PRICES.grades))
    chosen = plan(judged(rows), NO_AUDIT, "id", prices=blank)
    assert chosen.route.decision is Decision.PAGE
    assert chosen.route.reasons[-1].code == "CHEAPEST_PAGE"
    assert plan(judged(rows), NO_AUDIT, "id").route.decision is Decision.CROPS


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
@settings(deadline=None)
def test_crops_lie_on_the_page_and_every_plan_names_a_reason(scores: list[float], target: float) -> None:
    rows = [(f"LINE {n} 1.00", score) for n, score in enumerate(scores)]
    chosen = plan(judged(rows), Policy(target, 0.0), "id")
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


DOUBTFUL = [*RECEIPT[:4], ("TEA 3.50", 0.9), ("RICE 5.50", 0.6), *RECEIPT[6:8], ("CHANGE RM 1.00", 0.7)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.0, 0.5))
@settings(deadline=None)
def test_the_lines_left_unseen_always_meet_the_target(scores: list[float], target: float) -> None:
    rows = [(f"LINE {n} 1.00", score) for n, score in enumerate(scores)]
    chosen = plan(judged(rows), Policy(target, 0.0), "id")
    assert chosen.route.risk <= target + 1e-6
    assert chosen.remaining <= judged(rows).risk + 1e-9


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25))
@settings(deadline=None)
def test_a_stricter_target_never_costs_fewer_bytes(scores: list[float]) -> None:
    rows = [(f"LINE {n} 1.00", score) for n, score in enumerate(scores)]
    one = replace(PRICES, grades=PRICES.grades[-1:], picture=0.0)
    costs = [plan(judged(rows), Policy(target, 0.0), "id", prices=one).bytes for target in (0.3, 0.1, 0.03, 0.01)]
    # The greedy cover is within one line of the best: a byte more is a line more, not a plan gone astray.
    line = 0.12 * 0.24 * 600 * 0.08 * 900
    assert all(loose <= strict + line for loose, strict in pairwise(costs))


def test_the_same_document_gets_the_same_plan_every_time() -> None:
    assert plan(judged(DOUBTFUL), NO_AUDIT, "id") == plan(judged(DOUBTFUL), NO_AUDIT, "id")


def test_neighbours_become_one_crop_and_distant_lines_do_not() -> None:
    rows = [("LINE ONE 1.00", 0.5), ("LINE TWO 1.00", 0.5), *RECEIPT, ("LINE LAST 1.00", 0.5)]
    chosen = plan(judged(rows), NO_AUDIT, "id", prices=replace(PRICES, picture=600.0))
    assert len(chosen.crops) == 2


def test_a_plan_says_its_numbers() -> None:
    chosen = plan(judged(DOUBTFUL), NO_AUDIT, "id")
    by_code = {reason.code: reason for reason in chosen.route.reasons}
    assert by_code["LINE_RISK"].value == pytest.approx(judged(DOUBTFUL).risk, abs=1e-4)
    assert "the page would cost" in by_code["CHEAPEST_CROPS"].detail
    assert by_code["CHEAPEST_CROPS"].value == pytest.approx(chosen.bytes - 400, abs=200)


def test_a_grade_that_repairs_nearly_as_much_for_less_is_taken_and_one_of_no_use_is_not() -> None:
    assert {crop.quality for crop in plan(judged(DOUBTFUL), Policy(0.05, 0.0), "id").crops} == {30}
    better = replace(PRICES, grades=(*PRICES.grades[:3], replace(PRICES.grades[3], repair=0.9)))
    assert {crop.quality for crop in plan(judged(DOUBTFUL), NO_AUDIT, "id", prices=better).crops} == {60}
    illegible = replace(PRICES, grades=(Grade(5.0, 10, 0.0, 0.01, 0.005), *PRICES.grades))
    assert plan(judged(DOUBTFUL), NO_AUDIT, "id", prices=illegible) == plan(judged(DOUBTFUL), NO_AUDIT, "id")


def test_crops_are_scaled_to_the_height_of_their_print_and_never_blown_up() -> None:
    assessment = judged(DOUBTFUL)
    (height,) = {round((line.box[3] - line.box[1]) * 900) for line in assessment.reading.document.lines}
    assert height == 36
    assert {crop.scale for crop in plan(assessment, NO_AUDIT, "id").crops} == {round(24 / 36, 4)}
    small = replace(PRICES, grades=(replace(PRICES.grades[3], text_height=72.0),))
    assert {crop.scale for crop in plan(assessment, NO_AUDIT, "id", prices=small).crops} == {1.0}
    sharp = plan(assessment, NO_AUDIT, "id", prices=small, sharpness=1.5)
    assert {crop.scale for crop in sharp.crops} == {1.5}


def test_a_limit_cuts_the_plan_and_says_what_remains_at_risk() -> None:
    free = plan(judged(DOUBTFUL), NO_AUDIT, "id")
    tight = plan(judged(DOUBTFUL), replace(NO_AUDIT, max_bytes=free.bytes - 100), "id")
    assert tight.bytes <= free.bytes - 100
    assert tight.route.reasons[0].code == "LIMIT"
    assert tight.route.reasons[0].value == pytest.approx(tight.route.risk, abs=1e-4)
    assert tight.route.risk > NO_AUDIT.target_risk
    assert free.route.risk <= NO_AUDIT.target_risk


def test_the_cut_keeps_the_riskiest_line_for_its_bytes() -> None:
    free = plan(judged(DOUBTFUL), NO_AUDIT, "id")
    tight = plan(judged(DOUBTFUL), replace(NO_AUDIT, max_bytes=free.bytes - 100), "id")
    rice = judged(DOUBTFUL).reading.document.lines[5].box
    assert any(crop.box[1] <= rice[1] and rice[3] <= crop.box[3] for crop in tight.crops)


@pytest.mark.parametrize(
    ("policy", "room"),
    [
        (Policy(0.02, 0.0, max_bytes=700), None),
        (Policy(0.02, 0.0, mode=Mode.METERED, metered_bytes=700), None),
        (Policy(0.02, 0.0, deadline_s=2.0, link_kbps=2.8), None),
        (Policy(0.02, 0.0), Room(bytes=700)),
    ],
)
def test_bytes_time_and_rate_all_bound_the_plan(policy: Policy, room: Room | None) -> None:
    chosen = plan(judged(DOUBTFUL), policy, "id", room=room)
    assert chosen.bytes <= 700
    assert chosen.route.reasons[0].code == "LIMIT"


def test_no_limit_switches_a_fail_safe_rule_off() -> None:
    for policy, room in ((replace(NO_AUDIT, max_bytes=1), None), (NO_AUDIT, Room(bytes=0, pages=0))):
        chosen = plan(judged([]), policy, "id", room=room)
        assert chosen.route.decision is Decision.PAGE
        assert {"NOTHING_READ", "OVER_LIMIT"} <= {reason.code for reason in chosen.route.reasons}
    looping = judged([*RECEIPT, ("thethethethethethethe", 1.0)])
    assert plan(looping, replace(NO_AUDIT, max_bytes=1), "id").crops


def test_a_page_on_which_nothing_was_read_goes_at_full_size_and_best_quality() -> None:
    chosen = plan(judged([]), NO_AUDIT, "id")
    assert chosen.page == PicturePlan(900, 30), "quality 30 repairs nine tenths of what 60 does"


def test_within_its_limits_a_fail_safe_page_is_as_good_as_they_allow() -> None:
    rows = [row for row in RECEIPT if "DATE" not in row[0]]
    free = plan(judged(rows), NO_AUDIT, "id")
    tight = plan(judged(rows), replace(NO_AUDIT, max_bytes=free.bytes - 1), "id")
    assert tight.bytes < free.bytes
    assert "OVER_LIMIT" not in {reason.code for reason in tight.route.reasons}


@pytest.mark.parametrize("rows", [DOUBTFUL, [], RECEIPT])
def test_a_policy_of_no_images_sends_none_whatever_happens(rows: list) -> None:
    chosen = plan(judged(rows), Policy(0.02, 1.0, mode=Mode.NO_IMAGES, always_overview=True), "id")
    assert chosen.route.decision is Decision.STRUCTURE
    assert (chosen.crops, chosen.page, chosen.overview) == ((), None, None)
    met = rows is RECEIPT
    assert ("the target is met" in chosen.route.reasons[0].detail) is met
    assert chosen.route.risk == judged(rows).risk


def test_offline_nothing_leaves_and_the_plan_says_what_that_costs() -> None:
    chosen = plan(judged(DOUBTFUL), Policy(0.02, 1.0, mode=Mode.OFFLINE), "id")
    assert chosen.route.decision is Decision.NOTHING
    assert chosen.bytes == 0
    assert "not met" in chosen.route.reasons[0].detail


def test_the_overview_goes_along_where_it_is_asked_for_or_the_target_is_missed() -> None:
    assert plan(judged(RECEIPT), replace(NO_AUDIT, always_overview=True), "id").route.decision is Decision.OVERVIEW
    both = plan(judged(DOUBTFUL), replace(NO_AUDIT, always_overview=True), "id")
    assert both.route.decision is Decision.CROPS
    assert both.overview == NO_AUDIT.overview
    assert plan(judged(DOUBTFUL), NO_AUDIT, "id").overview is None


def test_a_fitted_threshold_takes_the_place_of_the_mean() -> None:
    from docferry_edge.selection import above

    chosen = plan(judged(DOUBTFUL), NO_AUDIT, "id", rule=above(0.65))
    assert len(chosen.crops) == 1
    assert plan(judged(DOUBTFUL), NO_AUDIT, "id", rule=above(0.5)).route.decision is Decision.STRUCTURE


def test_the_audit_slice_respects_limits_and_other_modes() -> None:
    audited = replace(NO_AUDIT, audit_share=1.0)
    assert plan(judged(RECEIPT), audited, "id").route.decision is Decision.PAGE
    for policy, room in (
        (replace(audited, max_bytes=900), None),
        (audited, Room(pages=0)),
        (replace(audited, mode=Mode.METERED), None),
    ):
        assert plan(judged(RECEIPT), policy, "id", room=room).route.decision is Decision.STRUCTURE
