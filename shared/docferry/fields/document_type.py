"""What kind of document this is, judged by its words and layout: it decides which fields are looked for at all."""

from __future__ import annotations

import enum

from docferry.fields.amounts import find_amounts
from docferry.fields.folding import contains_any, fold, is_cjk
from docferry.fields.labels import Label, label_of
from docferry.fields.rows import Row


class DocumentType(enum.StrEnum):
    """RECEIPT and INVOICE carry fields; PAGE is running text, a form or anything else."""

    RECEIPT = "receipt"
    INVOICE = "invoice"
    PAGE = "page"


_INVOICE = ("INVOICENO", "INVOICENUMBER", "INVOICEDATE", "BILLTO", "DUEDATE", "PAYMENTTERMS", "RECHNUNGSNUMMER", "RECHNUNGSNR", "FACTUURNUMMER",
            "NUMERODEFACTURE", "发票代码", "发票号码", "购买方", "销售方", "价税合计", "UNITPRICE")  # fmt: skip
_RECEIPT = ("RECEIPT", "CASHIER", "TAXINVOICE", "CASHBILL", "CASHSALE", "GSTID", "GSTREG", "THANKYOU", "CHANGE", "小票", "收银", "收据", "谢谢惠顾",
            "现金", "找零", "INVOICE", "BILL", "TERIMAKASIH")  # fmt: skip

_LONG_LINE = 40
"""Letters in a line of running text; a receipt's line rarely holds as many. A Chinese character counts as two."""


def classify(rows: tuple[Row, ...]) -> DocumentType:
    """The document's type, from its rows.

    A receipt or an invoice has amounts with decimals and words for a sum, or several words that only such papers carry;
    a page of running text is mostly long lines, and one stray "total 3.50" in it does not make it a receipt.
    """
    texts = [row.text for row in rows]
    if not texts:
        return DocumentType.PAGE
    folded = [fold(text) for text in texts]
    invoice = sum(any(contains_any(text, (word,)) for text in folded) for word in _INVOICE)
    receipt = sum(any(contains_any(text, (word,)) for text in folded) for word in _RECEIPT)
    priced = sum(any(amount.decimals == 2 or amount.currency for amount in find_amounts(text)) for text in texts)
    summed = sum(label_of(text) in {Label.PAYABLE, Label.TOTAL, Label.INCLUSIVE} for text in texts if len(text) < _LONG_LINE)
    prose = sum(_width(piece.line.text) >= _LONG_LINE for row in rows for piece in row.pieces) / sum(len(row.pieces) for row in rows)
    # Each addend is capped, so that no single trait decides alone.
    money = min(priced, 4) + 2 * min(summed, 2) + min(receipt + invoice, 4)
    if money < 4 or (prose > 0.3 and money < 10) or (priced == 0 and summed == 0):
        return DocumentType.PAGE
    return DocumentType.INVOICE if invoice >= 2 else DocumentType.RECEIPT


def _width(text: str) -> int:
    return sum(2 if is_cjk(glyph) else 1 for glyph in text)
