from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.document import Line, Page, Region, RegionType
from docferry_cloud.pipeline_geometry import from_crop, overlap, reach, to_crop
from docferry_cloud.pipeline_merge import Opinion, Reread, in_doubt, merge, settle

EDGE, CLOUD = "edge:small@aaaaaa", "cloud:large@bbbbbb"


def rectangle(x0, y0, x1, y1):
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def line(text, box, identity="r1.l1", score=0.9, confidence=None, provenance=EDGE):
    return Line(identity, text, rectangle(*box), score, confidence, provenance)


def page(*lines):
    return Page(1000, 1000, (Region("r1", RegionType.TEXT, (0.0, 0.0, 1.0, 0.5), 0, lines=lines),))


def found(text, box, confidence=0.9):
    return line(text, box, identity="", score=0.99, confidence=confidence, provenance=CLOUD)


CROP = (0.0, 0.05, 1.0, 0.2)
FIRST = (0.1, 0.1, 0.5, 0.12)


def opinion(text, confidence=0.9, score=0.98):
    return Opinion(text, score, confidence, CLOUD)


def test_what_the_vote_settled_replaces_the_text_under_the_same_id():
    before = page(line("TOTAL 9.O0", FIRST, score=0.7))
    (kept,) = merge(before, [Reread(CROP, {"r1.l1": opinion("TOTAL 9.00")})]).lines
    assert (kept.id, kept.text, kept.score, kept.confidence, kept.provenance) == (
        "r1.l1",
        "TOTAL 9.00",
        0.98,
        0.9,
        CLOUD,
    )
    assert kept.polygon == before.lines[0].polygon


def test_a_text_that_stays_keeps_its_reader_and_gains_the_votes_confidence():
    kept = settle(line("9.00", FIRST, score=0.8, confidence=0.7), opinion("9.00", 0.96))
    assert (kept.text, kept.score, kept.confidence, kept.provenance) == ("9.00", 0.8, 0.96, EDGE)


def test_a_text_the_edge_is_surer_of_stays_but_is_believed_less():
    kept = settle(line("9.00", FIRST, confidence=0.9), opinion("9,00", 0.6))
    assert (kept.text, kept.provenance) == ("9.00", EDGE)
    assert kept.confidence == pytest.approx(0.9 * 0.4 / (1 - 0.54))


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_more_probable_text_wins_and_no_doubt_raises_a_confidence(edge, vote):
    kept = settle(line("9.00", FIRST, confidence=edge), opinion("9,00", vote))
    assert kept.text == ("9.00" if edge > vote else "9,00")
    assert 0 <= (kept.confidence or 0.0) <= max(edge, vote)


def test_of_two_crops_that_show_a_line_the_surer_one_counts():
    rereads = [Reread(CROP, {"r1.l1": opinion("8.00", 0.4)}), Reread(CROP, {"r1.l1": opinion("9.00", 0.8)})]
    for order in (rereads, rereads[::-1]):
        (kept,) = merge(page(line("?", FIRST)), order).lines
        assert (kept.text, kept.confidence) == ("9.00", 0.8)


def test_an_empty_second_reading_changes_nothing():
    before = line("TOTAL", FIRST, confidence=0.7)
    assert settle(before, opinion(" ")) == before


def test_a_line_that_the_crop_makes_doubtful_is_not_added():
    assert merge(page(), [Reread(CROP, found=(found("~;", FIRST, 0.2),))]).lines == ()


def test_a_line_the_edge_missed_is_added_in_its_row():
    before = page(line("TOTAL", FIRST), line("CASH", (0.1, 0.15, 0.3, 0.17), "r1.l2"))
    after = merge(before, [Reread(CROP, found=(found("9.00", (0.8, 0.1, 0.9, 0.12)),))])
    assert [(one.id, one.text) for one in after.lines] == [("r1.l1", "TOTAL"), ("r1.l3", "9.00"), ("r1.l2", "CASH")]


def test_a_line_outside_every_region_gets_a_region_of_its_own():
    before = page(line("TOTAL", FIRST))
    after = merge(before, [Reread((0.0, 0.8, 1.0, 1.0), found=(found("THANK YOU", (0.3, 0.85, 0.6, 0.9)),))])
    assert [region.id for region in after.regions] == ["r1", "r2"]
    assert [region.order for region in after.regions] == [0, 1]
    assert after.regions[1].lines[0].id == "r2.l1"


def test_a_line_that_goes_on_outside_the_crop_is_not_added():
    cut = found("TOT", (0.45, 0.1, 0.6, 0.12))
    assert merge(page(), [Reread((0.3, 0.05, 0.6, 0.2), found=(cut,))]).lines == ()


def test_two_crops_that_show_the_same_missed_line_add_it_once():
    missed = (found("9.00", (0.8, 0.1, 0.9, 0.12)),)
    after = merge(page(), [Reread(CROP, found=missed), Reread((0.0, 0.08, 1.0, 0.3), found=missed)])
    assert [one.text for one in after.lines] == ["9.00"]


