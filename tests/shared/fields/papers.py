"""Small documents for the tests, typed as columns of text. All merchants, people and places are invented."""

from __future__ import annotations

from docferry.document import Document, Line, Page, Region, RegionType

_ROW = 30.0
_GLYPH = 11.0
WIDTH, HEIGHT = 900, 1400

Spot = tuple[float, str]
"""Left edge in pixels, text."""


def paper(*rows: str | tuple[Spot, ...], score: float = 0.99, confidence: float | None = None) -> Document:
    """One page; a plain string is a row, `|` in it parts boxes that start 300 px from each other, "" is a gap."""
    lines: list[Line] = []
    for number, row in enumerate(rows):
        spots = row if isinstance(row, tuple) else _spots(row)
        for left, text in spots:
            lines.append(line(f"r0.l{len(lines)}", text, left, 20 + number * _ROW, score=score, confidence=confidence))
    return Document((Page(WIDTH, HEIGHT, (Region("r0", RegionType.TEXT, (0, 0, 1, 1), 0, lines=tuple(lines)),)),))


def line(
    name: str,
    text: str,
    left: float,
    top: float,
    *,
    height: float = 22.0,
    score: float = 0.99,
    confidence: float | None = None,
) -> Line:
    """One line at a place in pixels; Chinese glyphs are twice as wide."""
    width = sum(_GLYPH * (2 if glyph > "\u2e80" else 1) for glyph in text)
    x0, y0, x1, y1 = left / WIDTH, top / HEIGHT, (left + width) / WIDTH, (top + height) / HEIGHT
    return Line(name, text, ((x0, y0), (x1, y0), (x1, y1), (x0, y1)), score, confidence)


def _spots(row: str) -> tuple[Spot, ...]:
    return tuple((30 + 300 * at, part.strip()) for at, part in enumerate(row.split("|")) if part.strip())


CAFE = (
    "BLUE HERON CAFE SDN BHD",
    "(123456-X)",
    "NO. 7, JALAN TIGA PELITA,",
    "TAMAN EMBUN, 43999 KOTA CONTOH,",
    "SELANGOR.",
    "TEL: 03-5550 1234",
    "TAX INVOICE",
    "INVOICE NO: A-20417",
    "DATE: 14/09/2018 13:05:22",
    "ITEM | QTY | AMOUNT",
    "KAYA TOAST | 2 | 8.40",
    "FLAT WHITE | 1 | 9.50",
    "SUBTOTAL | | 17.90",
    "GST 6% | | 1.07",
    "TOTAL | | RM 18.97",
    "ROUNDING ADJ | | -0.02",
    "ROUNDED TOTAL | | RM 18.95",
    "CASH | | 20.00",
    "CHANGE | | 1.05",
    "THANK YOU, PLEASE COME AGAIN",
)

NOODLES = (
    "福满楼小面馆",
    "地址:云川市青石区槐花路18号",
    "电话:020-55501234",
    "单号:202403150087",
    "日期:2024年3月15日 12:31",
    "品名 | 数量 | 金额",
    "牛肉面 | 2 | 36.00",
    "酸梅汤 | 1 | 8.00",
    "合计 | | 44.00",
    "优惠 | | -4.00",
    "应付 | | ¥40.00",
    "微信支付 | | 40.00",
    "谢谢惠顾",
)

VAT_INVOICE = (
    ((300.0, "云川增值税电子普通发票"),),
    ((30.0, "发票代码:051009900211"), (520.0, "发票号码:70654321")),
    ((520.0, "开票日期:2023年11月05日"),),
    ((30.0, "购买方"), (120.0, "名称:长河师范学校")),
    ((120.0, "纳税人识别号:12510000450999578Y"),),
    ((30.0, "货物名称"), (420.0, "金额"), (600.0, "税率"), (740.0, "税额")),
    ((30.0, "*文具*笔记本"), (420.0, "100.00"), (600.0, "13%"), (740.0, "13.00")),
    ((30.0, "合计"), (420.0, "¥100.00"), (740.0, "¥13.00")),
    ((30.0, "价税合计(大写)"), (220.0, "壹佰壹拾叁圆整"), (520.0, "(小写)¥113.00")),
    ((30.0, "销售方"), (120.0, "名称:青禾文具(云川)有限公司")),
    ((120.0, "地址、电话:云川市北港区明德路9号 020-55507788"),),
)

US_INVOICE = (
    ((30.0, "Larkspur Tools, Inc."), (600.0, "INVOICE")),
    ((30.0, "4120 Quarry Road, Suite 9"),),
    ((30.0, "Millbrook, OR 97999"),),
    "",
    ((30.0, "Bill To:"), (520.0, "Invoice No: LT-00481")),
    ((30.0, "Fennel & Daughters LLC"), (520.0, "Invoice Date: 03/04/2023")),
    ((30.0, "88 Canal Street"), (520.0, "Due Date: 04/03/2023")),
    ((30.0, "Ashford, OR 97998"),),
    "",
    ((30.0, "Description"), (420.0, "Qty"), (560.0, "Unit Price"), (740.0, "Amount")),
    ((30.0, "Torque wrench"), (420.0, "2"), (560.0, "$60.00"), (740.0, "$120.00")),
    ((30.0, "Hex key set"), (420.0, "1"), (560.0, "$30.00"), (740.0, "$30.00")),
    ((560.0, "Subtotal"), (740.0, "$150.00")),
    ((560.0, "Sales Tax"), (740.0, "$12.00")),
    ((560.0, "Total"), (740.0, "$162.00")),
)

TWO_COLUMNS = (
    ((30.0, "On the keeping of small boats in winter"),),
    *(
        ((30.0, f"the hull rests on two beams, {n} of them new"), (470.0, f"and a total of {n}.50 metres of rope is"))
        for n in range(3, 20)
    ),
)
