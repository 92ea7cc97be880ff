"""Check digits of cards, accounts and national numbers. Pure; every function takes the characters without separators.

Written from the public rules, for the one library that has them all (python-stdnum) is LGPL: docs/decisions/0013.
"""

from __future__ import annotations

import datetime as dt
import re

_IBAN_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE", "BI"), 16),
    **dict.fromkeys(("DK", "FO", "FI", "FK", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"), 20),
    **dict.fromkeys(("CH", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "CR", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BF", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    "LC": 32,
    "RU": 33,
}
"""ISO 13616: letters and digits of an account number, by country."""

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_NRIC = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT"}
_NRIC_WEIGHTS = (2, 7, 6, 5, 4, 3, 2)
_FISCALE_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21) * 2 + (2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def luhn(digits: str) -> bool:
    """ISO/IEC 7812: every second digit from the right doubled, the sum a multiple of ten."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return bool(digits) and total % 10 == 0


def is_card(digits: str) -> bool:
    """Whether these digits are a payment card's number: a network's range and length, and the Luhn sum."""
    return looks_like_card(digits) and luhn(digits)


def looks_like_card(digits: str) -> bool:
    """Whether length and first digits are those of a card network."""
    count, four, two = len(digits), int(digits[:4] or 0), int(digits[:2] or 0)
    return (
        (digits[:1] == "4" and count in {13, 16, 19})
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and count == 16)
        or (two in {34, 37} and count == 15)
        or (two in {36, 38, 39} and count in {14, 16})
        or (300 <= four // 10 <= 305 and count == 14)
        or ((four == 6011 or two in {62, 64, 65} or 3528 <= four <= 3589) and 16 <= count <= 19)
        or (two in {50, 56, 57, 58, 63, 67} and 13 <= count <= 19)
    )


def iban_length(country: str) -> int:
    """How many letters and digits an account number of a country has; 0 for a country without."""
    return _IBAN_LENGTHS.get(country, 0)


def is_iban(text: str) -> bool:
    """ISO 13616: the country's length, and 1 as the remainder by 97 with the first four characters at the end."""
    if len(text) != iban_length(text[:2]) or not text[2:4].isdigit() or not text.isalnum():
        return False
    return int("".join(str(int(character, 36)) for character in text[4:] + text[:4])) % 97 == 1


def is_spanish(text: str) -> bool:
    """DNI and NIE: the letter is the number's remainder by 23."""
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and _DNI[int(number) % 23] == text[-1]


def is_french(text: str) -> bool:
    """NIR: the last two digits are 97 less the remainder of the rest by 97; Corsica's letters count as 19 and 18."""
    number = text[:-2].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and text[-2:].isdigit() and 97 - int(number) % 97 == int(text[-2:])


def is_german(text: str) -> bool:
    """Steuer-Identifikationsnummer: ISO 7064 mod 11,10, and of the first ten digits one or two are repeated."""
    if text[0] == "0" or not 8 <= len(set(text[:10])) <= 9:
        return False
    product = 10
    for digit in text[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(text[10])


def is_italian(text: str) -> bool:
    """Codice fiscale: characters at odd places by a table, at even places by value, the sum's remainder by 26."""
    total = 0
    for place, character in enumerate(text[:15]):
        if place % 2 == 0:
            total += _FISCALE_ODD[character]
        else:
            total += int(character) if character.isdigit() else ord(character) - ord("A")
    return chr(ord("A") + total % 26) == text[15]


def is_singaporean(text: str) -> bool:
    """NRIC and FIN: weights 2 7 6 5 4 3 2 and a letter by series. The newer series M is taken by its shape."""
    if text[0] == "M":
        return True
    total = sum(weight * int(digit) for weight, digit in zip(_NRIC_WEIGHTS, text[1:8], strict=True))
    return _NRIC[text[0]][total % 11] == text[8]


def is_brazilian(text: str) -> bool:
    """CPF: two check digits by falling weights modulo 11; not all digits alike."""
    digits = [int(digit) for digit in text]
    for count in (9, 10):
        total = sum(digit * (count + 1 - place) for place, digit in enumerate(digits[:count]))
        if (total * 10 % 11) % 10 != digits[count]:
            return False
    return len(set(text)) > 1


def has_date(text: str, place: int, *, century: bool) -> bool:
    """Whether a day stands at `place`: YYYYMMDD, or YYMMDD of either century."""
    digits = text[place : place + (8 if century else 6)]
    years = (int(digits[:4]),) if century else (1900 + int(digits[:2]), 2000 + int(digits[:2]))
    month, day = int(digits[-4:-2]), int(digits[-2:])
    for year in years:
        try:
            dt.date(year, month, day)
        except ValueError:
            continue
        return True
    return False


def compact(text: str) -> str:
    """Letters and digits alone, in capitals."""
    return re.sub(r"[\W_]", "", text).upper()
