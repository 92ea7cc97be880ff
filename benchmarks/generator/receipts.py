"""Till receipts in English (five countries) and Chinese."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.generator.bills import (
    COUNTRIES,
    Bill,
    Country,
    make_bill,
    make_moment,
    place,
    short_month,
)
from benchmarks.generator.canvas import Canvas, Style
from benchmarks.generator.drawing import Drawing
from benchmarks.generator.fonts import FONTS, Face
from benchmarks.generator.layouts import HEADS, ITEM_LAYOUTS, ItemLayout, item_texts
from benchmarks.generator.phrases import RECEIPT_PHRASES, Phrases
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import Words, words
from benchmarks.generator.writer import Cell, Writer
from docferry.document import RegionType


@dataclass(frozen=True, slots=True)
class _Context:
    rng: random.Random
    words: Words
    country: Country
    phrases: Phrases
    layout: ItemLayout
    capitals: bool

    def say(self, text: str) -> str:
        return text.upper() if self.capitals else text


def draw_receipt(rng: random.Random, split: Split, language: Language) -> Drawing:
    """One receipt, flat and clean, with its truth."""
    chinese = language is Language.ZH
    code = "zh" if chinese else rng.choices(("my", "sg", "uk", "us", "de"), (54, 14, 12, 12, 8))[0]
    context = _Context(
        rng,
        words(split, language),
        COUNTRIES[code],
        RECEIPT_PHRASES[split][code if code in {"de", "zh"} else "en"],
        rng.choice(ITEM_LAYOUTS[split]),
        capitals=not chinese and code != "de" and rng.random() < 0.45,
    )
    width = rng.randint(460, 940)
    margin = width * rng.uniform(0.05, 0.11)
    style = _style(rng, split, language, width - 2 * margin)
    canvas = Canvas(width, 6000)
    writer = Writer(canvas, style, margin, width - margin, width * rng.uniform(0.05, 0.2))
    fields: dict[str, str] = {}
    normalized: dict[str, str] = {}
    bill = _bill(context)
    _head(context, writer, fields)
    _meta(context, writer, fields, normalized)
    writer.rule(rng.choice(("-", "", ".", "=")))
    _items(context, writer, bill)
    writer.rule(rng.choice(("-", "", ".")))
    _sums(context, writer, bill, fields, normalized)
    if not chinese and rng.random() < 0.5:
        _tax_summary(context, writer, bill)
    _foot(context, writer)
    pixels = canvas.finished(writer.y + width * rng.uniform(0.04, 0.2))
    return Drawing(pixels, tuple(canvas.lines), tuple(canvas.regions), fields, normalized)


def _style(rng: random.Random, split: Split, language: Language, width: float) -> Style:
    if language is Language.ZH:
        font = FONTS[split][Face.CHINESE][0]
        return Style(
            font, round(width / rng.uniform(16, 21)), tall=rng.uniform(1.0, 1.25), leading=rng.uniform(0.85, 1.0)
        )
    face = rng.choices((Face.MONO, Face.BITMAP, Face.SANS, Face.SERIF), (50, 22, 23, 5))[0]
    font = rng.choice(FONTS[split][face])
    if face in {Face.MONO, Face.BITMAP}:
        characters, tall, narrow = rng.uniform(34, 46), rng.uniform(1.0, 1.35), rng.uniform(0.82, 1.0)
    else:
        characters, tall, narrow = rng.uniform(36, 50), rng.uniform(0.95, 1.15), rng.uniform(0.85, 1.0)
    trial = Style(font, 100)
    size = 100 * width / characters / (trial.width("abcdef0123456789") / 16) / narrow
    return Style(font, round(size), narrow=narrow, tall=tall, leading=rng.uniform(0.95, 1.15))


def _bill(context: _Context) -> Bill:
    rng, table = context.rng, context.words
    if context.country.code == "zh":
        return make_bill(rng, COUNTRIES["zh"], table[rng.choice(("grocery", "food"))], count=rng.randint(1, 8))
    if context.country.code == "de":
        return make_bill(rng, context.country, table["de"]["items"], count=rng.randint(1, 8), dear=0.2)
    shelf = rng.choice(("grocery", "food", "hardware"))
    names = table["items"][shelf]
    sizes = (
        ("", "", " 500G", " 1.5L", " 250ML", " 2KG", " 6S", " 120GM", " 10PCS")
        if shelf == "grocery"
        else ("", "", " (L)")
    )
    return make_bill(
        rng, context.country, [name + rng.choice(sizes) for name in names], count=rng.choice((1, 2, 3, 4, 5, 6, 8, 12))
    )


def _head(context: _Context, writer: Writer, fields: dict[str, str]) -> None:
    rng, table, phrases = context.rng, context.words, context.phrases
    chinese = context.country.code == "zh"
    company = company_name(rng, table, context.country)
    if chinese:
        lines = [f"{rng.choice(table['cities'])}{rng.choice(table['streets'])}{rng.randint(1, 300)}号"]
    else:
        street, town = place(rng, table, context.country)
        lines = [f"{street},", f"{town}"] if rng.random() < 0.5 else [f"{street}, {town}"]
    big = rng.uniform(1.1, 1.7) if rng.random() < 0.5 else 1.0
    with writer.canvas.region(RegionType.TITLE):
        printed = writer.centre(context.say(company), writer.style.scaled(big, bold=rng.random() < 0.4))
    fields["company"] = _joined(printed, chinese)
    printed = []
    with writer.canvas.region(RegionType.TEXT):
        if not chinese and rng.random() < 0.6:
            writer.centre(f"({rng.randrange(10**5, 10**7)}-{rng.choice('ABDHKMPTVWX')})")
        for line in lines:
            printed += writer.centre(context.say(line))
        if rng.random() < 0.8:
            writer.centre(context.say(f"{phrases.phone} {phone(rng, context.country)}"))
        if rng.random() < 0.6:
            writer.centre(context.say(f"{phrases.register} {rng.randrange(10**11):012d}"))
    fields["address"] = _joined(printed, chinese)
    writer.gap(rng.uniform(0.3, 1))
    if rng.random() < 0.8:
        with writer.canvas.region(RegionType.TITLE):
            scale = rng.choice((1.0, 1.0, 1.25))
            writer.centre(context.say(rng.choice(phrases.titles)), writer.style.scaled(scale, bold=rng.random() < 0.4))
        writer.gap(rng.uniform(0.2, 0.8))


def company_name(rng: random.Random, table: Words, country: Country) -> str:
    """A merchant's name in the manner of its country."""
    name, trade = rng.choice(table["merchants"]), rng.choice(table["trades"])
    endings = {
        "my": ("Sdn Bhd", "Sdn. Bhd.", "(M) Sdn Bhd", "Enterprise", ""),
        "sg": ("Pte Ltd", "Pte. Ltd.", ""),
        "uk": ("Ltd", "& Sons", ""),
        "us": ("Inc.", "LLC", ""),
        "de": ("GmbH", "e.K.", ""),
    }
    if country.code == "zh":
        return f"{name}{trade}"
    return f"{name} {trade} {rng.choice(endings[country.code])}".strip()


