"""Questions: what the document holds is answered with evidence, what it does not hold is not."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given

from docferry.document import Document, Evidence, Field, Line, Page, Region, RegionType
from docferry.tables import Cell, Grid, to_html
from docferry_cloud.meaning import answer

ROWS = [
    ["项目", "2023年Q3", "2023年Q4"],
    ["walnuts", "12", "1,250.50"],
    ["almonds", "7", "300"],
    ["raisins", "31", "2.25"],
    ["Total", "50", "1,552.75"],
]


def document(rows: list[list[str]] = ROWS, *texts: str, fields: tuple[Field, ...] = ()) -> Document:
    grid = Grid(tuple(Cell(y, x, text, header=y == 0) for y, row in enumerate(rows) for x, text in enumerate(row)))
    lines = tuple(
        Line(
            f"r1.l{y}.{x}",
            text,
            ((x / 9, y / 99), ((x + 1) / 9, y / 99), ((x + 1) / 9, (y + 1) / 99), (x / 9, (y + 1) / 99)),
            1.0,
        )
        for y, row in enumerate(rows)
        for x, text in enumerate(row)
        if text
    )
    table = Region("r1", RegionType.TABLE, (0.0, 0.0, 1.0, 0.5), 0, lines=lines, html=to_html(grid))
    prose = tuple(
        Region(
            f"r{n + 2}",
            RegionType.TEXT,
            (0.0, 0.6, 1.0, 0.7),
            n + 1,
            lines=(Line(f"r{n + 2}.l1", text, ((0.0, 0.6), (1.0, 0.6), (1.0, 0.7), (0.0, 0.7)), 1.0),),
        )
        for n, text in enumerate(texts)
    )
    return Document((Page(1000, 1400, (table, *prose)),), fields)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the 2023年Q4 value of almonds?", "300"),
        ("walnuts的2023年Q3是多少？", "12"),
        ("What is the sum of the column 2023年Q4?", "1552.75"),
        ("2023年Q3之和是多少", "50"),
        ("Which item has the highest 2023年Q3?", "raisins: 31"),
        ("What is the average of 2023年Q3?", "16.6667"),
        ("What is the difference between walnuts and almonds in 2023年Q3?", "5"),
        ("How many rows does the table have?", "3"),
    ],
)
def test_tables_are_looked_up_added_and_compared(question: str, expected: str) -> None:
    assert answer(document(), question).answer == expected


def test_a_column_comes_as_json() -> None:
    found = answer(document(), "all values of column 2023年Q4, as JSON")
    assert json.loads(found.answer) == ["1,250.50", "300", "2.25", "1,552.75"]


def test_the_evidence_is_the_line_that_was_read() -> None:
    found = answer(document(), "What is the 2023年Q4 value of almonds?")
    assert [place.line for place in found.evidence] == ["r1.l2.2"]
    assert 0 < found.confidence < 1


@pytest.mark.parametrize(
    "question",
    [
        "What is the 2023年Q4 value of bananas?",
        "What is the 2024年Q1 value of almonds?",
        "What is the weight of almonds?",
        "Who signed the report?",
        "What is the sum of the column weight?",
        "",
    ],
)
def test_what_the_document_does_not_hold_is_not_answered(question: str) -> None:
    found = answer(document(), question)
    assert (found.answer, found.confidence, found.evidence) == ("", 0.0, ())


def test_a_sum_over_a_cell_that_is_no_number_is_not_given() -> None:
    rows = [["Item", "Price"], ["nuts", "1"], ["figs", "see below"]]
    assert answer(document(rows), "What is the sum of Price?").answer == ""


def test_fields_answer_with_their_own_evidence() -> None:
    total = Field("total", "RM 9.00", "9.00", 0.98, (Evidence(0, (0.1, 0.1, 0.2, 0.2), "r1.l1"),))
    found = answer(Document((), (total,)), "What is the total of this receipt?")
    assert (found.answer, found.confidence, found.evidence) == ("9.00", 0.98, total.evidence)
    assert answer(Document((), (total,)), "What is the date of this receipt?").answer == ""


def test_prose_answers_by_the_sentence_that_holds_the_words() -> None:
    text = "The mill was built in 1871. The harvest is weighed by the miller every October."
    found = answer(
        document(ROWS, text, "Nothing of interest stands here at all."), "Who weighed the harvest, the miller?"
    )
    assert found.answer == "" or "miller" in found.answer
    assert answer(document(ROWS, text), "When was the mill built?").answer == "The mill was built in 1871."


@given(st.text(max_size=60))
def test_any_question_is_answered_or_not(question: str) -> None:
    found = answer(document(), question)
    assert bool(found.answer) == (found.confidence > 0)


def test_generated_tables_look_ups_and_sums_are_right_and_the_unanswerable_refused() -> None:
    dice = random.Random(5)
    goods = ["walnuts", "almonds", "raisins", "figs", "dates", "prunes", "pears", "plums", "apples", "cherries"]
    heads = ["Count", "Price", "Weight", "Stock", "Orders", "Returns", "Margin"]
    right = asked = refused = unanswerable = 0
    for _ in range(60):
        named = dice.sample(goods, dice.randint(3, 7))
        columns = dice.sample(heads, dice.randint(2, 5))
        values = [[Decimal(dice.randint(0, 999999)).scaleb(-2) for _ in columns] for _ in named]
        rows = [
            ["Item", *columns],
            *([name, *(f"{v:,.2f}" for v in row)] for name, row in zip(named, values, strict=True)),
        ]
        made = document(rows)
        y, x = dice.randrange(len(named)), dice.randrange(len(columns))
        asked += 2
        right += answer(made, f"What is the {columns[x]} of {named[y]}?").answer == rows[y + 1][x + 1]
        total = sum(row[x] for row in values)
        right += Decimal(answer(made, f"What is the sum of the {columns[x]} column?").answer or "-1") == total
        absent = next(name for name in goods if name not in named)
        missing = next(head for head in heads if head not in columns)
        unanswerable += 2
        refused += answer(made, f"What is the {columns[x]} of {absent}?").answer == ""
        refused += answer(made, f"What is the {missing} of {named[y]}?").answer == ""
    assert right / asked >= 0.95
    assert refused / unanswerable >= 0.9
