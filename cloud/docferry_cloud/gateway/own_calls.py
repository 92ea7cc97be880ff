"""What the OpenAPI document says of the calls that mirror no rpc."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

_FREE = {"type": "object", "additionalProperties": True}


def own_paths() -> Tree:
    """Their paths."""
    effort = {"type": "string", "enum": ["fast", "deep", "auto"]}
    wait = {
        "type": "number",
        "minimum": 0,
        "maximum": 300,
        "default": 60,
        "description": "How long to wait, in seconds.",
    }
    prompt = {"type": "string", "maxLength": 2000, "description": "A question about the document."}
    form = {"file": {"type": "string", "contentMediaType": "application/octet-stream"}}
    common = {"prompt": prompt, "effort": effort, "wait_s": wait}
    text = {"type": "string", "description": "Base64, or a data URI. Addresses are not fetched."}
    body = {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["image"],
                "additionalProperties": False,
                "properties": {"image": text, "file_name": {"type": "string"}, **common},
            }
        },
        "multipart/form-data": {"schema": {"type": "object", "required": ["file"], "properties": {**form, **common}}},
    }
    document = _json("The document, as `docferry submit --json` prints it.", "Document_JSON")
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same key gives the same analysis again.",
        "schema": {"type": "string", "maxLength": 255},
    }
    return {
        "/v1/read": {
            "post": {
                "operationId": "read",
                "summary": "Read a picture or a file, and perhaps answer a question about it",
                "parameters": [key],
                "requestBody": {"required": True, "content": body},
                "responses": {
                    "200": document,
                    "202": _json("It goes on; `next` says where.", "Document_JSON"),
                    "422": _json("The document failed; `error` says why.", "Document_JSON"),
                },
            }
        },
        "/v1/chat/completions": {
            "post": {
                "operationId": "chat",
                "summary": "A chat completion in OpenAI's shape over pictures as data URIs",
                "parameters": [key],
                "requestBody": {"required": True, "content": {"application/json": {"schema": _FREE}}},
                "responses": {"200": _json("The completion, or its chunks as server-sent events.", "")},
            }
        },
        "/v1/models": {
            "get": {
                "operationId": "models",
                "summary": "The names that a chat completion's `model` takes",
                "responses": {"200": _json("The models.", "")},
            }
        },
        "/r/{analysis_id}": {
            "get": {
                "operationId": "result_page",
                "summary": "The result as a page, in English or Chinese; a claim's session comes in a cookie",
                "parameters": [{"name": "analysis_id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "The page.", "content": {"text/html": {}}}},
            }
        },
        "/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "This document",
                "responses": {"200": _json("This document.", "")},
            }
        },
    }


def own_schemas() -> Tree:
    """Their schemas, and that of every error."""
    error = {
        "code": {"type": "integer", "description": "The HTTP code."},
        "status": {"type": "string", "description": "The google.rpc.Code's name."},
        "message": {"type": "string"},
        "reason": {"type": "string", "description": "UPPER_SNAKE_CASE, stable."},
        "remedy": {"type": "string", "description": "What can be done about it."},
        "details": {"type": "array", "items": _FREE},
    }
    return {
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"type": "object", "required": [*error], "properties": error}},
        },
        "Document_JSON": {**_FREE, "description": "Stable keys; more may be added.", "required": ["file", "status"]},
    }


def _json(text: str, schema: str) -> Tree:
    found = {"$ref": f"#/components/schemas/{schema}"} if schema else _FREE
    return {"description": text, "content": {"application/json": {"schema": found}}}
