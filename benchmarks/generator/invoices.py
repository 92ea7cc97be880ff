"""Invoices on a full page: sender, addressee, a table of items, sums that add up. English, five countries."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace

from benchmarks.generator.bills import COUNTRIES, Bill, Country, make_bill, make_moment, place, short_month
from benchmarks.generator.canvas import BLACK, Canvas, Colour, Style
from benchmarks.generator.drawing import Drawing
from benchmarks.generator.fapiao import draw_fapiao
from benchmarks.generator.fonts import FONTS, Face
from benchmarks.generator.receipts import company_name, phone
from benchmarks.generator.tables import Column, Ruling, draw_table
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import Words, words
from benchmarks.generator.writer import Writer
from docferry.document import RegionType


@dataclass(frozen=True, slots=True)
class _Look:
    """What differs between the splits' invoices."""

    titles: tuple[str, ...]
    number: str
    date: str
    due: str
    addressee: str
    heads: tuple[str, str, str, str]
    total: str
    rulings: tuple[Ruling, ...]
    sender_right: bool
    colours: tuple[Colour, ...]
    note: str


LOOKS: dict[Split, _Look] = {
    Split.TRAIN: _Look(
        ("INVOICE", "Tax Invoice"),
        "Invoice No",
        "Date",
        "Due Date",
        "Bill To",
        ("Description", "Qty", "Unit Price", "Amount"),
        "Total",
        (Ruling.GRID,),
        False,
        (BLACK, (60, 60, 60)),
        "Payment within 30 days of the date of this invoice.",
    ),
    Split.CALIBRATE: _Look(
        ("Invoice", "SALES INVOICE"),
        "Ref",
        "Issued on",
        "Payable by",
        "Customer",
        ("Item", "Units", "Rate", "Sum"),
        "Amount Due",
        (Ruling.BAR,),
        True,
        ((40, 60, 110), (120, 40, 40)),
        "Please quote our reference with your transfer.",
    ),
    Split.JUDGE: _Look(
        ("COMMERCIAL INVOICE", "Service Invoice"),
        "Document No.",
        "Invoice date",
        "Pay before",
        "Sold to",
        ("Particulars", "Quantity", "Price", "Total"),
        "Balance Due",
        (Ruling.LINES, Ruling.BOOK),
        False,
        ((20, 90, 80), BLACK),
        "Ownership passes once the account is settled in full.",
    ),
}


def draw_invoice(rng: random.Random, split: Split, language: Language) -> Drawing:
    """One invoice, flat and clean, with its truth; in Chinese it is a VAT invoice."""
    if language is Language.ZH:
        return draw_fapiao(rng, split)
    table, look = words(split, language), LOOKS[split]
    country = COUNTRIES[rng.choices(("my", "sg", "uk", "us", "de"), (30, 15, 20, 20, 15))[0]]
    # A German invoice in English: an international business writes its prices with a decimal point.
    country = replace(country, comma=False)
    width = rng.randint(1150, 1350)
    canvas = Canvas(width, round(width * 1.414))
    face = rng.choice((Face.SANS, Face.SANS, Face.SERIF))
    style = Style(rng.choice(FONTS[split][face]), round(width / rng.uniform(52, 60)))
    margin = width * rng.uniform(0.07, 0.1)
    writer = Writer(canvas, style, margin, width - margin, width * rng.uniform(0.06, 0.1))
    colour = rng.choice(look.colours)
    items = [*table["items"]["hardware"], *table["items"]["services"], *table["items"]["grocery"]]
    bill = make_bill(
        rng, replace(country, included=False, rounding=1), items, count=rng.randint(3, 12), dear=rng.choice((1, 4, 12))
    )
    fields: dict[str, str] = {}
    normalized: dict[str, str] = {}
    _sender(rng, writer, table, country, look, colour, fields)
    _particulars(rng, writer, table, country, look, fields, normalized)
    writer.gap(1)
    _items(rng, writer, bill, country, look, colour)
    _sums(writer, bill, country, look, fields, normalized)
    _closing(rng, writer, table, look)
    return Drawing(canvas.finished(canvas.image.height), tuple(canvas.lines), tuple(canvas.regions), fields, normalized)


def _sender(
    rng: random.Random,
    writer: Writer,
    table: Words,
    country: Country,
    look: _Look,
    colour: Colour,
    fields: dict[str, str],
) -> None:
    company = company_name(rng, table, country)
    street, town = place(rng, table, country)
    big = replace(writer.style.scaled(1.7, bold=True), colour=colour)
    anchor, x = ("r", 1.0) if look.sender_right else ("l", 0.0)
    other, across = ("l", 0.0) if look.sender_right else ("r", 1.0)
    big = big.scaled(min(1.0, writer.width * 0.6 / big.width(company)))
    top = writer.y
    with writer.canvas.region(RegionType.TITLE):
        writer.row([(company, x, anchor)], big)
    fields["company"] = company
    with writer.canvas.region(RegionType.TEXT):
        for text in (street, town):
            writer.row([(text, x, anchor)])
        writer.row([(f"Phone {phone(rng, country)}", x, anchor)])
    fields["address"] = f"{street} {town}"
    below, writer.y = writer.y, top
    title = replace(writer.style.scaled(1.4, bold=True), colour=BLACK)
    name = rng.choice(look.titles)
    title = title.scaled(min(1.0, writer.width * 0.34 / title.width(name)))
    with writer.canvas.region(RegionType.TITLE):
        writer.row([(name, across, other)], title)
    writer.y = below
    writer.gap(1)


