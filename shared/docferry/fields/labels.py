"""What the words beside an amount say it is: total, tax, change; English, Malay, German, Dutch, French, Chinese."""

from __future__ import annotations

import enum
import functools
import re

from docferry.fields.folding import REMEMBERED, contains_any, fold, plain, within_one_edit, words


class Label(enum.StrEnum):
    """The meaning of an amount's label."""

    PAYABLE = "payable"
    TOTAL = "total"
    INCLUSIVE = "inclusive"
    AMOUNT = "amount"
    SUBTOTAL = "subtotal"
    TAX = "tax"
    SERVICE = "service"
    ROUNDING = "rounding"
    DISCOUNT = "discount"
    QUANTITY = "quantity"
    CASH = "cash"
    CHANGE = "change"
    OTHER = "other"
    NONE = "none"


# Table order is meaning: the first entry that fits wins, so the narrower wording stands above the wider.
# Each entry: the label, words one of which must occur, words none of which may occur; all compared folded,
# anywhere in the text, those with `=` only as a word of their own.
_TABLE: tuple[tuple[Label, str, str], ...] = (
    (
        Label.PAYABLE,
        """
        TOTALROUNDED ROUNDEDTOTAL AFTERROUND TOTALROUND GRANDTOTAL FINALTOTAL AMOUNTDUE BALANCEDUE TOTALDUE
        AMOUNTPAYABLE TOTALPAYABLE AMTPAYABLE PAYABLEAMOUNT BILLTOTAL AMTDUE TOTALTOPAY TOPAY 价税合计 应付 应收 实付
        总计 总额 總額 GESAMTBETRAG ENDBETRAG RECHNUNGSBETRAG ZUZAHLEN TOTALTTC NETAPAYER TEBETALEN JUMLAHBESAR
        NETDUE TOTALBAYAR INVOICETOTAL TOTALAMOUNTDUE
        """,
        "TOTALROUNDING SUBTOTAL",
    ),
    (
        Label.ROUNDING,
        "ROUND RNDADJ RNDG PEMBUNDARAN 抹零 舍入",
        "",
    ),
    (
        Label.QUANTITY,
        """
        TOTALQTY TOTQTY TOTALQUANT TOTALITEM ITEMCOUNT NOOFITEM NUMBEROFITEM TOTALPCS TOTALUNIT QTY QUANTITY
        ITEMS 数量 件数 TOTALNO TTLQTY ITEMTOTAL POINTS
        """,
        "AMOUNT AMT",
    ),
    (
        Label.CHANGE,
        "CHANGE BAKI 找零 找赎 RUCKGELD RÜCKGELD WISSELGELD BALANCE RENDU",
        "EXCHANGE BALANCEDUE",
    ),
    (
        Label.SUBTOTAL,
        """
        SUBTOTAL SUBTTL SUB-TTL EXCLUDING EXCLUDED EXCLUSIVE EXCL EXGST EXTAX BEFORETAX BEFOREGST TAXABLE
        NETTOBETRAG ZWISCHENSUMME SUBTOTAAL TOTALHT 小计 不含税 GROSS BEFOREDISC WITHOUTGST WITHOUTTAX UNTAXED
        金额合计
        """,
        "ROUND",
    ),
    (
        Label.INCLUSIVE,
        """
        TOTALINC TOTALSALESINC TOTALAMOUNTINC TOTALAMTINC AMOUNTINC AMTINC TOTALWITHGST TOTALWITHTAX
        TOTALRMINC TOTALRMWITH 含税 TOTALGSTINC SALESINC INCLUSIVEGST INCLUSIVEOFGST AFTERGST AFTERTAX
        """,
        "",
    ),
    (
        Label.DISCOUNT,
        "DISCOUNT DISC SAVING SAVED YOUSAVE REBATE VOUCHER COUPON 优惠 折扣 减免 RABATT KORTING",
        "AFTERDISC AFTERTHEDISC LESSDISC DISCOVER",
    ),
    (
        Label.SERVICE,
        """
        SERVICECHARGE SERVCHARGE SVCCHARGE SVCCHG SERCHARGE SERVICECHG 服务费 SRVCHG SCHARGE
        """,
        "",
    ),
    (
        Label.TAX,
        "GST SST TAX =VAT MWST =UST =BTW =TVA CUKAI 税额 税金 税率",
        "CUSTOMER TAXI TAXINVOICE CUSTOM JUST DUST INDUST MUST TRUST ADJUST",
    ),
    (
        Label.CASH,
        """
        CASH VISA MASTERCARD MASTER CREDITCARD DEBIT CARD TENDER PAID RECEIVED PAYMENT TUNAI AMEX EFTPOS 现金
        支付宝 微信 实收 收款 BARGELD =BAR CONTANT ESPECES BANK 付款
        """,
        "CASHIER BARCODE CASHBILL CASHSALE BARANG TOTALSALES",
    ),
    (
        Label.PAYABLE,
        "NETTOTAL NETTTOTAL NETTAMOUNT NETTAMT NETAMOUNT NETAMT NETTTL TOTALNET",
        "",
    ),
    (
        Label.TOTAL,
        "TOTAL TOTALAMT TOTAI JUMLAH SUMME GESAMT TOTAAL 合计 共计 總計 合計 TTLAMT",
        "",
    ),
    (
        Label.AMOUNT,
        "AMOUNT AMT BETRAG BEDRAG MONTANT 金额",
        "",
    ),
)

_SUMMARY_HEADINGS = """
    GSTSUMMARY TAXSUMMARY SSTSUMMARY VATSUMMARY GSTANALYSIS TAXANALYSIS TAX(RM) TAXAMT(RM) GSTCODE TAXCODE GST(RM)
    VATRATE TAXAMOUNT(RM) TAX(MYR) GSTSUM
"""

_CURRENCY_ONLY = re.compile(r"[^\w]*(?:RM|MYR|USD|SGD|CNY|RMB|EUR|SR|ZRL|S|T|X)?[^\w]*", re.IGNORECASE)


@functools.lru_cache(maxsize=REMEMBERED)
def label_of(text: str) -> Label:
    """The label that `text`, left of an amount, gives it: NONE if it has no words, OTHER if none is known."""
    if _CURRENCY_ONLY.fullmatch(plain(text)) or not any(glyph.isalpha() for glyph in text):
        return Label.NONE
    folded = fold(text)
    if folded in {"DUE", "TODUE"}:
        return Label.PAYABLE
    apart = " ".join(f"={word}" for word in words(text)) + " "
    for label, keywords, vetoes in _TABLE:
        if _occurs(keywords, folded, apart) and not _occurs(vetoes, folded, apart):
            return label
    if any(4 <= len(word) <= 6 and within_one_edit(fold(word), fold("TOTAL")) for word in words(text)):
        return Label.TOTAL
    return Label.OTHER


def _occurs(keywords: str, folded: str, apart: str) -> bool:
    return any(
        f"{keyword} " in apart if keyword.startswith("=") else fold(keyword) in folded for keyword in keywords.split()
    )


@functools.lru_cache(maxsize=REMEMBERED)
def opens_tax_summary(text: str) -> bool:
    """Whether `text` heads a table of tax rates, whose sums are not the document's totals."""
    return contains_any(fold(text), _SUMMARY_HEADINGS.split())
