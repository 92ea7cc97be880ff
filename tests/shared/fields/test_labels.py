"""What stands beside an amount decides what the amount is."""

from __future__ import annotations

import pytest

from docferry.fields.labels import Label, label_of


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("TOTAL", Label.TOTAL),
        ("T0TAL RM", Label.TOTAL),
        ("TOTL :", Label.TOTAL),
        ("合計", Label.TOTAL),
        ("GRAND TOTAL", Label.PAYABLE),
        ("Amount due", Label.PAYABLE),
        ("TOTAL ROUNDED", Label.PAYABLE),
        ("NETT TOTAL", Label.PAYABLE),
        ("價稅合計(小寫)", Label.PAYABLE),
        ("应付", Label.PAYABLE),
        ("TOTAL INCL. GST@6%", Label.INCLUSIVE),
        ("SUB-TOTAL", Label.SUBTOTAL),
        ("TOTAL (EXCLUDING GST)", Label.SUBTOTAL),
        ("小计", Label.SUBTOTAL),
        ("TOTAL QTY", Label.QUANTITY),
        ("TOTAL SAVINGS", Label.DISCOUNT),
        ("ROUNDING ADJ", Label.ROUNDING),
        ("TOTAL GST", Label.TAX),
        ("税额", Label.TAX),
        ("CASH", Label.CASH),
        ("VISA", Label.CASH),
        ("CHANGE", Label.CHANGE),
        ("找零", Label.CHANGE),
        ("EXCHANGE TABLE", Label.OTHER),
        ("MUSTARD BUN", Label.OTHER),
        ("RM", Label.NONE),
        (": ", Label.NONE),
        ("", Label.NONE),
    ],
)
def test_labels_are_told_apart(text, label):
    assert label_of(text) is label
