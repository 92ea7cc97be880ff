"""A user's own schema: what it asks for, and what comes back in its shape."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from docferry.errors import ConfigurationError
from docferry.fields.schema import Wanted, in_shape, typed, wanted_fields

SCHEMA = {
    "type": "object",
    "properties": {
        "invoiceNumber": {"type": "string", "description": "What is the invoice number?"},
        "seller": {"type": "object", "properties": {"tax_id": {"type": ["string", "null"]}}},
        "issued": {"type": "string", "format": "date"},
        "prices": {"type": "array", "items": {"type": "number"}},
    },
}


def test_every_leaf_becomes_a_question_with_its_parents_name() -> None:
    assert wanted_fields(SCHEMA) == (
        Wanted(("invoiceNumber",), ("invoice number", "What is the invoice number?")),
        Wanted(("seller", "tax_id"), ("seller tax id",)),
        Wanted(("issued",), ("issued",), "date"),
        Wanted(("prices",), ("all values of prices as JSON",), "number", many=True),
    )
    assert wanted_fields(["Who signed?"]) == (Wanted(("Who signed?",), ("Who signed?",)),)


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        ("number", "RM 9.50", 9.5),
        ("number", "12", 12),
        ("number", "about right", None),
        ("integer", "3", 3),
        ("integer", "3.5", None),
        ("date", "24 March 2018", "2018-03-24"),
        ("date", "soon", None),
        ("boolean", "Yes", True),
        ("string", "Walnuts", "Walnuts"),
        ("string", "", None),
    ],
)
def test_answers_take_the_schemas_type_or_are_not_found(kind: str, answer: str, value: object) -> None:
    assert typed(Wanted(("x",), ("x",), kind), answer) == value


def test_a_list_with_a_hole_and_a_choice_nobody_offered_are_not_found() -> None:
    numbers = Wanted(("x",), ("x",), "number", many=True)
    assert typed(numbers, '["1.50", "2"]') == [1.5, 2]
    assert typed(numbers, '["1.50", "n/a"]') is None
    choice = Wanted(("x",), ("x",), choices=("EUR", "USD"))
    assert (typed(choice, "eur"), typed(choice, "GBP")) == ("EUR", None)


def test_what_was_found_comes_back_in_the_schemas_shape() -> None:
    found = {wanted.path: wanted.path[-1] for wanted in wanted_fields(SCHEMA)}
    assert in_shape(SCHEMA, found) == {
        "invoiceNumber": "invoiceNumber",
        "seller": {"tax_id": "tax_id"},
        "issued": "issued",
        "prices": "prices",
    }
    assert in_shape(["a", "b"], {("a",): 1, ("b",): 2}) == [1, 2]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("total", "is a str"),
        ([], "0 fields"),
        ([1], "questions"),
        ({"type": "object"}, "properties"),
        ({"properties": {"a": {"$ref": "#/x"}}}, "'a' uses"),
        ({"properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}, "'a' is of type"),
        ({"properties": {str(number): {} for number in range(101)}}, "101 fields"),
        (["x" * 2001], "too long"),
    ],
)
def test_a_schema_that_cannot_be_filled_is_refused_by_name(schema: object, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        wanted_fields(schema)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "enum", "a", "format", "$ref"]), inner, max_size=4
        )
    ),
)


@given(_JSON, st.text(max_size=40), st.sampled_from(["string", "number", "integer", "boolean", "date"]), st.booleans())
def test_any_json_is_a_schema_or_refused_and_any_answer_has_a_value_or_none(
    schema: object, answer: str, kind: str, many: bool
) -> None:
    typed(Wanted(("x",), ("x",), kind, many), answer)
    try:
        wanted = wanted_fields(schema)
    except ConfigurationError:
        return
    in_shape(schema, {one.path: None for one in wanted})
