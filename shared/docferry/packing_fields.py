"""Columns for the fields: what a field says is mostly what its lines say, so only the difference is written."""

from __future__ import annotations

from collections.abc import Sequence

from docferry.document import Document, Evidence, Field, Line
from docferry.errors import EnvelopeError, EnvelopeTooLarge
from docferry.v1 import envelope_pb2 as pb
from docferry.wire import field_from_proto, field_to_proto

MAX_FIELDS = 200
MAX_VALUE = 4000
"""Most fields of a document, and most characters of a name or value: what a small message could be blown up to."""

Place = tuple[int, Line]
"""A line and the number of its page."""


def pack_fields(
    packed: pb.PackedReading, texts: pb.PackedTexts, fields: Sequence[Field], places: Sequence[Place]
) -> None:
    """Write the fields: by columns if each was read from whole lines, as messages if one was not.

    Args:
        places: All lines of all pages, as they are packed.
    """
    index = {(page, line.id): at for at, (page, line) in enumerate(places)}
    if not all(_fits(field, index, places) for field in fields):
        packed.fields.extend(field_to_proto(field) for field in fields)
        return
    for field in fields:
        lines = [index[evidence.page, evidence.line] for evidence in field.evidence]
        same = field.value == _joined(lines, places)
        texts.field_names += f"{field.name}\n"
        texts.field_values += "\n" if same else f"{field.value}\n"
        texts.field_normalized += "\n" if field.normalized == field.value else f"{field.normalized}\n"
        packed.field_line_counts.append(len(lines))
        packed.field_lines.extend(lines)
    packed.field_confidences = bytes(round(255 * min(1.0, max(0.0, field.confidence))) for field in fields)


def unpack_fields(packed: pb.PackedReading, texts: pb.PackedTexts, document: Document) -> tuple[Field, ...]:
    """The fields, their evidence taken from the unpacked document.

    Raises:
        EnvelopeTooLarge: There are more fields, or longer ones, than a document holds.
        EnvelopeError: The columns disagree, or a field was read from a line that is not there.
    """
    _check_extent(packed, texts)
    if packed.fields:
        return tuple(field_from_proto(field) for field in packed.fields)
    places = [(number, line) for number, page in enumerate(document.pages) for line in page.lines]
    names = texts.field_names.split("\n")[:-1]
    values, normalized = texts.field_values.split("\n")[:-1], texts.field_normalized.split("\n")[:-1]
    counts, lines = packed.field_line_counts, packed.field_lines
    agree = len(names) == len(values) == len(normalized) == len(packed.field_confidences) == len(counts)
    if not agree or sum(counts) != len(lines) or any(at >= len(places) for at in lines):
        raise EnvelopeError(
            "the columns of the structure's fields disagree",
            remedy="pack it with docferry.packing",
            field="structure.field_names",
        )
    fields: list[Field] = []
    start = 0
    for number, name in enumerate(names):
        own = lines[start : start + counts[number]]
        start += counts[number]
        # Many fields may point at one long line: what they would join to is bounded before it is made.
        if not values[number] and sum(len(places[at][1].text) + 1 for at in own) > MAX_VALUE + 1:
            raise _too_large()
        value = values[number] or _joined(own, places)
        fields.append(
            Field(
                name=name,
                value=value,
                normalized=normalized[number] or value,
                confidence=packed.field_confidences[number] / 255,
                evidence=tuple(Evidence(page, line.box, line.id) for page, line in (places[at] for at in own)),
            )
        )
    return tuple(fields)


def _check_extent(packed: pb.PackedReading, texts: pb.PackedTexts) -> None:
    messages = (text for field in packed.fields for text in (field.name, field.value, field.normalized))
    columns = (texts.field_names, texts.field_values, texts.field_normalized)
    longest = max(map(len, (*messages, *(text for column in columns for text in column.split("\n")))), default=0)
    evidence = max((*(len(field.evidence) for field in packed.fields), *packed.field_line_counts), default=0)
    if max(len(packed.fields), len(packed.field_line_counts), evidence) > MAX_FIELDS or longest > MAX_VALUE:
        raise _too_large()


def _too_large() -> EnvelopeTooLarge:
    return EnvelopeTooLarge(
        "the structure's fields hold more than a document does",
        remedy=f"at most {MAX_FIELDS} fields with as many lines each, {MAX_VALUE} characters a value",
        field="structure.fields",
    )


def _fits(field: Field, index: dict[tuple[int, str], int], places: Sequence[Place]) -> bool:
    """Whether the columns can say exactly this field."""
    texts = (field.name, field.value, field.normalized)
    if not all(texts) or any("\n" in text for text in texts):
        return False
    if len(field.evidence) > MAX_FIELDS:
        return False
    found = [index.get((evidence.page, evidence.line)) for evidence in field.evidence]
    return all(
        at is not None and places[at][1].box == evidence.box for at, evidence in zip(found, field.evidence, strict=True)
    )


def _joined(lines: Sequence[int], places: Sequence[Place]) -> str:
    return " ".join(places[at][1].text for at in lines)