def test_pieces_of_a_line_are_joined_before_they_count():
    before = page(line("TOTAL9OO", FIRST, score=0.6))
    pieces = (found("9.00", (0.36, 0.1, 0.5, 0.12)), found("TOTAL", (0.1, 0.1, 0.34, 0.12)))
    (kept,) = merge(before, [Reread(CROP, found=pieces)]).lines
    assert kept.text == "TOTAL 9.00"


def test_a_line_the_edge_cut_short_is_completed():
    before = page(line("TOTAL", FIRST, score=0.99))
    whole = found("TOTAL 9.00", (0.1, 0.1, 0.7, 0.12))
    (kept,) = merge(before, [Reread(CROP, {"r1.l1": opinion("TOTAL", 0.99)}, (whole,))]).lines
    assert (kept.id, kept.text, kept.box[2]) == ("r1.l1", "TOTAL 9.00", 0.7)


def test_one_found_line_never_swallows_two_of_the_edge():
    before = page(line("TEA", (0.1, 0.1, 0.3, 0.12)), line("3.00", (0.32, 0.1, 0.5, 0.12), "r1.l2"))
    after = merge(before, [Reread(CROP, found=(found("TEA 3.00", (0.1, 0.1, 0.5, 0.12)),))])
    assert [one.text for one in after.lines] == ["TEA", "3.00"]


def test_lines_known_to_be_right_are_not_read_again():
    sure, doubtful = line("TEA", FIRST, confidence=0.99), line("M1LK", (0.1, 0.15, 0.3, 0.17), "r1.l2", confidence=0.5)
    assert [one.text for one in in_doubt(page(sure, doubtful), CROP)] == ["M1LK"]


boxes = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0.02, 0.5), st.floats(0.01, 0.1)).map(
    lambda b: (b[0], b[1], min(1.0, b[0] + b[2]), min(1.0, b[1] + b[3]))
)
lines = st.lists(
    st.tuples(
        st.sampled_from(["TEA", "3.00", "300", "A B", "AB"]), boxes, st.floats(0, 1), st.none() | st.floats(0, 1)
    ),
    max_size=6,
)


@given(lines, st.lists(st.tuples(boxes, lines), max_size=3))
def test_no_line_is_lost_ids_stay_unique_and_boxes_stay_on_the_page(read, crops):
    before = page(*(line(text, box, f"r1.l{n + 1}", score, sure) for n, (text, box, score, sure) in enumerate(read)))
    rereads = [
        Reread(
            box,
            {
                one.id: Opinion(text, score, score, CLOUD)
                for one, (text, _, score, _) in zip(before.lines, seen, strict=False)
            },
            tuple(found(text, place, score) for text, place, score, _ in seen),
        )
        for box, seen in crops
    ]
    after = merge(before, rereads)
    identities = [one.id for one in after.lines]
    assert len(set(identities)) == len(identities)
    assert len({region.id for region in after.regions}) == len(after.regions)
    assert [region.order for region in after.regions] == list(range(len(after.regions)))
    assert {one.id for one in before.lines} <= set(identities)
    for region in after.regions:
        assert all(0.0 <= side <= 1.0 for side in region.box)
        for one in region.lines:
            assert one.text.strip()
            assert all(0.0 <= side <= 1.0 for point in one.polygon for side in point)
            assert one.confidence is None or 0.0 <= one.confidence <= 1.0


@given(boxes, boxes)
def test_overlap_is_a_share_and_the_same_both_ways(one, other):
    first, second = rectangle(*one), rectangle(*other)
    assert 0.0 <= overlap(first, second) <= 1.0
    assert overlap(first, second) == pytest.approx(overlap(second, first), abs=1e-6)
    assert overlap(first, first) == pytest.approx(1.0)


def test_slanted_neighbours_do_not_overlap_although_their_boxes_do():
    upper = (0.1, 0.1), (0.9, 0.3), (0.9, 0.33), (0.1, 0.13)
    lower = tuple((x, y + 0.05) for x, y in upper)
    assert overlap(upper, lower) == 0.0


def test_reach_runs_along_the_text():
    assert reach(rectangle(0.2, 0.1, 0.4, 0.2), rectangle(0.3, 0.1, 0.5, 0.2)) == pytest.approx((0.5, 1.5))
    assert reach(rectangle(0.2, 0.1, 0.2, 0.1), rectangle(0.3, 0.1, 0.5, 0.2)) == (0.0, 0.0)


@given(boxes, boxes)
def test_mapping_into_a_crop_and_back_changes_nothing_inside_it(crop, inner):
    wide, high = crop[2] - crop[0], crop[3] - crop[1]
    placed = rectangle(
        crop[0] + inner[0] * wide, crop[1] + inner[1] * high, crop[0] + inner[2] * wide, crop[1] + inner[3] * high
    )
    back = from_crop(to_crop(placed, crop), crop)
    assert [side for point in back for side in point] == pytest.approx([side for point in placed for side in point])


def test_merging_nothing_changes_nothing():
    before = page(line("TOTAL", FIRST))
    assert merge(before, []) == before
    assert merge(replace(before, regions=()), []) == replace(before, regions=())
