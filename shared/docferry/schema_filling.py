"""Fill a user's own schema from a finished analysis, by asking the service one question a leaf."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from docferry import report
from docferry.errors import ConfigurationError
from docferry.fields.schema import Wanted, typed, wanted_fields
from docferry.v1 import analysis_pb2

Filled = dict[tuple[str, ...], dict[str, Any]]


class Asker(Protocol):
    """What answers questions about an analysis: `Client` does."""

    async def ask(self, analysis_id: str, question: str) -> analysis_pb2.Answer:
        """The answer; empty where the document does not hold it."""
        ...


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


async def fill(asker: Asker, analysis_id: str, schema: Any) -> Filled:
    """What the document says to each leaf of a schema, by the leaf's path.

    Each is `{"found", "value", "text", "confidence", "evidence", "question"}`: `value` has the schema's type, `text` is
    as the document has it; where nothing was found, or nothing of that type, `found` is False, `value` None and
    `confidence` 0.

    Raises:
        ConfigurationError: The schema cannot be filled.
        DocferryError: As `Asker.ask` says.
    """
    return {wanted.path: await _leaf(asker, analysis_id, wanted) for wanted in wanted_fields(schema)}


async def _leaf(asker: Asker, analysis_id: str, wanted: Wanted) -> dict[str, Any]:
    for question in wanted.questions:
        answer = await asker.ask(analysis_id, question)
        value = typed(wanted, answer.answer)
        if value is not None:
            told = report.answer(answer)
            return {
                "found": True,
                "value": value,
                "text": told["answer"],
                "confidence": told["confidence"],
                "evidence": told["evidence"],
                "question": question,
            }
    return {
        "found": False,
        "value": None,
        "text": "",
        "confidence": 0.0,
        "evidence": [],
        "question": wanted.questions[0],
    }


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
