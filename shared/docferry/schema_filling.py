"""A user's own schema: read from a file, and what a service filled it with in the schema's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format, struct_pb2

from docferry import report
from docferry.errors import ConfigurationError
from docferry.fields.schema import wanted_fields
from docferry.v1 import analysis_service_pb2

Leaves = dict[tuple[str, ...], dict[str, Any]]
"""What was found for each leaf, by its path."""

_EXACT = 2.0**53
"""Beyond it not every whole number is a float."""


def load_schema(file: Path) -> Any:
    """A schema from a JSON file: a JSON Schema of an object, or a list of questions.

    Raises:
        ConfigurationError: It cannot be read, is no JSON, or no schema that can be filled.
    """
    try:
        schema = json.loads(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}", remedy="name another file") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file} is no JSON: {error}", remedy="write the schema as JSON") from error
    wanted_fields(schema)
    return schema


def value_of(tree: Any) -> struct_pb2.Value:
    """Any JSON as a message.

    Raises:
        ConfigurationError: It is nothing that JSON knows, or nested too deep.
    """
    try:
        return json_format.ParseDict(tree, struct_pb2.Value())
    except (json_format.Error, ValueError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"the schema is no JSON: {error}", remedy="give what a JSON file may hold") from None


def tree_of(value: struct_pb2.Value) -> Any:
    """The JSON in a message; whole numbers are ints, an unset one is None.

    Raises:
        ConfigurationError: It holds a number that is none (NaN, infinity), or is nested too deep.
    """
    try:
        return _with_whole_numbers(json_format.MessageToDict(value))
    except (json_format.Error, ValueError, RecursionError) as error:
        raise ConfigurationError(f"the schema is no JSON: {error}", remedy="give what a JSON file may hold") from None


def _with_whole_numbers(tree: Any) -> Any:
    """A message knows one kind of number; what has no fraction was, or may as well have been, an int."""
    if isinstance(tree, float) and tree.is_integer() and abs(tree) < _EXACT:
        return int(tree)
    if isinstance(tree, dict):
        return {key: _with_whole_numbers(value) for key, value in tree.items()}
    return [_with_whole_numbers(value) for value in tree] if isinstance(tree, list) else tree


def leaves(response: analysis_service_pb2.FillResponse) -> Leaves:
    """What the document says to each leaf of a schema, by the leaf's path.

    Each is `{"found", "value", "text", "confidence", "evidence", "question"}`: `value` has the schema's type, `text` is
    as the document has it; where nothing was found, or nothing of that type, `found` is False, `value` None and
    `confidence` 0.
    """
    found: Leaves = {}
    for field in response.fields:
        told = report.answer(field.answer)
        found[tuple(field.path)] = {
            "found": field.found,
            "value": tree_of(field.value),
            "text": told["answer"],
            "confidence": told["confidence"],
            "evidence": told["evidence"],
            "question": told["question"],
        }
    return found


def as_rows(filled: Mapping[tuple[str, ...], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same as a list of named fields, for people to read."""
    return [
        {
            "name": ".".join(path),
            "normalized": str(leaf["value"]) if leaf["found"] else "not found",
            "confidence": leaf["confidence"],
        }
        for path, leaf in filled.items()
    ]
