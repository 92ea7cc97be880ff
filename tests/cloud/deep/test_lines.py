import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docferry.vision.recogniser import Recognised
from docferry_cloud.deep.groups import Group, group, overlaps
from docferry_cloud.deep.lines import Rules, Sighting, doubtful, paired, settle, witness

RULES = Rules()


def quad(x0, y0, x1, y1):
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float32)


def sighting(text, place, score=0.95, helpers=()):
    place = quad(*place)
    heard = tuple(witness(Recognised(other, 0.95, (0.95,) * len(other), place), 0.6, spaces=False) for other in helpers)
    return Sighting(place, Recognised(text, score, (score,) * len(text), place), heard)


def settled(first, second):
    groups = group([one.quad for one in first], [other.quad for other in second])
    return [line.text for line in settle(groups, first, second, RULES)]


def test_the_same_print_seen_twice_is_one_line():
    assert settled([sighting("TOTAL", (10, 10, 60, 30))], [sighting("TOTAL", (8, 9, 62, 32))]) == ["TOTAL"]


def test_neighbours_above_and_below_stay_apart():
    first = [sighting("TEA", (10, 10, 60, 30)), sighting("MILK", (10, 28, 60, 48))]
    second = [sighting("TEA", (10, 10, 60, 30)), sighting("MILK", (10, 28, 60, 48))]
    assert settled(first, second) == ["TEA", "MILK"]


def test_a_line_cut_into_pieces_is_believed_where_it_reads_better():
    whole = sighting("BAT02201803120255", (10, 10, 220, 30), 0.99)
    pieces = [
        sighting("BAT022", (10, 10, 90, 30), 0.99),
        sighting("1803", (100, 10, 150, 30), 0.99),
        sighting("255", (180, 10, 220, 30), 0.99),
    ]
    assert settled([whole], pieces) == settled(pieces, [whole]) == ["BAT02201803120255"]


def test_a_box_that_cuts_print_off_is_not_heard():
    line = paired(sighting("ADJUSTME", (10, 10, 100, 30), 0.999), sighting("ADJUSTMENT", (10, 10, 135, 30), 0.9))
    assert line.text == "ADJUSTMENT"
    assert line.quad[1][0] == 135


def test_specks_are_noise_unless_the_readers_agree_on_them():
    assert settled([sighting("6", (4, 4, 26, 30), 0.8, helpers=("0", ""))], []) == []
    assert settled([sighting("7", (4, 4, 26, 30), 0.99, helpers=("7", "7"))], []) == ["7"]
    # The second detector is not asked for specks at all.
    assert settled([], [sighting("7", (4, 4, 26, 30), 0.99, helpers=("7", "7"))]) == []
    assert settled([], [sighting("CASH", (4, 4, 90, 30), 0.99, helpers=("CASH", "CASH"))]) == ["CASH"]


def test_a_legible_line_is_kept_whatever_the_others_say():
    first = sighting("valley compares the silver", (10, 10, 300, 30), 0.95, helpers=("x", "y"))
    assert settled([first], [sighting("velley cmprs", (10, 10, 300, 30), 0.55)]) == ["valley compares the silver"]


def test_a_stamp_over_several_lines_swallows_none_of_them():
    lines = [sighting(f"ROW {row}", (10, 40 * row, 200, 40 * row + 25)) for row in range(4)]
    stamp = sighting("PAID", (0, 0, 210, 160), 0.85)
    assert settled([*lines, stamp], lines) == [f"ROW {row}" for row in range(4)]


def test_helpers_are_asked_only_where_two_readings_differ_or_are_unsure():
    first = [
        sighting("TOTAL", (10, 10, 60, 30), 0.99),
        sighting("9.00", (10, 50, 60, 70), 0.99),
        sighting("TEA", (10, 90, 60, 110), 0.7),
        sighting("ALONE", (10, 130, 60, 150), 0.99),
    ]
    second = [
        sighting("TOTAL", (10, 10, 60, 30), 0.99),
        sighting("9.OO", (10, 50, 60, 70), 0.99),
        sighting("TEA", (10, 90, 60, 110), 0.99),
    ]
    groups = group([one.quad for one in first], [other.quad for other in second])
    assert doubtful(groups, first, second, RULES) == ((1, 2, 3), (1, 2))


places = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(4, 200), st.integers(4, 40)).map(
        lambda p: quad(p[0], p[1], p[0] + p[2], p[1] + p[3])
    ),
    max_size=8,
)


@given(places, places)
def test_every_quad_is_in_one_group_at_most_and_shares_lie_between_0_and_1(first, second):
    groups = group(first, second)
    for side in (0, 1):
        members = [number for each in groups for number in (each.first, each.second)[side]]
        assert len(members) == len(set(members)) <= len((first, second)[side])
    shared = overlaps(first, second)
    assert shared.shape == (len(first), len(second))
    assert ((shared >= 0) & (shared <= 1 + 1e-6)).all()


def test_lines_that_run_down_the_page_are_grouped_too():
    down = np.array([[40, 10], [40, 200], [10, 200], [10, 10]], dtype=np.float32)
    assert group([down], [down + 2]) == (Group((0,), (0,)),)
