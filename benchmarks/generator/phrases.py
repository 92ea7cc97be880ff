"""The fixed words of a receipt, by split and by language (`de` stands for German tills)."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.generator.truth import Split


@dataclass(frozen=True, slots=True)
class Phrases:
    """Labels as a till prints them; `meta` says how label and value stand: `pairs`, `colon`, `inline` or `right`."""

    titles: tuple[str, ...]
    number: str
    date: str
    cashier: str
    phone: str
    register: str
    subtotal: str
    discount: str
    rounding: str
    total: tuple[str, ...]
    cash: str
    change: str
    meta: tuple[str, ...]
    sums: tuple[str, ...]


RECEIPT_PHRASES: dict[Split, dict[str, Phrases]] = {
    Split.TRAIN: {
        "en": Phrases(
            ("Tax Invoice", "Cash Bill", "-Invoice-"),
            "Receipt No",
            "Date",
            "Cashier",
            "Tel:",
            "Co. Reg:",
            "Subtotal",
            "Discount",
            "Rounding Adjustment",
            ("Total", "TOTAL", "Total Incl."),
            "Cash",
            "Change",
            ("colon", "inline"),
            ("wide",),
        ),
        "de": Phrases(
            ("Rechnung", "Kassenbon"),
            "Bon-Nr.",
            "Datum",
            "Kasse",
            "Tel.",
            "USt-IdNr. DE",
            "Zwischensumme",
            "Rabatt",
            "Rundung",
            ("SUMME",),
            "BAR",
            "Rückgeld",
            ("colon",),
            ("wide",),
        ),
        "zh": Phrases(
            ("购物小票", "结账单"),
            "单号",
            "日期",
            "收银员",
            "电话：",
            "税号：",
            "小计",
            "优惠",
            "抹零",
            ("合计", "应收"),
            "现金",
            "找零",
            ("colon",),
            ("wide",),
        ),
    },
    Split.CALIBRATE: {
        "en": Phrases(
            ("Official Receipt", "Sales Slip", "Invoice"),
            "Bill #",
            "Sale Date",
            "Served by",
            "Phone",
            "Reg.No.",
            "Sub Total",
            "Less",
            "Rounding",
            ("Grand Total", "Amount Due", "Nett Total"),
            "Tendered",
            "Balance",
            ("pairs", "right"),
            ("right",),
        ),
        "de": Phrases(
            ("Quittung", "Beleg"),
            "Beleg",
            "Verkauf am",
            "Bediener",
            "Telefon",
            "St.-Nr.",
            "Summe netto",
            "Nachlass",
            "Ausgleich",
            ("ZU ZAHLEN",),
            "Gegeben",
            "Zurück",
            ("pairs",),
            ("right",),
        ),
        "zh": Phrases(
            ("销售单", "消费明细"),
            "流水号",
            "时间",
            "服务员",
            "联系电话：",
            "登记号：",
            "消费金额",
            "折扣",
            "零头",
            ("总计", "实收"),
            "付款",
            "找回",
            ("pairs",),
            ("right",),
        ),
    },
    Split.JUDGE: {
        "en": Phrases(
            ("Simplified Tax Invoice", "Receipt", "Sales Receipt"),
            "Inv No.",
            "Dt",
            "Operator",
            "T:",
            "GST ID No:",
            "Sub-Total",
            "Disc.",
            "Rounding Adj",
            ("Total Sales", "Total Payable", "Total (RM)"),
            "Cash Received",
            "Change Due",
            ("inline", "colon", "pairs"),
            ("wide", "right"),
        ),
        "de": Phrases(
            ("Kassenbeleg", "Barverkauf"),
            "Vorgang",
            "am",
            "Bedienung",
            "Fon",
            "Steuernr.",
            "Teilsumme",
            "Abzug",
            "Rundungsbetrag",
            ("GESAMT",),
            "Barzahlung",
            "Wechselgeld",
            ("inline",),
            ("wide",),
        ),
        "zh": Phrases(
            ("收银小票", "点菜单"),
            "票号",
            "交易日期",
            "营业员",
            "服务热线：",
            "纳税人识别号：",
            "商品金额",
            "减免",
            "舍入",
            ("应付金额", "共计"),
            "收款",
            "退款",
            ("colon", "pairs"),
            ("wide", "right"),
        ),
    },
}
