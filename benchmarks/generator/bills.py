"""What was bought, and sums that add up: money in whole cents, five ways of writing it."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

from benchmarks.generator.words import Words


@dataclass(frozen=True, slots=True)
class Country:
    """How a country writes money and dates, and taxes sales.

    Attributes:
        rates: Possible tax rates in percent.
        included: Whether the printed prices hold the tax already.
        rounding: The total is rounded to a multiple of this many cents.
    """

    code: str
    symbol: str
    tax: str
    rates: tuple[int, ...]
    included: bool
    dates: tuple[str, ...]
    rounding: int = 1
    comma: bool = False

    def amount(self, cents: int, *, symbol: bool = False) -> str:
        """`1,234.50`, with its currency if asked for."""
        sign, whole, rest = "-" if cents < 0 else "", abs(cents) // 100, abs(cents) % 100
        grouped = f"{whole:,}.{rest:02d}"
        if self.comma:
            grouped = grouped.replace(",", "_").replace(".", ",").replace("_", ".")
        if not symbol:
            return sign + grouped
        if self.comma:
            return f"{sign}{grouped} {self.symbol}"
        return f"{sign}{self.symbol}{' ' if self.symbol.isalpha() else ''}{grouped}"


COUNTRIES: dict[str, Country] = {
    "my": Country(
        "my", "RM", "GST", (6,), included=True, dates=("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y", "%d %b %Y"), rounding=5
    ),
    "sg": Country("sg", "S$", "GST", (7, 8, 9), included=True, dates=("%d/%m/%Y", "%d %b %Y", "%d-%m-%y")),
    "uk": Country("uk", "£", "VAT", (20, 5), included=True, dates=("%d/%m/%Y", "%d/%m/%y", "%d %b %Y")),
    "us": Country("us", "$", "Tax", (6, 7, 8), included=False, dates=("%m/%d/%Y", "%m/%d/%y", "%b %d, %Y")),
    "de": Country("de", "EUR", "MwSt", (7, 19), included=True, dates=("%d.%m.%Y", "%d.%m.%y"), comma=True),
    "zh": Country("zh", "¥", "税额", (6, 9, 13), included=False, dates=("%Y-%m-%d", "%Y年%m月%d日", "%Y/%m/%d")),
}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a bill; `price` in cents for one."""

    name: str
    code: str
    quantity: int
    price: int

    @property
    def amount(self) -> int:
        """Price times quantity, cents."""
        return self.quantity * self.price


@dataclass(frozen=True, slots=True)
class Bill:
    """Items and the sums under them, all in cents.

    `total = subtotal - discount + (0 if included else tax) + rounding`, `change = paid - total`.
    """

    items: tuple[Item, ...]
    subtotal: int
    discount: int
    rate: int
    tax: int
    rounding: int
    total: int
    paid: int

    @property
    def change(self) -> int:
        """What goes back to the customer, cents."""
        return self.paid - self.total

    @property
    def taxed(self) -> int:
        """The total before rounding, cents."""
        return self.total - self.rounding


def make_bill(rng: random.Random, country: Country, names: list[str], *, count: int, dear: float = 1.0) -> Bill:
    """A bill of `count` of the `names`; `dear` scales its prices."""
    chosen = rng.sample(names, min(count, len(names)))
    items = tuple(_item(rng, name, dear) for name in chosen)
    subtotal = sum(item.amount for item in items)
    discount = subtotal // 10 if rng.random() < 0.15 else 0
    rate = rng.choice(country.rates)
    net = subtotal - discount
    tax = round(net * rate / (100 + rate)) if country.included else round(net * rate / 100)
    taxed = net + (0 if country.included else tax)
    total = round(taxed / country.rounding) * country.rounding
    note = rng.choice((500, 1000, 5000, 10000))
    paid = total if rng.random() < 0.3 else -(-total // note) * note
    return Bill(items, subtotal, discount, rate, tax, total - taxed, total, paid)


def _item(rng: random.Random, name: str, dear: float) -> Item:
    cents = rng.choice((0, 50, 90, 95, 99, 80, 45, 20, rng.randrange(100)))
    price = max(20, round((rng.randint(1, 25) if rng.random() < 0.9 else rng.randint(25, 90)) * dear) * 100 + cents)
    quantity = rng.choices((1, 2, 3, 4, 6, 12), (60, 18, 8, 6, 5, 3))[0]
    code = str(rng.randrange(10**6, 10**7)) if rng.random() < 0.5 else f"95{rng.randrange(10**11):011d}"
    return Item(name, code, quantity, price)


def make_moment(rng: random.Random) -> dt.datetime:
    """A time of sale in opening hours."""
    day = dt.date(2015, 1, 1) + dt.timedelta(days=rng.randrange(365 * 11))
    return dt.datetime.combine(day, dt.time(rng.randint(8, 21), rng.randrange(60), rng.randrange(60)))


def place(rng: random.Random, table: Words, country: Country) -> tuple[str, str]:
    """Street with number, and town, as one would print them."""
    region = table[country.code]
    street, number = rng.choice(region["streets"]), rng.randint(1, 240)
    if country.code == "my":
        number_text = rng.choice((f"No. {number}", f"{number}", f"Lot {number}"))
        street_line = f"{number_text}, {street} {rng.randint(1, 30)}/{rng.randint(1, 30)}"
    elif country.code == "de":
        street_line = f"{street} {number}"
    elif country.code == "sg":
        street_line = f"Blk {number} {street} {rng.randint(1, 80)} #{rng.randint(1, 4):02d}-{rng.randint(1, 99):02d}"
    else:
        street_line = f"{number} {street}"
    return street_line, rng.choice(region["towns"])


def short_month(moment: dt.datetime, pattern: str) -> str:
    """`moment` written by `pattern`, with English month names whatever the locale."""
    names = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return moment.strftime(pattern.replace("%b", names[moment.month - 1]))
