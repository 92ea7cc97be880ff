"""What the embedded engine asks for: what stays in doubt after reading, where the device can show it sharper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.rectangles import overlap_area
from docferry_cloud.engine import AskingEngine, PageInput, Task, Want
from docferry_cloud.interpret import MAX_ASKED, interpret
from docferry_cloud.pipeline_wants import Shown, in_doubt, wanted

WHOLE = (0.0, 0.0, 1.0, 1.0)


def line(number, confidence, *, top=None, height=0.02, identity=None):
    top = number * 0.05 if top is None else top
    polygon = ((0.1, top), (0.9, top), (0.9, top + height), (0.1, top + height))
    return Line(identity or f"r1.l{number}", f"line {number}", polygon, 0.9, confidence)


def page(*lines, regions=()):
    return Page(1000, 1500, (Region("r1", RegionType.TEXT, WHOLE, 0, lines=lines), *regions))


def asked(made, shown=(), **changes):
    fields = {"overview": 0.0, "original": 1.0, "target_risk": 0.02, "tasks": {Task.TEXT}} | changes
    return wanted(made, shown, **fields)


def test_the_riskiest_lines_are_asked_for_until_the_rest_meets_the_target():
    made = page(*(line(number, 0.99) for number in range(8)), line(9, 0.3), line(11, 0.8))
    (first, second) = asked(made)
    assert first.box[1] < 0.45 < first.box[3]
    assert second.box[1] < 0.55 < second.box[3]
    assert "1 lines stay in doubt, 0.70" in first.why
    assert first.scale == pytest.approx(24 / 30)


def test_nothing_is_asked_for_that_is_sure_uncalibrated_or_of_which_no_target_is_stated():
    assert asked(page(*(line(number, 0.99) for number in range(8)))) == ()
    assert asked(page(line(1, None), line(2, None))) == ()
    assert asked(page(line(1, 0.1)), target_risk=None) == ()
    assert asked(page()) == ()


def test_what_was_read_as_sharp_as_the_original_is_not_asked_for_again():
    made = page(line(1, 0.2))
    crop = (0.05, 0.03, 0.95, 0.09)
    assert asked(made, [Shown(crop, 1.0)]) == ()
    assert len(asked(made, [Shown(crop, 0.4)])) == 1
    assert len(asked(made, [Shown((0.05, 0.03, 0.5, 0.09), 1.0)])) == 1


def test_doubt_about_what_was_read_again_asks_for_nothing_that_the_edge_had_accepted():
    accepted = [line(number, confidence) for number, confidence in enumerate((0.999, 0.999, 0.95, 0.999))]
    made = page(*accepted, line(10, 0.05), line(11, 0.95))
    crop = Shown((0.0, 0.48, 1.0, 0.6), 1.0)
    assert asked(made, [crop]) == ()
    # What the wire's rounding adds is no doubt either.
    assert asked(page(line(1, 1 - 0.02 - 1 / 600), line(2, 1 - 0.02 - 1 / 600))) == ()


def test_small_print_is_asked_for_sharper_as_far_as_the_original_goes_and_pays():
    small = page(line(1, 0.2, height=0.01))
    (want,) = asked(small, [Shown(WHOLE, 1.0)], original=1.4)
    assert want.scale == pytest.approx(1.4)
    (want,) = asked(small, [Shown(WHOLE, 1.0)], original=8.0)
    assert want.scale == pytest.approx(24 / 15)
    assert asked(page(line(1, 0.2, height=0.03)), [Shown(WHOLE, 1.0)], original=8.0) == ()


def test_neighbours_become_one_picture():
    (want,) = asked(page(line(1, 0.2, top=0.30), line(2, 0.3, top=0.322)))
    assert want.box[1] < 0.30
    assert want.box[3] > 0.342
    assert "2 lines" in want.why


@pytest.mark.parametrize(
    ("kind", "tasks", "overview", "count"),
    [
        (RegionType.TABLE, {Task.TABLE}, 0.0, 1),
        (RegionType.TABLE, {Task.TABLE}, 0.3, 1),
        (RegionType.TABLE, {Task.TABLE}, 0.9, 0),
        (RegionType.TABLE, {Task.TEXT}, 0.0, 0),
        (RegionType.EQUATION, {Task.FORMULA}, 0.0, 1),
        (RegionType.TEXT, {Task.TABLE, Task.FORMULA}, 0.0, 0),
    ],
)
def test_a_region_is_asked_for_by_an_engine_that_reads_such_ones_and_has_no_readable_pixels(
    kind, tasks, overview, count
):
    region = Region("r2", kind, (0.1, 0.5, 0.9, 0.8), 1, lines=(line(1, None, top=0.5, identity="r2.l1"),))
    found = asked(page(regions=(region,)), overview=overview, tasks=tasks)
    assert len(found) == count
    assert all(kind.value in want.why for want in found)


confidences = st.lists(st.none() | st.floats(0, 1), max_size=30)


@given(confidences, st.floats(0, 1))
def test_without_those_in_doubt_the_rest_meets_the_target(given_, target):
    lines = [line(number, confidence) for number, confidence in enumerate(given_)]
    doubtful = in_doubt(lines, target)
    rest = [1 - one.confidence for one in lines if one.confidence is not None and one not in doubtful]
    assert not rest or sum(rest) / len(rest) <= target + 1e-9
    assert all(one.confidence is not None for one in doubtful)


@given(confidences, st.floats(0.25, 4), st.lists(st.floats(0, 0.97), min_size=30, max_size=30))
def test_pictures_lie_on_the_page_do_not_overlap_and_ask_for_no_more_than_there_is(given_, original, tops):
    lines = [line(n, c, top=tops[n], height=0.01 + n / 2000) for n, c in enumerate(given_)]
    found = asked(page(*lines), original=original)
    for number, want in enumerate(found):
        x0, y0, x1, y1 = want.box
        assert 0 <= x0 < x1 <= 1
        assert 0 <= y0 < y1 <= 1
        assert 0 < want.scale <= original
        assert not any(overlap_area(want.box, other.box) > 0 for other in found[number + 1 :])


class Engine:
    name = "double"
    tasks = frozenset({Task.TEXT})

    def read(self, page, effort, cancelled):
        return page.reading


class Asking(Engine):
    def wants(self, page, read):
        return tuple(Want(None, 1.0, f"{number}") for number in range(10))


def test_an_engine_that_cannot_ask_is_not_asked_and_one_that_can_is_bounded():
    pages = [PageInput(reading=page(line(1, 0.5)), original_scale=scale) for scale in (0.0, 1.0, 1.0)]
    assert not isinstance(Engine(), AskingEngine)
    assert interpret(pages, Engine(), None, lambda: False).wants == ()
    wants = interpret(pages, Asking(), None, lambda: False).wants
    assert len(wants) == MAX_ASKED
    assert [want.page for want in wants] == [1] * 10 + [2] * (MAX_ASKED - 10)
    assert isinstance(interpret(pages, Asking(), None, lambda: False).document, Document)
