"""What must not leave is found, however a till prints it, and the rest of a receipt is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docferry.fields import checksums
from docferry.fields.checksums import compact
from docferry.fields.sensitive import MASK, Sensitive, find_sensitive, mask_all, mask_text

ALL = frozenset(Sensitive)


def kinds(text: str) -> list[str]:
    return [match.kind.value for match in find_sensitive(text, ALL)]


def masked(text: str) -> str:
    return mask_text(text, find_sensitive(text, ALL))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("VISA 4111 1111 1111 1111", "card"),
        ("4111111111111111", "card"),
        ("CARD NO: 5500-0000-0000-0004", "card"),
        ("AMEX 3782 822463 10005", "card"),
        ("MASTERCARD 2223003122003222", "card"),
        ("UnionPay 6250941006528599", "card"),
        ("卡号 ４１１１ １１１１ １１１１ １１１１", "card"),
        ("IBAN DE89 3704 0044 0532 0130 00", "iban"),
        ("GB29NWBK60161331926819", "iban"),
        ("CH93 0076 2011 6238 5295 7", "iban"),
        ("NL91 ABNA 0417 1643 00", "iban"),
        ("DNI 12345678Z", "national_id"),
        ("NIE X-1234567-L", "national_id"),
        ("NIR 1 84 12 76 451 089 46", "national_id"),
        ("Steuer-ID 36 574 261 809", "national_id"),
        ("CF RSSMRA85T10A562S", "national_id"),
        ("NRIC S1234567D", "national_id"),
        ("IC NO 850917-10-5432", "national_id"),
        ("身份证 11010519491231002X", "national_id"),
        ("SSN 123-45-6789", "national_id"),
        ("NINO AB 12 34 56 C", "national_id"),
        ("CPF 111.444.777-35", "national_id"),
        ("mail: jane.doe+x@example.co.uk", "email"),
        ("jane @ example.com", "email"),
        ("TEL: 03-8076 1234", "phone"),
        ("Phone (555) 010-9999", "phone"),
        ("+60 12-345 6789", "phone"),
        ("手机 13812345678", "phone"),
    ],
)
def test_every_kind_is_found_in_the_forms_it_is_printed_in(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "TOTAL 1,234.56",
        "9556123456789",
        "INVOICE NO 1234567890123",
        "NO 12 JALAN BESAR 50000 KUALA LUMPUR",
        "GST ID 000123456789",
        "12/03/2018 14:05:33",
        "DATE 2018-03-12",
        "2 x 3.50 7.00",
        "5000 0001 0002",
        "RECEIPT 00123-4567",
        "THANK YOU PLEASE COME AGAIN",
    ],
)
def test_what_else_stands_on_a_receipt_is_left_alone(text: str) -> None:
    assert kinds(text) == []


def test_cards_and_accounts_keep_their_last_four_and_nothing_else_does() -> None:
    assert masked("VISA 4111 1111 1111 1234") == f"VISA {MASK * 4} {MASK * 4} {MASK * 4} 1234"
    assert masked("DE89370400440532013000").endswith("3000")
    assert masked("SSN 123-45-6789") == f"SSN {MASK * 3}-{MASK * 2}-{MASK * 4}"
    assert masked("a@example.com") == f"{MASK}@{MASK * 7}.{MASK * 3}"


def test_a_misread_digit_does_not_unmask_a_card_or_an_account() -> None:
    assert kinds("VISA 4111 1111 1111 1112") == ["card"]
    assert kinds("VISA 4lll 1111 1111 1111") == ["card"]
    assert kinds("DE89 3704 0044 0532 0130 01") == ["iban"]
    assert kinds("IC 850917-10-5433") == ["national_id"]


def test_only_the_chosen_kinds_are_masked() -> None:
    text = "4111111111111111 a@example.com"
    assert [match.kind for match in find_sensitive(text, {Sensitive.EMAIL})] == [Sensitive.EMAIL]
    assert find_sensitive(text, ()) == ()


@given(st.integers(0, 10**15 - 1), st.sampled_from(["", " ", "-"]))
def test_every_visa_number_is_masked_but_for_four_digits(number: int, separator: str) -> None:
    body = f"4{number:015d}"[:15]
    check = next(digit for digit in "0123456789" if checksums.luhn(body + digit))
    card = body + check
    text = "CARD " + separator.join(card[at : at + 4] for at in range(0, 16, 4)) + " APPROVED"
    assert compact(masked(text)) == f"CARD{card[-4:]}APPROVED"


@given(st.text(max_size=60))
def test_no_text_at_all_breaks_it_and_masking_keeps_the_length(text: str) -> None:
    matches = find_sensitive(text, ALL)
    assert len(mask_text(text, matches)) == len(text)
    assert all(0 <= match.start < match.end <= len(text) for match in matches)
    assert not any(character.isalnum() for character in mask_all(text))


@given(st.text(st.sampled_from("0123456789OIlSB -.ABCDEFXYZ+()@:"), max_size=50))
def test_nothing_like_a_number_breaks_it(text: str) -> None:
    mask_text(text, find_sensitive(text, ALL))


def test_check_digits_tell_right_from_wrong() -> None:
    assert checksums.luhn("79927398713")
    assert not checksums.luhn("79927398710")
    assert checksums.is_iban("GB29NWBK60161331926819")
    assert not checksums.is_iban("GB29NWBK60161331926818")
    assert checksums.is_german("36574261809")
    assert not checksums.is_german("36574261808")
    assert checksums.is_brazilian("11144477735")
    assert not checksums.is_brazilian("11111111111")
    assert checksums.is_french("184127645108946")
    assert checksums.is_italian("RSSMRA85T10A562S")
    assert not checksums.is_italian("RSSMRA85T10A562T")
    assert checksums.is_singaporean("S1234567D")
    assert not checksums.is_singaporean("S1234567A")
