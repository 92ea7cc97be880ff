"""From an HTTP request to the contract's message, and from a message to JSON: strict, bounded, never a guess."""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from google.protobuf import json_format
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.datastructures import QueryParams
from starlette.requests import Request

from docferry.channel import MAX_ENVELOPE_BYTES
from docferry.errors import EnvelopeTooLarge, InputError
from docferry_cloud.gateway.problems import Refused
from docferry_cloud.gateway.routes import MirrorRoute

MAX_DEPTH = 32
"""Objects and lists within each other in a JSON body."""
MOST_JSON = 3 * MAX_ENVELOPE_BYTES
"""Bytes of a request message as JSON: base64 takes a third more than its bytes, names and marks the rest."""
_IN_A_THREAD = 64 << 10
_MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SHORT_NAMES = {"MD": "MARKDOWN"}


async def json_body(request: Request, most: int | None = None) -> dict[str, Any]:
    """The JSON object in a body; an empty body is an empty object.

    Args:
        most: Bytes it may have; None leaves it to the guard.

    Raises:
        Refused: It is said to be something else than JSON, or it is larger.
        InputError: It is no JSON object, or one that is nested too deep.
    """
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refused(415, InputError(f"the body is {kind[:100]}", remedy="send application/json"))
    raw = await request.body()
    if most is not None and len(raw) > most:
        remedy = "announce large parts and PUT their bytes"
        raise Refused(413, EnvelopeTooLarge(f"the body has {len(raw)} bytes, at most {most} are taken", remedy=remedy))
    if not raw.strip():
        return {}
    return await asyncio.to_thread(parsed, raw) if len(raw) > _IN_A_THREAD else parsed(raw)


def parsed(raw: bytes) -> dict[str, Any]:
    """A JSON object from bytes.

    Raises:
        InputError: It is none, or one that is nested too deep.
    """
    depth = 0
    for mark in _MARKS.finditer(raw):
        first = raw[mark.start()]
        depth += (first in b"[{") - (first in b"]}")
        if depth > MAX_DEPTH:
            raise InputError(
                f"the body is nested more than {MAX_DEPTH} deep", remedy="send what the contract describes"
            )
    try:
        tree = json.loads(raw.decode(), parse_constant=_no_constant)
        if _SURROGATE.search(raw):
            # Half a character is valid JSON and no text: protobuf's own parser fails on it without naming a reason.
            json.dumps(tree, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is no JSON: {_shown(error)}", remedy="send a JSON object in UTF-8") from None
    if not isinstance(tree, dict):
        raise InputError("the body is no JSON object", remedy="send {...}")
    return tree


async def message_of(route: MirrorRoute, request: Request) -> Message:
    """The rpc's request message.

    Raises:
        InputError: A field is unknown, malformed or given twice.
        EnvelopeTooLarge: It exceeds what one message may have.
    """
    rpc = route.descriptor
    tree = await json_body(request, MOST_JSON) if route.body else {}
    given: dict[str, Any] = query_fields(request.query_params, route)
    given |= {name: request.path_params[name] for name in route.path_fields}
    for name, value in given.items():
        camel = rpc.input_type.fields_by_name[name].json_name
        if any(tree.get(key, value) != value for key in (name, camel)):
            raise InputError(f"{name} is one thing in the address and another in the body", remedy="give it once")
        tree.pop(camel, None)
        tree[name] = value
    message = GetMessageClass(rpc.input_type)()
    large = route.body and len(await request.body()) > _IN_A_THREAD
    if large:
        await asyncio.to_thread(fill, message, tree)
    else:
        fill(message, tree)
    if message.ByteSize() > MAX_ENVELOPE_BYTES + _IN_A_THREAD:
        raise Refused(
            413,
            EnvelopeTooLarge(
                f"the message has {message.ByteSize()} bytes, at most {MAX_ENVELOPE_BYTES} are taken",
                remedy="announce large parts and PUT their bytes",
            ),
        )
    return message


def fill(message: Message, tree: dict[str, Any]) -> None:
    """Set a message's fields from proto3 JSON.

    Raises:
        InputError: They do not fit.
    """
    try:
        json_format.ParseDict(tree, message, max_recursion_depth=MAX_DEPTH)
    except (json_format.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"the request does not fit {message.DESCRIPTOR.name}: {_shown(error)}", remedy="see /openapi.json"
        ) from None


def query_fields(query: QueryParams, route: MirrorRoute) -> dict[str, Any]:
    """The fields that stand in the query, as proto3 JSON.

    Raises:
        InputError: A parameter is unknown, or given twice where one is taken.
    """
    fields = route.descriptor.input_type.fields_by_name
    only(query.keys(), route.query)
    tree: dict[str, Any] = {}
    for name in dict.fromkeys(query.keys()):
        values = [_value(fields[name], text) for text in query.getlist(name)]
        if not fields[name].is_repeated and len(values) != 1:
            raise InputError(f"{name} is given {len(values)} times", remedy="give it once", field=name)
        tree[name] = values if fields[name].is_repeated else values[0]
    return tree


def only(names: Iterable[str], known: tuple[str, ...]) -> None:
    """Refuse a parameter that nobody knows.

    Raises:
        InputError: There is one.
    """
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known) or 'none'}"
            raise InputError(f"unknown parameter {name[:100]!r}", remedy=remedy, field=name[:100])


def json_of(message: Message) -> dict[str, Any]:
    """A message as proto3 JSON with the contract's own names; what is not set is left out."""
    tree: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return tree


def value_name(enum: EnumDescriptor, text: str) -> str:
    """A value's full name from a short one: `markdown` or `FORMAT_MARKDOWN`; an unknown one is given back."""
    upper = text.upper()
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
    for name in (upper, prefix + upper, prefix + _SHORT_NAMES.get(upper, upper)):
        if name in enum.values_by_name:
            return name
    return text


def _value(field: FieldDescriptor, text: str) -> Any:
    if field.enum_type is not None:
        return value_name(field.enum_type, text)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _shown(error: Exception) -> str:
    return " ".join(str(error).encode("utf-8", "replace").decode().split())[:200]
