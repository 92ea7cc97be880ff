"""Printed amounts: every style comes back as the same decimal, and nothing makes the parser raise."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.fields.amounts import find_amounts, parse_amount, plain_decimal

cents = st.integers(min_value=0, max_value=999_999_999).map(lambda value: Decimal(value) / 100)


def _grouped(value: Decimal, group: str, point: str) -> str:
    return f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", group)


STYLES = (
    lambda value: f"{value:.2f}",
    lambda value: _grouped(value, ",", "."),
    lambda value: _grouped(value, ".", ","),
    lambda value: _grouped(value, "'", "."),
    lambda value: _grouped(value, "\u00a0", ","),
    lambda value: f"RM {value:,.2f}",
    lambda value: f"RM{value:.2f}",
    lambda value: f"¥{value:,.2f}",
    lambda value: f"￥{value:.2f}",
    lambda value: f"{value:.2f}元",
    lambda value: f"US$ {value:,.2f}",
    lambda value: f"{_grouped(value, '.', ',')} €",
    lambda value: f"{value:.2f}".replace(".", " ."),
)


@given(cents, st.sampled_from(STYLES))
def test_every_style_comes_back_as_the_same_amount(value, style):
    assert parse_amount(style(value)) == value


@given(cents.filter(bool), st.sampled_from(("-{}", "({})", "{}-", "-RM {}", "RM -{}")))
def test_negative_styles_come_back_negative(value, style):
    assert parse_amount(style.format(f"{value:.2f}")) == -value


@given(st.text(max_size=80))
def test_any_text_is_survived(text):
    parse_amount(text)
    for amount in find_amounts(text):
        assert text[amount.start : amount.end].startswith(amount.text)


@given(st.text(alphabet="0123456789OolI.,-() RM$¥元%:/'", max_size=40))
def test_any_jumble_of_amount_glyphs_is_survived(text):
    parse_amount(text)


@given(cents)
def test_the_normal_form_is_a_plain_decimal_with_two_places(value):
    assert plain_decimal(value) == f"{value:.2f}"
    assert parse_amount(plain_decimal(value)) == value


@pytest.mark.parametrize(
    ("printed", "value"),
    [("9.OO", "9.00"), ("9 .00", "9.00"), ("1l.50", "11.50"), ("I2.O5", "12.05"), ("１２．５０", "12.50")],
)
def test_slips_of_the_reader_are_put_right(printed, value):
    assert parse_amount(printed) == Decimal(value)


@pytest.mark.parametrize("text", ["6%", "10.00 %", "A4", "07-5550123", "13:45", "", "TOTAL", "9555000012345"])
def test_what_is_no_amount_is_none(text):
    assert parse_amount(text) is None


def test_an_amount_run_into_its_keyword_is_found():
    (amount,) = find_amounts("TOTALRM9.00")
    assert (amount.value, amount.currency) == (Decimal("9.00"), "MYR")


def test_several_amounts_in_a_line_are_found_in_order():
    assert [amount.value for amount in find_amounts("2 X 7.45 14.90 SR")] == [2, Decimal("7.45"), Decimal("14.90")]


@pytest.mark.parametrize(
    ("printed", "code"),
    [("S$5.00", "SGD"), ("HK$ 5.00", "HKD"), ("$5.00", "USD"), ("5.00元", "CNY"), ("€5,00", "EUR"), ("5.00", None)],
)
def test_the_longest_currency_mark_decides(printed, code):
    assert find_amounts(printed)[0].currency == code


def test_a_dot_parts_thousands_only_where_the_currency_does_so():
    assert parse_amount("Rp 15.000") == 15_000
    assert parse_amount("1.234") == Decimal("1.234")
    assert parse_amount("1,234") == 1234
