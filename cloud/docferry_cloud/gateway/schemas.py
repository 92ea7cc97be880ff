"""JSON Schemas of the contract's messages, as proto3 JSON writes them with the contract's own names."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

Schema = dict[str, Any]

_F = FieldDescriptor
_SIGNED: Schema = {"type": "integer", "minimum": -(1 << 31), "maximum": (1 << 31) - 1}
_UNSIGNED: Schema = {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1}
# JSON's numbers are doubles to many readers: proto3 JSON writes 64 bits as text and reads both.
_LONG: Schema = {"type": ["string", "integer"], "format": "int64", "pattern": r"^-?\d+$"}
_SCALARS: dict[int, Schema] = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), _SIGNED),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32), _UNSIGNED),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_SINT64, _F.TYPE_FIXED64, _F.TYPE_SFIXED64), _LONG),
    _F.TYPE_FLOAT: {"type": "number"},
    _F.TYPE_DOUBLE: {"type": "number"},
    _F.TYPE_BOOL: {"type": "boolean"},
    _F.TYPE_STRING: {"type": "string"},
    _F.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
_WELL_KNOWN: dict[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d+(\.\d+)?s$", "examples": ["60s"]},
    # Any JSON.
    "google.protobuf.Value": {},
    "google.rpc.Status": {"type": "object", "description": "A google.rpc.Status: code, message, details."},
}


@functools.cache
def comments() -> dict[str, str]:
    """What proto/ says of every rpc, message, field and enum, by full name (made by docs/generate.py)."""
    text = (resources.files("docferry_cloud.gateway") / "comments.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


class Schemas:
    """Collects the schemas of messages as they are referred to."""

    def __init__(self) -> None:
        self.made: dict[str, Schema] = {}

    def message(self, descriptor: Descriptor) -> Schema:
        """A reference to a message's schema."""
        if descriptor.full_name in _WELL_KNOWN:
            return _WELL_KNOWN[descriptor.full_name]
        name = _name(descriptor.full_name)
        if name not in self.made:
            # Before its fields: a message may hold itself.
            self.made[name] = {}
            self.made[name] = self.inline(descriptor, leave_out=())
        return {"$ref": f"#/components/schemas/{name}"}

    def inline(self, descriptor: Descriptor, *, leave_out: tuple[str, ...]) -> Schema:
        """A message's schema in place, without the fields that stand elsewhere in the request."""
        schema: Schema = {
            "type": "object",
            "properties": {f.name: self.field(f) for f in descriptor.fields if f.name not in leave_out},
        }
        if text := comments().get(descriptor.full_name):
            schema["description"] = text
        return schema

    def field(self, field: FieldDescriptor) -> Schema:
        """A field's schema."""
        schema = self._value(field)
        if field.is_repeated:
            schema = {"type": "array", "items": schema}
        text = comments().get(field.full_name)
        # What stands beside a reference is allowed since 3.1.
        return {**schema, "description": text} if text else schema

    def _value(self, field: FieldDescriptor) -> Schema:
        if field.message_type is not None:
            return self.message(field.message_type)
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        return dict(_SCALARS[field.type])

    def _enum(self, enum: EnumDescriptor) -> Schema:
        name = _name(enum.full_name)
        lines = [f"`{value.name}`: {comments().get(f'{enum.full_name}.{value.name}', '')}" for value in enum.values]
        self.made[name] = {
            "type": "string",
            "enum": [value.name for value in enum.values],
            "description": "\n".join([comments().get(enum.full_name, ""), *lines]).strip(),
        }
        return {"$ref": f"#/components/schemas/{name}"}


def _name(full: str) -> str:
    return full.removeprefix("docferry.v1.")
