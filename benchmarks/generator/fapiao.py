"""Chinese VAT invoices: a framed form with buyer, items, the total in words, and seller."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.generator.bills import COUNTRIES, Bill, make_bill, make_moment
from benchmarks.generator.canvas import Canvas, Colour, Style
from benchmarks.generator.drawing import Drawing
from benchmarks.generator.fonts import FONTS, Face
from benchmarks.generator.tables import Column, Ruling, draw_table
from benchmarks.generator.truth import Language, Split
from benchmarks.generator.words import Words, words
from benchmarks.generator.writer import Writer
from docferry.document import RegionType

FORM: Colour = (130, 60, 40)
"""The brown of the printed form."""

TITLES = {
    Split.TRAIN: ("增值税电子普通发票", "增值税普通发票"),
    Split.CALIBRATE: ("电子发票（普通发票）",),
    Split.JUDGE: ("增值税专用发票", "通用机打发票"),
}


@dataclass(frozen=True, slots=True)
class Labels:
    """The form's printed words."""

    number: str
    date: str
    buyer: str
    seller: str
    tax_id: str
    address: str
    in_words: str
    in_figures: str
    signers: tuple[str, str, str]


LABELS = {
    Split.TRAIN: Labels(
        number="发票号码",
        date="开票日期",
        buyer="购买方名称",
        seller="销售方名称",
        tax_id="纳税人识别号",
        address="地址、电话",
        in_words="价税合计（大写）",
        in_figures="（小写）",
        signers=("收款人", "复核", "开票人"),
    ),
    Split.CALIBRATE: Labels(
        number="号码",
        date="填开日期",
        buyer="买方",
        seller="卖方",
        tax_id="统一社会信用代码",
        address="住所",
        in_words="合计金额大写",
        in_figures="小写",
        signers=("出纳", "审核", "经办"),
    ),
    Split.JUDGE: Labels(
        number="票据编号",
        date="日期",
        buyer="付款单位",
        seller="收款单位",
        tax_id="税务登记号",
        address="注册地址",
        in_words="总金额（大写）",
        in_figures="（数字）",
        signers=("会计", "主管", "制单"),
    ),
}
DIGITS = "零壹贰叁肆伍陆柒捌玖"


def draw_fapiao(rng: random.Random, split: Split) -> Drawing:
    """One VAT invoice, flat and clean, with its truth."""
    table, labels = words(split, Language.ZH), LABELS[split]
    country = COUNTRIES["zh"]
    width = rng.randint(1250, 1450)
    canvas = Canvas(width, round(width * rng.uniform(0.62, 0.7)) + 200)
    style = Style(FONTS[split][Face.CHINESE][0], round(width / rng.uniform(58, 64)), leading=0.9)
    margin = width * rng.uniform(0.05, 0.07)
    writer = Writer(canvas, style, margin, width - margin, width * 0.03)
    bill = make_bill(rng, country, table["goods"], count=rng.randint(1, 4), dear=3)
    fields: dict[str, str] = {}
    normalized: dict[str, str] = {}
    _title(rng, writer, labels, TITLES[split], fields, normalized)
    top = writer.y
    buyer, seller = rng.sample(table["companies"], 2)
    writer.gap(0.3)
    _party(rng, writer, table, labels, labels.buyer, buyer)
    columns = [
        Column("货物或应税劳务名称", 4),
        Column("数量", 1, "r"),
        Column("单价", 1.4, "r"),
        Column("金额", 1.5, "r"),
        Column("税率", 1, "m"),
        Column("税额", 1.3, "r"),
    ]
    writer.y = draw_table(
        canvas, style, columns, _rows(bill), x0=writer.x0, x1=writer.x1, y=writer.y, ruling=Ruling.GRID, colour=FORM
    )
    _totals(writer, bill, labels, fields, normalized)
    fields["company"] = seller
    fields["address"] = _party(rng, writer, table, labels, labels.seller, seller)
    writer.gap(0.2)
    for x in (writer.x0, writer.x1):
        canvas.upright(x, top, writer.y, thickness=2, colour=FORM)
    for y in (top, writer.y):
        canvas.rule(writer.x0, writer.x1, y, thickness=2, colour=FORM)
    writer.gap(0.4)
    with canvas.region(RegionType.TEXT):
        signers = [f"{label}：{rng.choice(table['staff'])}" for label in labels.signers]
        writer.row([(text, place, "l") for text, place in zip(signers, (0.02, 0.38, 0.74), strict=True)])
    pixels = canvas.finished(writer.y + width * 0.04)
    return Drawing(pixels, tuple(canvas.lines), tuple(canvas.regions), fields, normalized)


