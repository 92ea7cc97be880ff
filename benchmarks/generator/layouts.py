"""How the items of a receipt are set: three families, one for each split."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.generator.bills import Country, Item
from benchmarks.generator.truth import Split
from benchmarks.generator.writer import Cell

FieldCell = tuple[str, float, str]
"""Name of what is printed (see `item_texts`), place, anchor."""


@dataclass(frozen=True, slots=True)
class ItemLayout:
    """Head cells and the printed rows of one item; `columns` says which texts form each cell of the table."""

    head: tuple[Cell, ...]
    rows: tuple[tuple[FieldCell, ...], ...]
    columns: tuple[tuple[str, ...], ...]


ITEM_LAYOUTS: dict[Split, tuple[ItemLayout, ...]] = {
    Split.TRAIN: (
        ItemLayout(
            (),
            ((("name", 0, "l"),), (("code", 0, "l"), ("times", 0.74, "r"), ("amount", 1, "r"))),
            (("name", "code"), ("times",), ("amount",)),
        ),
        ItemLayout(
            (("Description", 0, "l"), ("Qty", 0.6, "r"), ("Price", 0.8, "r"), ("Amount", 1, "r")),
            ((("name", 0, "l"), ("quantity", 0.6, "r"), ("price", 0.8, "r"), ("amount", 1, "r")),),
            (("name",), ("quantity",), ("price",), ("amount",)),
        ),
    ),
    Split.CALIBRATE: (
        ItemLayout(
            (("Qty", 0, "l"), ("Item", 0.17, "l"), ("Total", 1, "r")),
            ((("quantity", 0, "l"), ("name", 0.17, "l"), ("amount", 1, "r")),),
            (("quantity",), ("name",), ("amount",)),
        ),
        ItemLayout(
            (("Item", 0, "l"), ("Amount", 1, "r")),
            ((("code", 0, "l"),), (("name", 0, "l"), ("amount", 1, "r")), (("at", 0.06, "l"),)),
            (("code", "name", "at"), ("amount",)),
        ),
    ),
    Split.JUDGE: (
        ItemLayout(
            (("Description", 0.04, "l"), ("Qty", 0.6, "r"), ("Price", 0.8, "r"), ("Amount", 1, "r")),
            (
                (
                    ("number", 0, "l"),
                    ("code", 0.09, "l"),
                    ("quantity", 0.58, "r"),
                    ("price", 0.8, "r"),
                    ("amount", 1, "r"),
                ),
                (("name", 0.09, "l"),),
            ),
            (("number", "code", "name"), ("quantity",), ("price",), ("amount",)),
        ),
        ItemLayout(
            (("Desc", 0, "l"), ("Amt", 1, "r")),
            ((("name", 0, "l"), ("taxed", 1, "r")),),
            (("name",), ("taxed",)),
        ),
        ItemLayout(
            (("Qty", 0, "l"), ("Particulars", 0.18, "l"), ("U.Price", 0.78, "r"), ("Total", 1, "r")),
            (
                (("name", 0.03, "l"),),
                (("quantity", 0.03, "l"), ("code", 0.18, "l"), ("price", 0.78, "r"), ("amount", 1, "r")),
            ),
            (("quantity",), ("name", "code"), ("price",), ("amount",)),
        ),
    ),
}

HEADS: dict[str, dict[str, str]] = {
    "zh": {
        "Description": "品名",
        "Qty": "数量",
        "Price": "单价",
        "Amount": "金额",
        "Item": "商品",
        "Total": "小计",
        "Desc": "品名规格",
        "Amt": "金额",
        "Particulars": "货号/品名",
        "U.Price": "售价",
    },
    "de": {
        "Description": "Artikel",
        "Qty": "Menge",
        "Price": "Preis",
        "Amount": "Betrag",
        "Item": "Ware",
        "Total": "Summe",
        "Desc": "Bezeichnung",
        "Amt": "EUR",
        "Particulars": "Artikel-Nr.",
        "U.Price": "Einzel",
    },
}
"""The heads of tables in other languages than English, by country code."""


def item_texts(item: Item, number: int, country: Country) -> dict[str, str]:
    """Everything a layout may print about an item."""
    price, amount = country.amount(item.price), country.amount(item.amount)
    return {
        "number": str(number),
        "name": item.name,
        "code": item.code,
        "quantity": str(item.quantity),
        "price": price,
        "amount": amount,
        "times": f"{item.quantity} X {price}",
        "at": f"{item.quantity} @ {price}",
        "taxed": f"{amount} {'A' if country.comma else 'S'}",
    }
