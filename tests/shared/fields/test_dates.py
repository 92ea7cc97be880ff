"""Printed dates: every style comes back as the same day, and nothing makes the parser raise."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.fields.dates import find_dates, parse_date

days = st.dates(min_value=dt.date(2000, 1, 1), max_value=dt.date(2069, 12, 31))
times = st.sampled_from(("", " 13:45", " 1:05:22 PM", "13:45:10"))

STYLES = (
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d.%m.%Y",
    "%d/%m/%y",
    "%d-%m-%y",
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d %b %Y",
    "%d-%b-%y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%Y年%m月%d日",
)


@given(days, st.sampled_from(STYLES))
def test_every_style_comes_back_as_the_same_day(day, style):
    assert parse_date(day.strftime(style)) == day


@given(days, st.sampled_from(STYLES[:5]), times)
def test_a_time_may_follow_with_or_without_a_space(day, style, time):
    assert parse_date(day.strftime(style) + time) == day


@given(days)
def test_month_first_is_read_when_asked(day):
    assert parse_date(day.strftime("%m/%d/%Y"), day_first=False) == day


@given(days)
def test_the_years_of_the_republic_are_turned_into_common_ones(day):
    assert parse_date(f"中華民國{day.year - 1911}年{day.month:02}月{day.day:02}日") == day


@given(st.text(max_size=80))
def test_any_text_is_survived(text):
    for date in find_dates(text):
        assert text[date.start : date.end] == date.text


@given(st.text(alphabet="0123456789OlI/-. :年月日JANFEBMARDEC", max_size=40))
def test_any_jumble_of_date_glyphs_is_survived(text):
    find_dates(text)


@pytest.mark.parametrize(
    ("printed", "day"),
    [
        ("DATE:14/09/2018 13:05", "2018-09-14"),
        ("20180428/191204", "2018-04-28"),
        ("25032018", "2018-03-25"),
        ("18-11-1813:58SH01", "2018-11-18"),
        ("1l/O4/2018", "2018-04-11"),
        ("2024年3月15日 12:31", "2024-03-15"),
        ("２０２４年３月１５日", "2024-03-15"),
        ("05-JAN-2017 03:17:50 PM", "2017-01-05"),
        ("12/31/2018", "2018-12-31"),
    ],
)
def test_dates_as_receipts_print_them(printed, day):
    assert parse_date(printed) == dt.date.fromisoformat(day)


@pytest.mark.parametrize("text", ["31/02/2018", "11-22 - 30", "5/40/160", "03-5550 1234", "99/99/9999", "1.2.3.4", ""])
def test_what_is_no_date_is_none(text):
    assert parse_date(text) is None


def test_a_date_that_could_be_read_either_way_says_so():
    (date,) = find_dates("03/04/2018")
    assert date.ambiguous
    assert not find_dates("23/04/2018")[0].ambiguous
