"""A user's own schema filled from a document: one question a leaf, the answers typed as the schema says. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docferry.document import Document
from docferry.fields.schema import Value, Wanted, typed, wanted_fields
from docferry_cloud.meaning.answer import Answerer, Found


@dataclass(frozen=True, slots=True)
class Filled:
    """A leaf of a schema.

    Attributes:
        path: As `Wanted.path`.
        value: Typed; None where nothing was found, or nothing of that type.
        found: What it was made of; the leaf's first question without an answer where nothing was.
    """

    path: tuple[str, ...]
    value: Value
    found: Found


def filled(document: Document, schema: object, left: Callable[[], bool]) -> tuple[Filled, ...]:
    """What a document says to each leaf of a schema, in the schema's order.

    Args:
        left: Says True once nobody waits any more; what comes then is whatever was found until then.

    Raises:
        ConfigurationError: The schema cannot be filled.
    """
    answerer = Answerer(document)
    leaves: list[Filled] = []
    for wanted in wanted_fields(schema):
        if left():
            break
        leaves.append(_leaf(answerer, wanted))
    return tuple(leaves)


def _leaf(answerer: Answerer, wanted: Wanted) -> Filled:
    for question in wanted.questions:
        found = answerer.answer(question)
        value = typed(wanted, found.answer)
        if value is not None:
            return Filled(wanted.path, value, found)
    return Filled(wanted.path, None, Found(wanted.questions[0]))
