"""POST /v1/read: a picture and perhaps a question in, the finished analysis out."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from docferry import report
from docferry.async_client import AsyncClient, finished
from docferry.errors import InputError
from docferry.v1 import analysis_pb2
from docferry_cloud.gateway.asking import json_body, only
from docferry_cloud.gateway.link import Link, metadata_of, while_connected
from docferry_cloud.gateway.pictures import Picture, picture_from_text
from docferry_cloud.gateway.problems import Refused
from docferry_cloud.gateway.reading import Order, is_read, read

LONGEST_WAIT_S = 300.0
_KEYS = ("image", "prompt", "effort", "wait_s", "file_name")
_FORM_KEYS = ("file", "prompt", "effort", "wait_s")
_FORM = "multipart/form-data"


async def read_endpoint(request: Request, link: Link, closing: asyncio.Event) -> Response:
    """Answer 200 with the analysis as `docferry submit --json` prints it; 422 if it failed; 202 if it goes on."""
    client = AsyncClient(link.channel, metadata=metadata_of(request))
    form = request.headers.get("content-type", "").lower().startswith(_FORM)
    order = await (_form_order if form else _json_order)(request)
    return await while_connected(request, _answer(client, order, closing))


async def _answer(client: AsyncClient, order: Order, closing: asyncio.Event) -> Response:
    analysis = await read(client, order, closing)
    tree = await asyncio.to_thread(report.analysis, order.pictures[0].name, analysis)
    if is_read(analysis) and order.prompt:
        tree["answers"].append(report.answer(await client.ask(analysis.analysis_id, order.prompt)))
    if finished(analysis.state):
        return JSONResponse(tree, 200 if is_read(analysis) else 422)
    return _goes_on(tree, analysis)


def _goes_on(tree: dict[str, Any], analysis: analysis_pb2.Analysis) -> Response:
    place = f"/v1/analyses/{analysis.analysis_id}"
    tree["next"] = {
        "analysis": place,
        "events": f"/v1/events?analysis_id={analysis.analysis_id}",
        "ask": f"{place}:ask",
        "page": f"/r/{analysis.analysis_id}",
    }
    return JSONResponse(tree, 202, {"location": place})


async def _json_order(request: Request) -> Order:
    tree = await json_body(request)
    only(tree, _KEYS)
    texts = {name: _text(tree, name) for name in ("image", "prompt", "effort", "file_name")}
    if not texts["image"]:
        raise InputError("image is missing", remedy="send it as base64 or as a data URI", field="image")
    picture = await asyncio.to_thread(picture_from_text, texts["image"], texts["file_name"][:255])
    return _order(request, picture, texts["prompt"], texts["effort"], tree.get("wait_s", 60))


async def _form_order(request: Request) -> Order:
    try:
        async with request.form(max_files=1, max_fields=8, max_part_size=16 << 10) as form:
            only(form, _FORM_KEYS)
            file = form.get("file")
            if file is None or isinstance(file, str):
                raise InputError("the form has no file", remedy="send the picture as `file`", field="file")
            picture = Picture(await file.read(), (file.filename or "upload")[:255])
            prompt, effort, wait = (str(form.get(name, "")) for name in ("prompt", "effort", "wait_s"))
            return _order(request, picture, prompt, effort, wait or 60)
    except MultiPartException as error:
        raise Refused(
            400, InputError(f"the form is malformed: {error.message[:200]}", remedy=f"send {_FORM}")
        ) from None


def _order(request: Request, picture: Picture, prompt: str, effort: str, wait: object) -> Order:
    try:
        seconds = float(wait) if isinstance(wait, (str, int, float)) and not isinstance(wait, bool) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_WAIT_S:
        raise InputError("wait_s cannot be used", remedy=f"give 0 to {LONGEST_WAIT_S:g} seconds", field="wait_s")
    key = request.headers.get("idempotency-key", "")[:255]
    return Order([picture], prompt.strip(), effort.lower(), seconds, key)


def _text(tree: dict[str, Any], name: str) -> str:
    value = tree.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{name} is no text", remedy="send a JSON string", field=name)
    return value
