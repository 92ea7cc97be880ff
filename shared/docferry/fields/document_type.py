"""What kind of document this is, judged by its words and layout: it decides which fields are looked for at all."""

from __future__ import annotations

import enum
import re

from docferry.fields.amounts import find_amounts
from docferry.fields.folding import contains_any, fold, is_cjk
from docferry.fields.labels import Label, label_of
from docferry.fields.rows import Row


class DocumentType(enum.StrEnum):
    """RECEIPT and INVOICE carry fields; PAGE is running text, a form or anything else."""

    RECEIPT = "receipt"
    INVOICE = "invoice"
    PAGE = "page"


_INVOICE = """
    COMMERCIALINVOICE SERVICEINVOICE SOLDTO BALANCEDUE
    INVOICENO INVOICENUMBER INVOICEDATE BILLTO DUEDATE PAYMENTTERMS RECHNUNGSNUMMER RECHNUNGSNR FACTUURNUMMER
    NUMERODEFACTURE 发票代码 发票号码 购买方 销售方 价税合计 UNITPRICE
"""
_RECEIPT = """
    RECEIPT CASHIER TAXINVOICE CASHBILL CASHSALE GSTID GSTREG THANKYOU CHANGE INVOICE BILL TERIMAKASIH SUBTOTAL
    小票 收银 收据 谢谢惠顾 欢迎光临 现金 找零 发票 统一编号 统编 微信支付 支付宝
"""
_SUMS = frozenset({Label.PAYABLE, Label.TOTAL, Label.INCLUSIVE})

_TAIWAN_NUMBER = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}-?\d{8}(?!\d)")
"""A uniform invoice's number: whatever else could not be read, a paper that carries one is a receipt."""

_LONG_LINE = 40
"""Letters in a line of running text; a receipt's line rarely holds as many. A Chinese character counts as two."""


def classify(rows: tuple[Row, ...]) -> DocumentType:
    """The document's type, from its rows.

    A receipt or an invoice has a row for its sum and a word that such papers carry; or, where the sum was not read,
    several such words and prices or a Taiwanese invoice's number; or prices in every third row (every fifth beside one
    such word). A page of running text is mostly long lines, and a stray "total 3.50" in it does not make it a receipt.
    """
    if not rows:
        return DocumentType.PAGE
    folded = [fold(row.text) for row in rows]
    invoice = sum(any(contains_any(text, (word,)) for text in folded) for word in _INVOICE.split())
    telling = invoice + sum(any(contains_any(text, (word,)) for text in folded) for word in _RECEIPT.split())
    amounts = [find_amounts(row.text) for row in rows]
    priced = sum(any(amount.decimals == 2 or amount.currency for amount in found) for found in amounts)
    summed = any(label_of(row.text) in _SUMS for row in rows if len(row.text) < _LONG_LINE)
    prose = sum(_width(piece.line.text) >= _LONG_LINE for row in rows for piece in row.pieces)
    share_of_prose = prose / sum(len(row.pieces) for row in rows)
    paper = (
        (summed and telling >= 1 and any(amounts))
        or (telling >= 3 and priced >= 2)
        or (telling >= 2 and any(_TAIWAN_NUMBER.search(row.text) for row in rows))
        or (priced >= 2 and priced / len(rows) >= (0.2 if telling else 0.3) and share_of_prose < 0.05)
    )
    # Long lines weigh against it, unless the words leave no doubt.
    if not paper or (share_of_prose > 0.2 and telling < 4):
        return DocumentType.PAGE
    return DocumentType.INVOICE if invoice >= 2 else DocumentType.RECEIPT


def _width(text: str) -> int:
    return sum(2 if is_cjk(glyph) else 1 for glyph in text)
