"""A user's own schema filled from a document: typed values with evidence, and "not found" for what it does not hold."""

from __future__ import annotations

import asyncio
from typing import Any

from docferry.document import Document, Evidence, Field, Line, Page, Region, RegionType
from docferry.fields.schema import in_shape
from docferry.schema_filling import as_rows, fill
from docferry.tables import Cell, Grid, to_html
from docferry.v1 import analysis_pb2, document_pb2
from docferry_cloud.meaning import answer

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


class Service:
    """Answers as the service does, without one."""

    async def ask(self, analysis_id: str, question: str) -> analysis_pb2.Answer:
        found = answer(document(), question)
        evidence = [document_pb2.Evidence(page=place.page, line_id=place.line or "") for place in found.evidence]
        return analysis_pb2.Answer(
            question=question, answer=found.answer, confidence=found.confidence, evidence=evidence
        )


def filled(schema: Any) -> Any:
    return asyncio.run(fill(Service(), "a", schema))


def test_fields_come_back_in_the_schemas_shape_typed_and_with_evidence() -> None:
    tree = in_shape(SCHEMA, filled(SCHEMA))
    assert tree["invoice_number"]["value"] == "A-77"
    assert tree["totals"]["due"]["value"] == 15.5
    assert tree["date"]["value"] == "2018-03-24"
    assert tree["price"]["value"] == [3.5, 12]
    assert tree["date"]["evidence"][0]["line"] == "r2.l1"
    assert tree["price"]["evidence"]
    assert 0 < tree["totals"]["due"]["confidence"] <= 1


def test_what_the_document_does_not_hold_is_not_found() -> None:
    leaf = in_shape(SCHEMA, filled(SCHEMA))["buyer_vat_id"]
    assert (leaf["found"], leaf["value"], leaf["confidence"], leaf["evidence"]) == (False, None, 0.0, [])
    assert as_rows(filled(SCHEMA))[-1]["normalized"] == "not found"


def test_a_list_of_questions_comes_back_as_a_list() -> None:
    number, nobody = in_shape(questions := ["What is the invoice number?", "Who signed?"], filled(questions))
    assert (number["value"], nobody["found"]) == ("A-77", False)