def _title(
    rng: random.Random,
    writer: Writer,
    labels: Labels,
    titles: tuple[str, ...],
    fields: dict[str, str],
    normalized: dict[str, str],
) -> None:
    moment = make_moment(rng)
    big = writer.style.scaled(1.7)
    title = rng.choice(titles)
    with writer.canvas.region(RegionType.TITLE):
        writer.centre(title, big)
    half = big.width(title) / 2
    middle = (writer.x0 + writer.x1) / 2
    for offset in (2, 7):
        writer.canvas.rule(middle - half, middle + half, writer.y + offset, thickness=2, colour=FORM)
    writer.gap(0.6)
    number = f"{rng.randrange(10**8):08d}"
    date = moment.strftime("%Y年%m月%d日")
    with writer.canvas.region(RegionType.TEXT):
        writer.row([(f"{labels.number}：{number}", 0, "l"), (f"{labels.date}：{date}", 1, "r")])
    writer.gap(0.4)
    fields |= {"invoice_number": number, "date": date, "currency": "¥"}
    normalized["date"] = moment.date().isoformat()


def _party(
    rng: random.Random,
    writer: Writer,
    table: Words,
    labels: Labels,
    role: str,
    name: str,
) -> str:
    """Name, tax id and address of one side; returns the address."""
    address = f"{rng.choice(table['cities'])}{rng.choice(table['streets'])}{rng.randint(1, 300)}号"
    tax_id = "91" + "".join(rng.choices("0123456789", k=15)) + rng.choice("ABCDEFGHJKLMNPQRTUWXY")
    with writer.canvas.region(RegionType.TEXT):
        for text in (f"{role}：{name}", f"{labels.tax_id}：{tax_id}", f"{labels.address}：{address}"):
            writer.row([(text, 0.015, "l")])
    writer.gap(0.3)
    return address


def _rows(bill: Bill) -> list[list[str]]:
    """One row an item and one for the sums; the items' taxes add up to the bill's."""
    country = COUNTRIES["zh"]
    net = bill.subtotal - bill.discount
    rows = []
    given = 0
    for number, item in enumerate(bill.items, 1):
        last = number == len(bill.items)
        tax = bill.tax - given if last else round(bill.tax * item.amount / bill.subtotal)
        given += tax
        rows.append(
            [
                item.name,
                str(item.quantity),
                country.amount(item.price),
                country.amount(item.amount),
                f"{bill.rate}%",
                country.amount(tax),
            ]
        )
    if bill.discount:
        rows.append(["折扣", "", "", country.amount(-bill.discount), "", ""])
    rows.append(["合计", "", "", country.amount(net, symbol=True), "", country.amount(bill.tax, symbol=True)])
    return rows


def _totals(
    writer: Writer,
    bill: Bill,
    labels: Labels,
    fields: dict[str, str],
    normalized: dict[str, str],
) -> None:
    country = COUNTRIES["zh"]
    total = country.amount(bill.total, symbol=True)
    writer.gap(0.2)
    with writer.canvas.region(RegionType.TEXT):
        writer.row(
            [
                (labels.in_words, 0.015, "l"),
                (in_words(bill.total), 0.28, "l"),
                (labels.in_figures, 0.72, "l"),
                (total, 0.98, "r"),
            ]
        )
    writer.gap(0.2)
    writer.canvas.rule(writer.x0, writer.x1, writer.y, thickness=2, colour=FORM)
    writer.gap(0.2)
    net = bill.subtotal - bill.discount
    fields |= {
        "total": total,
        "subtotal": country.amount(net, symbol=True),
        "tax": country.amount(bill.tax, symbol=True),
    }
    normalized |= {"total": f"{bill.total / 100:.2f}", "subtotal": f"{net / 100:.2f}", "tax": f"{bill.tax / 100:.2f}"}


def in_words(cents: int) -> str:
    """An amount below 100 million yuan in the capital numerals of Chinese bookkeeping.

    1234.50 is 壹仟贰佰叁拾肆元伍角整.
    """
    yuan, rest = divmod(cents, 100)
    upper, lower = divmod(yuan, 10_000)
    text = ""
    if upper:
        text += _four_digits(upper) + "万" + ("零" if 0 < lower < 1000 else "")
    text += _four_digits(lower) if lower or not upper else ""
    text = f"{text}元" if yuan else ""
    jiao, fen = divmod(rest, 10)
    if not rest:
        return f"{text or '零元'}整"
    if jiao:
        text += f"{DIGITS[jiao]}角"
    elif yuan:
        text += "零"
    return text + (f"{DIGITS[fen]}分" if fen else "整")


def _four_digits(number: int) -> str:
    if number == 0:
        return DIGITS[0]
    text, pending = "", False
    for unit, name in ((1000, "仟"), (100, "佰"), (10, "拾"), (1, "")):
        digit = number // unit % 10
        if digit:
            text += (DIGITS[0] if pending and text else "") + DIGITS[digit] + name
            pending = False
        else:
            pending = True
    return text
