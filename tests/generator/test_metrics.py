"""What the benchmarks count."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import (
    WordCounts,
    folded,
    line_counts,
    parse_amount,
    parse_date,
    same_field,
    word_counts,
    word_f1,
    words,
)


def box(x0, y0, x1, y1):
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def test_words_are_lower_case_runs_and_single_chinese_characters():
    assert words("Total: RM 9.00 合计") == ["total", "rm", "9.00", "合", "计"]


def test_full_width_text_counts_like_half_width():
    assert words("ＴＯＴＡＬ ９．００") == ["total", "9.00"]


def test_word_f1_is_summed_over_documents_before_dividing():
    assert word_f1([(["a b"], ["a b"]), (["c"], ["d"])]) == pytest.approx(2 * 2 / 6)


def test_a_repeated_word_counts_as_often_as_it_stands_in_both():
    assert word_counts(["a a a"], ["a a"]) == WordCounts(common=2, truth=3, read=2)


def test_nothing_read_from_nothing_is_perfect():
    assert WordCounts().f1 == 1.0


@given(st.lists(st.text(alphabet="abc .1", max_size=9)))
def test_a_perfect_reading_scores_one_in_any_order(lines):
    assert word_f1([(lines, lines[::-1])]) == 1.0


def test_folding_keeps_letters_and_digits_only():
    assert folded("Soon Fatt Sdn. Bhd. (M)") == "soonfattsdnbhdm"


def test_lines_match_by_place_even_where_a_reader_joins_two_cells():
    truth = [(box(0, 0, 50, 10), "TOTAL"), (box(200, 0, 250, 10), "9.00"), (box(0, 20, 50, 30), "CASH")]
    read = [(box(0, 0, 250, 10), "Total 9.00"), (box(0, 20, 50, 30), "C4SH")]
    counts = line_counts(truth, read)
    assert (counts.lines, counts.found, counts.right) == (3, 3, 2)


def test_neighbouring_rows_do_not_match():
    counts = line_counts([(box(0, 0, 100, 10), "one")], [(box(0, 8, 100, 18), "two")])
    assert counts.found == 0


def test_a_sloping_line_matches_its_own_row():
    truth = [(((0, 0), (400, 40), (400, 60), (0, 20)), "first"), (((0, 25), (400, 65), (400, 85), (0, 45)), "second")]
    read = [(polygon, text) for polygon, text in reversed(truth)]
    assert line_counts(truth, read).right == 2


def test_a_decimal_point_is_lost_when_its_digits_are_there_without_it():
    truth = [(box(0, 0, 50, 10), "3.00"), (box(0, 20, 50, 30), "4.50"), (box(0, 40, 50, 50), "7.25")]
    read = [(box(0, 0, 50, 10), "300"), (box(0, 20, 50, 30), "4 50"), (box(0, 40, 50, 50), "7.26")]
    counts = line_counts(truth, read)
    assert (counts.amounts, counts.lost) == (3, 2)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("RM 1,234.50", "1234.50"),
        ("1.234,50 EUR", "1234.50"),
        ("¥9.00", "9.00"),
        ("1,234", "1234"),
        ("9,00", "9.00"),
        ("-0.02", "-0.02"),
        ("12", "12"),
    ],
)
def test_amounts_are_read_in_both_manners(text, amount):
    assert parse_amount(text) == Decimal(amount)


def test_text_without_digits_is_no_amount():
    assert parse_amount("TOTAL") is None


@pytest.mark.parametrize(
    "text",
    [
        "25/03/2018",
        "25-03-18",
        "25.03.2018",
        "2018/03/25",
        "25 MAR 2018",
        "25-Mar-2018",
        "Mar 25, 2018",
        "2018年03月25日",
    ],
)
def test_dates_are_read_in_many_manners(text):
    assert parse_date(f"Date: {text} 9:27PM") == dt.date(2018, 3, 25)


def test_month_first_reads_american_dates():
    assert parse_date("03/04/2018", month_first=True) == dt.date(2018, 3, 4)


def test_a_day_that_does_not_exist_is_no_date():
    assert parse_date("31/02/2018") is None


@pytest.mark.parametrize(
    ("name", "truth", "read", "same"),
    [
        ("total", "RM 9.00", "9.00", True),
        ("total", "9.00", "900", False),
        ("date", "25 MAR 2018", "25/03/2018", True),
        ("company", "SOON FATT S/B", "Soon Fatt S B", True),
        ("company", "SOON FATT", "SOON FAT", False),
        ("address", "", "", False),
    ],
)
def test_fields_compare_by_what_they_mean(name, truth, read, same):
    assert same_field(name, truth, read) is same