def phone(rng: random.Random, country: Country) -> str:
    """A telephone number in the manner of its country."""
    digits = "".join(rng.choices("0123456789", k=8))
    return {
        "my": f"0{rng.randint(3, 9)}-{digits[:4]} {digits[4:]}",
        "sg": f"6{digits[:3]} {digits[4:]}",
        "uk": f"01{digits[:3]} {digits[2:]}",
        "us": f"({rng.randint(201, 989)}) {digits[:3]}-{digits[4:]}",
        "de": f"0{digits[:3]}/{digits[3:]}",
        "zh": f"0{rng.randint(20, 89)}-{digits}",
    }[country.code]


def _meta(context: _Context, writer: Writer, fields: dict[str, str], normalized: dict[str, str]) -> None:
    rng, phrases = context.rng, context.phrases
    moment = make_moment(rng)
    date = context.say(short_month(moment, rng.choice(context.country.dates)))
    clock = moment.strftime(rng.choice(("%H:%M", "%H:%M:%S")))
    fields["date"], normalized["date"] = date, moment.date().isoformat()
    number = rng.choice(
        (
            f"{rng.randrange(10**6):06d}",
            f"CS{rng.randrange(10**7):07d}",
            f"{rng.randint(1, 20):02d}-{rng.randrange(10**6)}",
        )
    )
    staff = context.say(rng.choice(context.words["staff"]))
    fields["receipt_number"] = number
    rows = [
        (context.say(phrases.number), number),
        (context.say(phrases.date), f"{date} {clock}"),
        (context.say(phrases.cashier), staff),
    ]
    rng.shuffle(rows)
    meta = rng.choice(phrases.meta)
    with writer.canvas.region(RegionType.TEXT):
        for label, value in rows:
            writer.row(_meta_cells(meta, label, value))
    writer.gap(0.3)


def _meta_cells(meta: str, label: str, value: str) -> list[Cell]:
    if meta == "pairs":
        return [(label, 0, "l"), (value, 1, "r")]
    if meta == "colon":
        return [(label, 0, "l"), (f": {value}", 0.32, "l")]
    if meta == "right":
        return [(f"{label}: {value}", 1, "r")]
    return [(f"{label}: {value}", 0, "l")]


