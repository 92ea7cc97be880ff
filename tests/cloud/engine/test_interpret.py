from dataclasses import replace

import pytest

from docferry.document import Document, Field, Line, Page, Region, RegionType
from docferry.errors import EngineError
from docferry_cloud.engine import Effort, PageInput, Task
from docferry_cloud.interpret import interpret, summarise


class Echo:
    """An engine in memory: gives back the reading that came in."""

    name = "echo"
    tasks = frozenset({Task.TEXT})

    def __init__(self):
        self.asked = []

    def read(self, page, effort, cancelled):
        self.asked.append(effort)
        if cancelled():
            raise EngineError("cancelled")
        return page.reading


def page(*rows, kind=RegionType.TEXT):
    lines = tuple(
        Line(f"r1.l{n + 1}", text, ((x, y), (x + w, y), (x + w, y + 0.02), (x, y + 0.02)), 0.99)
        for n, (text, x, y, w) in enumerate(rows)
    )
    return Page(600, 1000, (Region("r1", kind, (0.0, 0.0, 1.0, 1.0), 0, lines=lines),))


RECEIPT = page(
    ("CORNER SHOP SDN BHD", 0.3, 0.05, 0.4),
    ("12 JALAN MAWAR, 50000 KUALA LUMPUR", 0.2, 0.08, 0.6),
    ("RECEIPT 0071", 0.1, 0.14, 0.2),
    ("Date: 12/03/2018", 0.1, 0.17, 0.3),
    ("TEA", 0.1, 0.3, 0.1),
    ("3.00", 0.8, 0.3, 0.1),
    ("MILK", 0.1, 0.33, 0.1),
    ("6.00", 0.8, 0.33, 0.1),
    ("TOTAL", 0.1, 0.4, 0.1),
    ("RM 9.00", 0.75, 0.4, 0.15),
    ("THANK YOU", 0.3, 0.5, 0.2),
)


def test_every_page_is_read_and_the_fields_are_found():
    engine = Echo()
    result = interpret([PageInput(reading=RECEIPT)], engine, Effort.FAST, lambda: False)
    found = {field.name: field.normalized for field in result.document.fields}
    assert engine.asked == [Effort.FAST]
    assert found["total"] == "9.00"
    assert found["date"] == "2018-03-12"
    assert "TOTAL \u2003RM 9.00" in result.markdown
    assert result.summary.startswith("Receipt from CORNER SHOP SDN BHD, 2018-03-12, total 9.00")


def test_the_same_pages_give_the_same_interpretation():
    first, second = (interpret([PageInput(reading=RECEIPT)], Echo(), Effort.AUTO, lambda: False) for _ in range(2))
    assert first == second


def test_every_region_whose_lines_have_a_confidence_gets_one():
    (region,) = RECEIPT.regions
    sure = replace(RECEIPT, regions=(replace(region, lines=tuple(replace(x, confidence=0.9) for x in region.lines)),))
    for reading, expected in ((sure, pytest.approx(0.9)), (RECEIPT, None)):
        result = interpret([PageInput(reading=reading)], Echo(), Effort.AUTO, lambda: False)
        assert result.document.pages[0].regions[0].confidence == expected


def test_a_cancelled_document_is_not_interpreted():
    with pytest.raises(EngineError):
        interpret([PageInput(reading=RECEIPT)], Echo(), Effort.AUTO, lambda: True)


def test_a_document_without_text_says_nothing():
    result = interpret([PageInput(reading=Page(10, 10))], Echo(), Effort.AUTO, lambda: False)
    assert (result.markdown, result.summary, result.document.fields) == ("", "", ())


def test_a_page_is_summarised_by_its_title_cut_short():
    title = page(("On the Habits of Foxes " * 8, 0.1, 0.05, 0.8), kind=RegionType.TITLE)
    summary = summarise(Document((title,)))
    assert summary.startswith("On the Habits of Foxes")
    assert len(summary) <= 120
    assert summarise(Document((page(("nothing here is a title", 0.1, 0.1, 0.5)),))) == ""


def test_the_summary_claims_only_what_was_found():
    assert summarise(Document((RECEIPT,))) == ""
    total = Field("total", "RM 9.00", "9.00", 0.9)
    assert summarise(Document((RECEIPT,), (total,))) == "Receipt, total 9.00."
    assert summarise(Document((RECEIPT,), (total, Field("currency", "RM", "MYR", 0.9)))) == "Receipt, total 9.00 MYR."