def _particulars(
    rng: random.Random,
    writer: Writer,
    table: Words,
    country: Country,
    look: _Look,
    fields: dict[str, str],
    normalized: dict[str, str],
) -> None:
    """The addressee on one side; number and dates on the other."""
    moment = make_moment(rng)
    due = moment + dt.timedelta(days=rng.choice((14, 30, 45)))
    pattern = rng.choice(country.dates)
    number = rng.choice(
        (
            f"INV-{rng.randrange(10**5):05d}",
            f"{moment.year}/{rng.randrange(10**4):04d}",
            f"{rng.randrange(10**6, 10**7)}",
        )
    )
    street, town = place(rng, table, country)
    left = Writer(writer.canvas, writer.style, writer.x0, writer.x0 + writer.width * 0.5, writer.y)
    with writer.canvas.region(RegionType.TEXT):
        left.row([(f"{look.addressee}:", 0, "l")], writer.style.scaled(1, bold=True))
        for text in (company_name(rng, table, country), street, town):
            left.row([(text, 0, "l")])
    right = Writer(writer.canvas, writer.style, writer.x0 + writer.width * 0.58, writer.x1, writer.y)
    issued, payable = short_month(moment, pattern), short_month(due, pattern)
    with writer.canvas.region(RegionType.TEXT):
        for label, value in ((look.number, number), (look.date, issued), (look.due, payable)):
            right.row([(label, 0, "l"), (value, 1, "r")])
    fields |= {"invoice_number": number, "date": issued, "due_date": payable}
    normalized |= {"date": moment.date().isoformat(), "due_date": due.date().isoformat()}
    writer.y = max(left.y, right.y)


def _items(rng: random.Random, writer: Writer, bill: Bill, country: Country, look: _Look, colour: Colour) -> None:
    heads = look.heads
    numbered = rng.random() < 0.4
    columns = [Column(heads[0], 5), Column(heads[1], 1.2, "r"), Column(heads[2], 1.6, "r"), Column(heads[3], 1.7, "r")]
    rows = [
        [item.name, str(item.quantity), country.amount(item.price), country.amount(item.amount)] for item in bill.items
    ]
    if numbered:
        columns.insert(0, Column("No", 0.6, "m"))
        rows = [[str(number), *row] for number, row in enumerate(rows, 1)]
    writer.y = draw_table(
        writer.canvas,
        writer.style,
        columns,
        rows,
        x0=writer.x0,
        x1=writer.x1,
        y=writer.y,
        ruling=rng.choice(look.rulings),
        colour=colour,
    )
    writer.gap(0.6)


def _sums(
    writer: Writer, bill: Bill, country: Country, look: _Look, fields: dict[str, str], normalized: dict[str, str]
) -> None:
    rows = [("Subtotal", bill.subtotal)]
    if bill.discount:
        rows.append(("Discount", -bill.discount))
    rows.append((f"{country.tax} {bill.rate}%", bill.tax))
    right = Writer(writer.canvas, writer.style, writer.x0 + writer.width * 0.55, writer.x1, writer.y)
    with writer.canvas.region(RegionType.TEXT):
        for label, cents in rows:
            right.row([(label, 0, "l"), (country.amount(cents), 1, "r")])
        right.rule()
        total = country.amount(bill.total, symbol=True)
        right.row([(look.total, 0, "l"), (total, 1, "r")], writer.style.scaled(1.15, bold=True))
    fields |= {
        "subtotal": country.amount(bill.subtotal),
        "tax": country.amount(bill.tax),
        "total": total,
        "currency": country.symbol,
    }
    normalized |= {
        "subtotal": f"{bill.subtotal / 100:.2f}",
        "tax": f"{bill.tax / 100:.2f}",
        "total": f"{bill.total / 100:.2f}",
    }
    writer.y = right.y


def _closing(rng: random.Random, writer: Writer, table: Words, look: _Look) -> None:
    writer.gap(1.5)
    with writer.canvas.region(RegionType.TEXT):
        writer.paragraph(look.note)
        writer.paragraph(f"Account {rng.randrange(10**9):010d}, reference as above.")
    writer.gap(1)
    with writer.canvas.region(RegionType.TEXT):
        writer.row([(f"Prepared by {rng.choice(table['staff'])}", 0, "l")])
