import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry_cloud.deep.alignment import matches
from docferry_cloud.deep.vote import Witness, vote


def says(text, score=0.95, weight=1.0, spaces=True):
    return Witness(text, (score,) * len(text), weight, spaces)


def test_the_reading_with_the_most_behind_it_wins():
    assert vote([says("TOTAI"), says("TOTAL"), says("TOTAL", weight=0.6)]).text == "TOTAL"


def test_a_reading_that_is_unsure_of_itself_counts_little():
    assert vote([says("valley closes", 0.95), says("valley coses", 0.7), says("valley coses", 0.6)]).text == (
        "valley closes"
    )


def test_a_stretch_in_dispute_is_taken_whole_from_one_reading():
    assert vote([says("Item"), says("Itern"), says("Itern", 0.5)]).text in {"Item", "Itern"}
    voted = vote([says("87-114"), says("87-114 (70,825)", 0.7), says("87-114", 0.9)])
    assert voted.text == "87-114"


def test_a_space_that_one_trusted_reading_saw_stays():
    assert vote([says("TAXINVOICE", 0.99), says("TAX INVOICE", 0.9)]).text == "TAX INVOICE"
    assert vote([says("RESTRICTED"), says("RESTRICTE D", spaces=False)]).text == "RESTRICTED"


def test_a_decimal_point_outweighs_a_reading_that_lost_it():
    assert vote([says("300", 0.99), says("3.00", 0.9)]).text == "3.00"
    # No point between digits, no bonus.
    assert vote([says("Doc No", 0.99), says("Doc No.", 0.9)]).text == "Doc No"


def test_support_falls_where_readings_differ_and_where_one_saw_nothing():
    alone = vote([says("9.00", 0.9)])
    assert alone.support == pytest.approx((0.9,) * 4)
    assert alone.shares == (1.0,) * 4
    doubted = vote([says("9.00", 0.9), says("8.00", 0.8)])
    assert doubted.text == "9.00"
    assert doubted.support[0] < doubted.support[1]
    assert vote([says("9.00", 0.9), says("", 0.0)]).mean_support < 0.9


def test_nothing_read_is_nothing():
    for nobody in ([], [says("")], [says(" ")]):
        assert vote(nobody).text == ""
        assert vote(nobody).belief == 0.0


texts = st.text(alphabet="ab1. ", max_size=12)
scored = st.tuples(texts, st.floats(0.0, 1.0), st.floats(0.1, 2.0), st.booleans()).map(lambda one: says(*one))


@given(st.lists(scored, max_size=5))
def test_every_letter_was_read_by_someone_and_all_numbers_are_shares(witnesses):
    voted = vote(witnesses)
    letters = "".join(voted.text.split())
    assert len(letters) == len(voted.support) == len(voted.shares) == voted.letters
    assert set(letters) <= {letter for witness in witnesses for letter in witness.text}
    assert all(0.0 <= share <= 1.0 for share in (*voted.support, *voted.shares, voted.belief))
    assert voted.text == voted.text.strip()


@given(scored)
def test_one_witness_alone_is_believed_to_the_letter(witness):
    assert vote([witness]).text.split() == (
        witness.text.split() if witness.spaces else ["".join(witness.text.split())] if witness.text.strip() else []
    )


@given(texts, texts)
def test_matches_are_equal_letters_in_rising_order(one, other):
    found = matches(one, other)
    assert all(one[a] == other[b] for a, b in found)
    assert found == sorted(found)
    assert len({a for a, _ in found}) == len({b for _, b in found}) == len(found)
    assert matches(one, one) == [(at, at) for at in range(len(one))]
