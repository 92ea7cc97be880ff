"""A user's own schema: what it asks of a document, and the answers in its shape. Pure.

A schema is a JSON Schema of an object (nested objects, texts, numbers, dates, choices, lists of such) or a list of
questions. Each leaf becomes one question in several wordings; what finds an answer goes back to the leaf's place with
its confidence and evidence, typed as the schema says. Nothing is made up: a leaf without an answer, or with one that is
not of its type, is not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from docferry.errors import ConfigurationError
from docferry.fields.amounts import find_amounts, parse_amount
from docferry.fields.dates import find_dates

MOST_FIELDS = 100
_MOST_DEPTH = 8
_MOST_LETTERS = 2000
"""Characters of a question, as the service takes them."""

_KINDS = frozenset({"string", "number", "integer", "boolean"})
_TRUE, _FALSE = frozenset({"yes", "true", "是"}), frozenset({"no", "false", "否"})

Value = str | int | float | bool | list["Value"] | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """One leaf of a schema.

    Attributes:
        path: Where it stands in the schema; a question of a list is its own path.
        questions: Wordings to be asked in this order until one is answered.
        kind: string, number, integer, boolean or date.
        many: Whether it is a list of such values.
        choices: What a string must be one of; empty for any.
    """

    path: tuple[str, ...]
    questions: tuple[str, ...]
    kind: str = "string"
    many: bool = False
    choices: tuple[str, ...] = ()


def wanted_fields(schema: object) -> tuple[Wanted, ...]:
    """What a schema asks for, in its order.

    Args:
        schema: A parsed JSON Schema whose top is an object, or a list of questions.

    Raises:
        ConfigurationError: It is neither, asks for nothing or for more than `MOST_FIELDS` things, or uses a part of
            JSON Schema that no single answer can fill.
    """
    if isinstance(schema, list):
        if not all(isinstance(question, str) and question.strip() for question in schema):
            raise _refused("a list must hold questions", "write each question as a text")
        found = [Wanted((question,), (question,)) for question in dict.fromkeys(schema)]
    elif isinstance(schema, Mapping):
        found = _of_object(schema, ())
    else:
        raise _refused(f"it is a {type(schema).__name__}", "give an object (JSON Schema) or a list of questions")
    if not 0 < len(found) <= MOST_FIELDS:
        raise _refused(f"it asks for {len(found)} fields", f"ask for 1 to {MOST_FIELDS}")
    for wanted in found:
        if any(len(question) > _MOST_LETTERS for question in wanted.questions):
            raise _refused(f"{_named(wanted.path[:1])[:60]}... is too long", f"use at most {_MOST_LETTERS} characters")
    return tuple(found)


def typed(wanted: Wanted, answer: str) -> Value:
    """An answer as the schema's type; None where it is none of that type, or empty. Never raises."""
    if not wanted.many:
        return _one(wanted, answer)
    try:
        parts = json.loads(answer)
    except ValueError:
        return None
    if not isinstance(parts, list) or not parts:
        return None
    values: list[Value] = [_one(wanted, str(part)) for part in parts]
    # A list with a hole in it would be taken for the whole.
    return None if None in values else values


def in_shape(schema: object, found: Mapping[tuple[str, ...], Any]) -> Any:
    """What was found for each `Wanted.path`, in the shape of the schema: nested objects, or a list.

    Raises:
        KeyError: Something wanted is missing in `found`.
    """
    paths = [wanted.path for wanted in wanted_fields(schema)]
    if isinstance(schema, list):
        return [found[path] for path in paths]
    tree: dict[str, Any] = {}
    for path in paths:
        place = tree
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = found[path]
    return tree


def _of_object(schema: Mapping[str, Any], path: tuple[str, ...]) -> list[Wanted]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(path) >= _MOST_DEPTH:
        raise _refused(
            f"{_named(path)} has no properties, or is nested too deeply",
            f"give 'properties', {_MOST_DEPTH} deep at most",
        )
    found: list[Wanted] = []
    for name, given in properties.items():
        here = (*path, str(name))
        if not isinstance(given, Mapping):
            raise _refused(f"{_named(here)} is no schema", "give it as an object with a type")
        if _kind(given, here) == "object":
            found += _of_object(given, here)
        else:
            found.append(_leaf(given, here))
    return found


def _leaf(given: Mapping[str, Any], path: tuple[str, ...]) -> Wanted:
    kind = _kind(given, path)
    many = kind == "array"
    item = given.get("items") if many else given
    if not isinstance(item, Mapping):
        raise _refused(f"{_named(path)} does not say what it lists", "give 'items' with a type")
    kind = _kind(item, path)
    if kind not in _KINDS:
        raise _refused(
            f"{_named(path)} is of type {kind!r}",
            f"use one of {', '.join(sorted(_KINDS))}, or a list or object of them",
        )
    if kind == "string" and item.get("format") in {"date", "date-time"}:
        kind = "date"
    name = " ".join(_words(part) for part in path)
    texts = [name, *(str(given[key]).strip() for key in ("title", "description") if given.get(key))]
    if many:
        texts = [f"all values of {text} as JSON" for text in texts]
    choices = item.get("enum", ())
    if not isinstance(choices, Sequence) or isinstance(choices, str):
        raise _refused(f"{_named(path)} has an enum that is no list", "give the choices as a list")
    return Wanted(path, tuple(dict.fromkeys(texts)), kind, many, tuple(str(choice) for choice in choices))


def _kind(given: Mapping[str, Any], path: tuple[str, ...]) -> str:
    kind = given.get("type", "object" if "properties" in given else "string")
    if isinstance(kind, list):
        named = [one for one in kind if one != "null"]
        kind = named[0] if len(named) == 1 else None
    unread = [key for key in ("$ref", "anyOf", "oneOf", "allOf") if key in given]
    if unread or not isinstance(kind, str):
        raise _refused(f"{_named(path)} uses {', '.join(unread) or 'several types'}", "write one type out at its place")
    return kind


def _one(wanted: Wanted, answer: str) -> Value:
    text = answer.strip()
    if not text:
        return None
    if wanted.choices:
        same = [choice for choice in wanted.choices if choice.casefold() == text.casefold()]
        return same[0] if len(same) == 1 else None
    match wanted.kind:
        case "number" | "integer":
            value = _number(text)
            return None if value is None else _as_number(value, whole=wanted.kind == "integer")
        case "date":
            dates = find_dates(text)
            return dates[0].value.isoformat() if len(dates) == 1 else None
        case "boolean":
            return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.casefold())
    return text


def _as_number(value: Decimal, *, whole: bool) -> int | float | None:
    if value == int(value):
        return int(value)
    return None if whole else float(value)


def _number(text: str) -> Decimal | None:
    """The one number of a text, which may have a currency or a unit."""
    if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?", text, re.ASCII):
        return Decimal(text)
    found = find_amounts(text)
    return parse_amount(text) if len(found) != 1 else found[0].value


def _words(name: str) -> str:
    """invoiceNumber and invoice_number as a question would have them."""
    return re.sub(r"[_\-.]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip().lower()


def _named(path: tuple[str, ...]) -> str:
    return repr(".".join(path)) if path else "the top"


def _refused(what: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"the schema cannot be filled: {what}", remedy=remedy)
