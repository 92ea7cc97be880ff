"""A user's own schema filled from a document: typed values with evidence, and "not found" for what it does not hold."""

from __future__ import annotations

from typing import Any

from docferry.document import Document, Evidence, Field, Line, Page, Region, RegionType
from docferry.fields.schema import in_shape
from docferry.tables import Cell, Grid, to_html
from docferry_cloud.meaning import Filled, Found, filled

ROWS = [["Item", "Price"], ["Walnuts", "3.50"], ["Almonds", "12"]]
BOX = (0.1, 0.1, 0.5, 0.2)
SCHEMA = {
    "type": "object",
    "properties": {
        "invoice_number": {"type": "string"},
        "totals": {"type": "object", "properties": {"due": {"type": "number", "description": "total amount due"}}},
        "date": {"type": "string", "format": "date"},
        "price": {"type": "array", "items": {"type": "number"}},
        "buyer_vat_id": {"type": "string"},
    },
}


def document() -> Document:
    grid = Grid(tuple(Cell(y, x, text, header=y == 0) for y, row in enumerate(ROWS) for x, text in enumerate(row)))
    lines = tuple(
        Line(f"r1.l{y}{x}", text, ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2)), 1.0)
        for y, row in enumerate(ROWS)
        for x, text in enumerate(row)
    )
    fields = (
        Field("date", "24/03/2018", "2018-03-24", 0.9, (Evidence(0, BOX, "r2.l1"),)),
        Field("total", "RM 15.50", "15.50", 0.8, (Evidence(0, BOX, "r2.l2"),)),
        Field("invoice_number", "A-77", "A-77", 0.7, (Evidence(0, BOX, "r2.l3"),)),
    )
    return Document(
        (Page(100, 100, (Region("r1", RegionType.TABLE, BOX, 0, lines=lines, html=to_html(grid)),)),), fields
    )


def fill(schema: Any) -> dict[tuple[str, ...], Filled]:
    return {leaf.path: leaf for leaf in filled(document(), schema, lambda: False)}


def test_fields_come_back_in_the_schemas_shape_typed_and_with_evidence() -> None:
    tree = in_shape(SCHEMA, fill(SCHEMA))
    assert tree["invoice_number"].value == "A-77"
    assert tree["totals"]["due"].value == 15.5
    assert tree["date"].value == "2018-03-24"
    assert tree["price"].value == [3.5, 12]
    assert tree["date"].found.evidence[0].line == "r2.l1"
    assert tree["price"].found.evidence
    assert 0 < tree["totals"]["due"].found.confidence <= 1


def test_what_the_document_does_not_hold_is_not_found() -> None:
    leaf = in_shape(SCHEMA, fill(SCHEMA))["buyer_vat_id"]
    assert (leaf.value, leaf.found) == (None, Found("buyer vat id"))


def test_a_list_of_questions_comes_back_as_a_list() -> None:
    number, nobody = in_shape(questions := ["What is the invoice number?", "Who signed?"], fill(questions))
    assert (number.value, nobody.value) == ("A-77", None)


def test_nothing_is_asked_any_more_once_the_caller_has_left() -> None:
    asked = iter([False, True])
    assert [leaf.path for leaf in filled(document(), ["Who?", "When?", "Why?"], lambda: next(asked))] == [("Who?",)]
