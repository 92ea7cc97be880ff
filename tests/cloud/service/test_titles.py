"""Titles and thin messages: one line, bounded, in the subscriber's language, whatever a document holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry_cloud.schema import EventType
from docferry_cloud.sinks.message import MAX_PUBLIC_URL, MAX_THIN_BYTES, Told, message
from docferry_cloud.sinks.titles import LANGUAGES, MAX_TITLE, Facts, amount, title

INVOICE = Facts(True, {"invoice_number": "4711", "total": "1204.50", "currency": "EUR", "merchant": "ACME"})
# Any text at all, lone surrogates and direction marks included.
ANY = st.text(st.characters(), max_size=600)
FIELDS = st.dictionaries(
    st.one_of(st.sampled_from(["total", "currency", "invoice_number", "merchant"]), ANY), ANY, max_size=6
)
HAPPENED = st.one_of(
    st.sampled_from(["accepted", "succeeded", "version_added", "failed", "cancelled", "deleted", "wants_changed"]), ANY
)


@pytest.mark.parametrize(
    ("happened", "facts", "language", "expected"),
    [
        ("succeeded", INVOICE, "en", "Table recognised: invoice 4711, total 1,204.50 EUR"),
        ("succeeded", INVOICE, "zh", "表格已识别：发票 4711，合计 1,204.50 EUR"),
        (
            "succeeded",
            Facts(False, {"merchant": "ACME", "total": "9.00"}),
            "en",
            "Document recognised: ACME, total 9.00",
        ),
        ("succeeded", Facts(), "en", "Document recognised"),
        ("version_added", INVOICE, "en", "Table corrected: invoice 4711, total 1,204.50 EUR"),
        ("failed", INVOICE, "en", "Document could not be read"),
        ("deleted", INVOICE, "zh", "文档已删除"),
        ("something_new", INVOICE, "en", "Document changed"),
        ("succeeded", INVOICE, "tlh", "Table recognised: invoice 4711, total 1,204.50 EUR"),
        ("succeeded", Facts(False, {"total": "nine", "merchant": "A\nB\u202e"}), "en", "Document recognised: A B"),
    ],
)
def test_a_title_says_what_happened_to_which_document(happened, facts, language, expected):
    assert title(happened, facts, language) == expected


@pytest.mark.parametrize(
    ("normalized", "currency", "shown"),
    [
        ("1204.50", "EUR", "1,204.50 EUR"),
        ("-1234567.8", "", "-1,234,567.8"),
        ("0", "CNY", "0 CNY"),
        ("9.00", "eur", "9.00"),
        ("1E+9999999", "EUR", ""),
        ("NaN", "EUR", ""),
        ("١٢", "EUR", ""),
        ("9" * 16, "EUR", ""),
    ],
)
def test_amounts_are_grouped_and_nonsense_is_left_out(normalized, currency, shown):
    assert amount(normalized, currency) == shown


@given(HAPPENED, st.booleans(), FIELDS, st.sampled_from((*LANGUAGES, "?")))
def test_a_title_is_one_bounded_visible_line(happened, table, fields, language):
    line = title(happened, Facts(table, fields), language)
    assert 0 < len(line) <= MAX_TITLE
    assert line.splitlines() == [line]
    assert line.isprintable()
    line.encode()


@given(st.sampled_from(EventType), FIELDS, st.sampled_from(LANGUAGES))
def test_a_pushed_message_is_small_and_holds_no_field_but_the_titles(happened, fields, language):
    event = Told(happened.value.lower(), "2026-12-02T00:00:00.000Z", "a" * 36, "d" * 36, "SUCCEEDED", 2)
    made = message(event, "e" * 36, 1, Facts(True, fields), language, "https://" + "h" * (MAX_PUBLIC_URL - 8))
    pushed = made.push()
    assert len(pushed) < MAX_THIN_BYTES
    assert json.loads(pushed)["title"] == made.title