def _items(context: _Context, writer: Writer, bill: Bill) -> None:
    layout, country = context.layout, context.country
    translated = HEADS.get(country.code, {})
    head = [(context.say(translated.get(text, text)), x, anchor) for text, x, anchor in layout.head]
    table = [[text for text, _, _ in head]] if head else []
    with writer.canvas.region(RegionType.TABLE):
        if head:
            writer.row(head, writer.style.scaled(1, bold=context.rng.random() < 0.3))
            writer.rule(context.rng.choice(("-", "", ".")))
        for number, item in enumerate(bill.items, 1):
            texts = {key: context.say(value) for key, value in item_texts(item, number, country).items()}
            for row in layout.rows:
                fitted = writer.fitted([(texts[key], x, anchor) for key, x, anchor in row])
                texts |= {key: text for (key, _, _), (text, _, _) in zip(row, fitted, strict=True)}
                writer.row(fitted)
            table.append([" ".join(texts[key] for key in column) for column in layout.columns])
    writer.canvas.set_table(table, head=bool(head))


def _sums(context: _Context, writer: Writer, bill: Bill, fields: dict[str, str], normalized: dict[str, str]) -> None:
    rng, country, phrases = context.rng, context.country, context.phrases
    symbols = rng.random() < 0.4
    chinese = country.code == "zh"
    rows: list[tuple[str, int]] = []
    if bill.discount or not country.included or rng.random() < 0.5:
        rows.append((phrases.subtotal, bill.subtotal))
    if bill.discount:
        rows.append((phrases.discount, -bill.discount))
    if not country.included:
        label = f"{country.tax} {bill.rate}%" if not chinese else f"{country.tax}({bill.rate}%)"
        rows.append((label, bill.tax))
        fields["tax"] = country.amount(bill.tax, symbol=symbols)
        normalized["tax"] = f"{bill.tax / 100:.2f}"
    if country.rounding > 1 and (bill.rounding or rng.random() < 0.3):
        rows.append((phrases.rounding, bill.rounding))
    right = rng.choice(phrases.sums) == "right"
    total_label = context.say(rng.choice(phrases.total).replace("(RM)", f"({country.symbol})"))
    big = writer.style.scaled(rng.choice((1.0, 1.0, 1.2, 1.5)), bold=rng.random() < 0.4)
    with writer.canvas.region(RegionType.TEXT):
        for label, cents in rows:
            writer.row(_sum_cells(context.say(label), country.amount(cents, symbol=symbols), right=right))
        total = country.amount(bill.total, symbol=symbols)
        writer.row(_sum_cells(total_label, total, right=right), big)
        fields["total"], normalized["total"] = total, f"{bill.total / 100:.2f}"
        if rng.random() < 0.8:
            for label, cents in ((phrases.cash, bill.paid), (phrases.change, bill.change)):
                writer.row(_sum_cells(context.say(label), country.amount(cents, symbol=symbols), right=right))
    fields["currency"] = country.symbol


def _sum_cells(label: str, amount: str, *, right: bool) -> list[Cell]:
    if right:
        return [(f"{label} :", 0.7, "r"), (amount, 1, "r")]
    return [(label, 0, "l"), (amount, 1, "r")]


def _tax_summary(context: _Context, writer: Writer, bill: Bill) -> None:
    country = context.country
    writer.gap(0.5)
    net = country.amount(bill.taxed - bill.tax)
    rows = [
        [
            f"{country.tax} {'Summe' if country.comma else 'Summary'}",
            f"{'Netto' if country.comma else 'Amount'}({country.symbol})",
            f"{country.tax}({country.symbol})",
        ],
        [f"S @ {bill.rate}%", net, country.amount(bill.tax)],
    ]
    rows = [[context.say(text) for text in row] for row in rows]
    with writer.canvas.region(RegionType.TABLE):
        for left, middle, last in rows:
            writer.row([(left, 0, "l"), (middle, 0.7, "r"), (last, 1, "r")])
    writer.canvas.set_table(rows)


def _foot(context: _Context, writer: Writer) -> None:
    rng = context.rng
    german = context.country.code == "de"
    slogans = context.words["de"]["slogans"] if german else context.words["slogans"]
    writer.gap(rng.uniform(0.5, 1.5))
    with writer.canvas.region(RegionType.TEXT):
        for slogan in rng.sample(slogans, rng.randint(1, min(3, len(slogans)))):
            decoration = rng.choice(("{}", "{}", "*{}*", "{}!"))
            writer.centre(decoration.format(context.say(slogan)))
    if rng.random() < 0.35:
        writer.gap(0.4)
        with writer.canvas.region(RegionType.TEXT):
            writer.barcode(rng, f"{rng.randrange(10**12):012d}")


def _joined(lines: list[str], chinese: bool) -> str:
    return ("" if chinese else " ").join(lines)
