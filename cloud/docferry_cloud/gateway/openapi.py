"""The OpenAPI 3.1 document: the mirror from its table and the contract's descriptors, the other calls by hand."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from docferry_cloud.gateway.own_calls import own_paths, own_schemas
from docferry_cloud.gateway.routes import MIRROR, MirrorRoute, Shape
from docferry_cloud.gateway.schemas import Schemas, comments

Tree = dict[str, Any]

_ERRORS = {"4XX": {"$ref": "#/components/responses/Error"}, "5XX": {"$ref": "#/components/responses/Error"}}
_TEXT_STREAM = {
    "text/event-stream": {"schema": {"type": "string"}},
    "application/x-ndjson": {"schema": {"type": "string"}},
}


def document() -> Tree:
    """The whole document."""
    schemas = Schemas()
    paths: Tree = {}
    for route in MIRROR:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    for path, operations in own_paths().items():
        for operation in operations.values():
            operation["responses"] |= _ERRORS
        paths.setdefault(path, {}).update(operations)
    error = {
        "description": "An error.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Docferry",
            "version": version("docferry"),
            "description": "The REST/JSON mirror of docferry.v1. JSON is proto3 JSON with the contract's snake_case "
            "names: 64-bit integers are strings, bytes are base64, fields that are not set are left out.",
        },
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {
            "schemas": {**dict(sorted(schemas.made.items())), **own_schemas()},
            "responses": {"Error": error},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: MirrorRoute, schemas: Schemas) -> Tree:
    rpc = route.descriptor
    fields = rpc.input_type.fields_by_name
    text = comments().get(rpc.full_name, "")
    suffix = "ByDocument" if "document_id" in route.path_fields else ""
    operation: Tree = {
        "operationId": f"{route.rpc.replace('.', '_')}{suffix}",
        "tags": [rpc.containing_service.name],
        "summary": text.partition(". ")[0].rstrip("."),
        "description": text,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in route.path_fields
        ]
        + [
            {"name": name, "in": "query", "schema": _query_schema(name, schemas.field(fields[name]))}
            for name in route.query
        ],
        "responses": {"200": _answer(route, schemas), **_ERRORS},
    }
    if route.body:
        body = schemas.inline(rpc.input_type, leave_out=route.path_fields)
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    elif route.shape is Shape.CHUNK:
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
        operation["parameters"].append(
            {
                "name": "Content-Range",
                "in": "header",
                "description": "`bytes FIRST-LAST/TOTAL`: which piece of the part the body is; without it, all of it.",
                "schema": {"type": "string"},
            }
        )
    elif route.shape is Shape.EVENTS:
        operation["parameters"].append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "The id of the last event seen; goes before resume_token.",
                "schema": {"type": "string"},
            }
        )
    return operation


def _query_schema(name: str, schema: Tree) -> Tree:
    if name == "sha256":
        return {"type": "string", "pattern": "^[0-9a-fA-F]{64}$", "description": "SHA-256 of the whole part, in hex."}
    return schema


def _answer(route: MirrorRoute, schemas: Schemas) -> Tree:
    output = route.descriptor.output_type
    json = {"application/json": {"schema": schemas.message(output)}}
    if route.shape is Shape.FILE:
        return {"description": "The file.", "content": {"application/octet-stream": {}}}
    if route.shape is Shape.EVENTS:
        schemas.message(output)
        return {"description": "Events, without an end.", "content": _TEXT_STREAM}
    if route.shape is Shape.PIECES:
        return {"description": comments().get(output.full_name, "The answer."), "content": {**json, **_TEXT_STREAM}}
    return {"description": comments().get(output.full_name, "The answer."), "content": json}
