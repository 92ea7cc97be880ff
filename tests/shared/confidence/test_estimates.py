"""Lines, regions, pages and fields get a probability each, and never a high one for what cannot be."""

from dataclasses import replace

import pytest

from docferry.calibration import Calibration, LineHead
from docferry.confidence.curves import Sum
from docferry.confidence.estimates import (
    FIELD_SIGNALS,
    PAGE_SIGNALS,
    estimate_lines,
    field_traits,
    page_confidence,
    region_confidence,
    reread_confidence,
    with_confidence,
    with_field_confidence,
)
from docferry.confidence.signals import DIRECTIONS, NAMES
from docferry.document import Document, Evidence, Field, Line, Page, Quality, Region, RegionType, with_fields
from docferry.fields import extract_fields

OLD = Calibration(((0.0, 0.0), (1.0, 1.0)), "reader", 1, 1, "none", "", "2026-01-01")
HEAD = LineHead(
    Sum(NAMES, tuple(0.2 * direction for direction in DIRECTIONS), -8.0),
    ((-6.0, 0.0), (6.0, 1.0)),
    ((-6.0, 1.0), (6.0, 0.0)),
)
PAGE = Sum(PAGE_SIGNALS, (1.0, -1.0, -1.0, -3.0, -1.0, -1.0, -1.0, -1.0), 0.0)
NEW = replace(OLD, line=HEAD, layout=((0.3, 0.5), (0.9, 1.0)), page=PAGE, version=2)

ROWS = ["GREEN LEAF MART SDN BHD", "DATE 12/03/2018", "TEA 3.50", "RICE 5.50", "TOTAL RM 9.00", "CASH 9.00"]


def page(rows: list[str] = ROWS, *, score: float = 0.99, region_score: float = 0.9) -> Page:
    lines = tuple(
        Line(f"r1.l{n + 1}", text, ((0.1, y), (0.6, y), (0.6, y + 0.04), (0.1, y + 0.04)), score)
        for n, (text, y) in enumerate((text, 0.1 + 0.08 * n) for n, text in enumerate(rows))
    )
    regions = (Region("r1", RegionType.TEXT, (0, 0, 1, 1), 0, region_score, lines=lines),)
    return Page(600, 900, regions, Quality(contrast=0.9, text_height=36.0, orientation_score=0.99, blur=0.8))


@pytest.mark.parametrize("calibration", [OLD, NEW])
@pytest.mark.parametrize("score", [float("nan"), -0.1, 1.5, float("inf")])
def test_an_impossible_score_is_never_sure(calibration: Calibration, score: float) -> None:
    assert all(estimate.right == 0.0 for estimate in estimate_lines(page(score=score), calibration))


def test_more_score_is_never_less_sure() -> None:
    low, high = (estimate_lines(page(score=score), NEW) for score in (0.7, 0.999))
    for worse, better in zip(low, high, strict=True):
        assert worse.right < better.right
        assert worse.wrong_characters > better.wrong_characters


def test_every_line_and_region_carries_its_confidence() -> None:
    document, estimates = with_confidence(Document((page(), page())), NEW)
    assert [line.confidence for line in document.lines] == [estimate.right for estimate in estimates]
    assert all(0.0 < (region.confidence or 0.0) < 1.0 for one in document.pages for region in one.regions)


def test_a_doubtful_layout_box_makes_its_region_doubtful() -> None:
    sure, unsure = (
        with_confidence(Document((page(region_score=score),)), NEW)[0].pages[0].regions[0] for score in (0.9, 0.3)
    )
    # Its lines are a little less sure too.
    assert 0.4 < (unsure.confidence or 0.0) / (sure.confidence or 1.0) < 0.5
    without_box = replace(sure, score=0.0)
    assert region_confidence(without_box, NEW) == pytest.approx(sure.confidence or 0.0)


def test_a_region_read_again_keeps_the_doubt_about_its_box_and_gains_by_its_lines() -> None:
    before = with_confidence(Document((page(region_score=0.3),)), NEW)[0].pages[0].regions[0]
    assert reread_confidence(before, before) == pytest.approx(before.confidence or 0.0)
    sure = replace(before, lines=tuple(replace(line, confidence=1.0) for line in before.lines))
    assert reread_confidence(sure, before) == pytest.approx(0.5)
    assert reread_confidence(replace(sure, confidence=None), None) == pytest.approx(1.0)


def test_a_region_whose_lines_have_no_confidence_gets_none() -> None:
    (region,) = page().regions
    assert reread_confidence(region, None) is None


@pytest.mark.parametrize("calibration", [OLD, NEW])
def test_a_page_without_lines_is_not_read(calibration: Calibration) -> None:
    assert page_confidence(page([]), calibration) == 0.0


def test_a_poor_picture_makes_the_page_doubtful_whatever_the_lines_say() -> None:
    good = with_confidence(Document((page(),)), NEW)[0].pages[0]
    glaring = replace(good, quality=replace(good.quality, glare=0.4, blur=2.5, cropped_edges=1))
    assert page_confidence(glaring, NEW) < page_confidence(good, NEW) < 1.0


def test_a_total_that_stands_twice_is_backed_and_one_without_decimals_ill_formed() -> None:
    document = Document((page(),))
    document = with_fields(document, extract_fields(document))
    total = next(one for one in document.fields if one.name == "total")
    assert field_traits(total, document) == (False, True)
    alone = replace(document, pages=(page([*ROWS[:-2], "TOTAL RM 9"]),))
    mark = Evidence(0, (0, 0, 1, 1), "r1.l5")
    assert field_traits(Field("total", "9", "9.00", 0.9, (mark,)), alone) == (True, False)


def test_fields_are_weighed_again_by_what_backs_them() -> None:
    document, _ = with_confidence(Document((page(),)), NEW)
    document = with_fields(document, extract_fields(document))
    head = Sum(FIELD_SIGNALS, (0.5, 0.5, -2.0, 2.0), 0.0)
    found = {
        one.name: one.confidence for one in with_field_confidence(document, replace(NEW, fields={"": head})).fields
    }
    less = replace(head, weights=(0.5, 0.5, -2.0, 0.0))
    plain = {
        one.name: one.confidence for one in with_field_confidence(document, replace(NEW, fields={"": less})).fields
    }
    assert found["total"] > plain["total"]
    assert found["merchant"] == plain["merchant"]
    assert with_field_confidence(document, NEW) == document
