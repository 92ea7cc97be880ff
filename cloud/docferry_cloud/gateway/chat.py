"""POST /v1/chat/completions and GET /v1/models in OpenAI's shape: pictures and a question in, an answer out.

`docferry` answers the last user message's text from the pictures in the conversation, and gives the document as
Markdown where there is no text. `docferry-markdown` always gives Markdown. Pictures come as data URIs only.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc.aio
from google.rpc import status_pb2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from docferry import report
from docferry.async_client import AsyncClient, finished
from docferry.errors import DocferryError, InputError
from docferry.status import error_of
from docferry.v1 import analysis_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.gateway.asking import json_body
from docferry_cloud.gateway.link import Link, Metadata, metadata_of, while_connected
from docferry_cloud.gateway.pictures import Picture, picture_from_text
from docferry_cloud.gateway.problems import Refused, reason_and_remedy, status_and_code
from docferry_cloud.gateway.reading import Order, is_read, read
from docferry_cloud.gateway.routes import SERVICES
from docferry_cloud.gateway.streams import SSE, Stream, first_of, framed, rest_of

ANSWERS, MARKDOWN = "docferry", "docferry-markdown"
NOT_FOUND = "The document does not hold the answer."
WAIT_S = 300.0
_LISTED = 1_700_000_000
_PIECE = 2000
_MAX_MESSAGES = 256
_METHODS = SERVICES["AnalysisService"].methods_by_name


@dataclass(frozen=True, slots=True)
class Chat:
    """A checked request."""

    model: str
    prompt: str
    pictures: list[Picture]
    stream: bool
    usage: bool


async def models_endpoint(_: Request) -> Response:
    """The models' names; the same for everyone, so nothing about a caller is told."""
    rows = [{"id": name, "object": "model", "created": _LISTED, "owned_by": "docferry"} for name in (ANSWERS, MARKDOWN)]
    return JSONResponse({"object": "list", "data": rows})


async def chat_endpoint(request: Request, link: Link, closing: asyncio.Event) -> Response:
    """One completion, whole or streamed; errors in OpenAI's shape."""
    try:
        metadata = metadata_of(request)
        chat = await _chat(await json_body(request))
        order = Order(
            chat.pictures,
            chat.prompt if chat.model == ANSWERS else "",
            wait_s=WAIT_S,
            key=request.headers.get("idempotency-key", "")[:255],
        )
        analysis = await while_connected(
            request, _analysis(AsyncClient(link.channel, metadata=metadata), order, closing)
        )
        talk = _Talk(chat, analysis)
        if not order.prompt:
            text = analysis.versions[-1].interpretation.markdown
            if chat.stream:
                return Stream(talk.streamed(_cut(text)), SSE, lambda: None)
            return JSONResponse(talk.whole(text))
        return await _answered(request, link, metadata, talk)
    except (grpc.aio.AioRpcError, DocferryError, Refused) as failure:
        return _refusal(failure)


async def _answered(request: Request, link: Link, metadata: Metadata, talk: _Talk) -> Response:
    ask = pb.AskRequest(analysis_id=talk.analysis.analysis_id, question=talk.chat.prompt)
    call = link.stream(_METHODS["Ask"], ask, metadata)
    first = await while_connected(request, first_of(call))

    async def texts() -> AsyncIterator[str]:
        said = False
        async for piece in rest_of(first, call):
            if piece.HasField("answer"):
                talk.answer = piece.answer
            if piece.text:
                said = True
                yield piece.text
        if not said:
            yield NOT_FOUND

    if talk.chat.stream:
        return Stream(talk.streamed(texts()), SSE, call.cancel)
    try:
        return JSONResponse(talk.whole(await while_connected(request, _joined(texts()))))
    finally:
        call.cancel()


async def _joined(texts: AsyncIterator[str]) -> str:
    return "".join([text async for text in texts])


async def _analysis(client: AsyncClient, order: Order, closing: asyncio.Event) -> analysis_pb2.Analysis:
    analysis = await read(client, order, closing)
    if not finished(analysis.state):
        error = InputError(f"analysis {analysis.analysis_id} goes on", remedy="ask for it later: GET /v1/analyses/ID")
        # Not 5xx: nothing is wrong, and the caller may come back for it.
        raise Refused(408, error)
    if not is_read(analysis):
        raise Refused(422, error_of(analysis.error) if analysis.HasField("error") else InputError("it was cancelled"))
    return analysis


class _Talk:
    """What the answers of one completion have in common."""

    def __init__(self, chat: Chat, analysis: analysis_pb2.Analysis) -> None:
        self.chat = chat
        self.analysis = analysis
        self.answer: analysis_pb2.Answer | None = None
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def whole(self, text: str) -> dict[str, Any]:
        """The completion object."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": self._usage(text),
            "docferry": self._more(),
        }

    async def streamed(self, texts: AsyncIterator[str]) -> AsyncIterator[bytes]:
        """The chunks, `[DONE]` at the end; an error in their midst is a chunk of its own."""
        said: list[str] = []
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for text in texts:
                said.append(text)
                yield self._chunk({"content": text})
            yield self._chunk({}, reason="stop", docferry=self._more())
            if self.chat.usage:
                tree = {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage("".join(said))}
                yield framed(SSE, tree)
        except grpc.aio.AioRpcError as failure:
            status, code, _ = status_and_code(failure)
            yield framed(SSE, _error_tree(status, code))
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], *, reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return framed(SSE, {**self._head("chat.completion.chunk"), "choices": [choice], **more})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self.chat.model}

    def _usage(self, text: str) -> dict[str, int]:
        # There is no tokenizer here: words, as white space parts them.
        asked, said = len(self.chat.prompt.split()), len(text.split())
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}

    def _more(self) -> dict[str, Any]:
        more: dict[str, Any] = {"analysis_id": self.analysis.analysis_id, "document_id": self.analysis.document_id}
        if self.answer is not None:
            more |= report.answer(self.answer)
        return more


async def _chat(tree: dict[str, Any]) -> Chat:
    model = tree.get("model")
    if model not in (ANSWERS, MARKDOWN):
        error = InputError(f"there is no model {str(model)[:100]!r}", remedy=f"use {ANSWERS}", field="model")
        raise Refused(404, error)
    if tree.get("n") not in (None, 1) or tree.get("tools") or tree.get("functions"):
        raise InputError("n above 1 and tools are not offered", remedy="leave them out", field="n")
    shape = tree.get("response_format")
    if shape is not None and not (isinstance(shape, dict) and shape.get("type") == "text"):
        raise InputError("only text is answered", remedy="leave response_format out", field="response_format")
    messages = tree.get("messages")
    if not isinstance(messages, list) or not messages or len(messages) > _MAX_MESSAGES:
        raise InputError("messages is no list of messages", remedy=f"send 1..{_MAX_MESSAGES}", field="messages")
    prompt, urls = "", []
    for message in messages:
        text, found = _content(message)
        urls += found
        if message.get("role") == "user":
            prompt = text
    pictures = [
        await asyncio.to_thread(picture_from_text, url, f"page-{number}.png" if len(urls) > 1 else "", field="messages")
        for number, url in enumerate(urls, 1)
    ]
    if not pictures:
        raise InputError("no message holds a picture", remedy="send an image_url with a data URI", field="messages")
    options = tree.get("stream_options")
    usage = isinstance(options, dict) and options.get("include_usage") is True
    return Chat(str(model), prompt.strip(), pictures, tree.get("stream") is True, usage)


def _content(message: Any) -> tuple[str, list[str]]:
    """The text of one message and the addresses of its pictures."""
    content = message.get("content") if isinstance(message, dict) else 0
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InputError("a message is malformed", remedy="send {role, content}", field="messages")
    texts, urls = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        value = part.get(kind) if isinstance(kind, str) else None
        if kind == "text" and isinstance(value, str):
            texts.append(value)
        elif kind == "image_url" and isinstance(value, dict) and isinstance(value.get("url"), str):
            if value["url"][:5].lower() != "data:":
                raise InputError(
                    "addresses are not fetched, the picture itself is needed",
                    remedy="send data:image/png;base64,...",
                    field="messages",
                )
            urls.append(value["url"])
        else:
            raise InputError("a part of a message is neither text nor image_url", remedy="send these", field="messages")
    return "\n".join(texts), urls


async def _cut(text: str) -> AsyncIterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def _refusal(failure: Exception) -> Response:
    status, code, headers = status_and_code(failure)
    return JSONResponse(_error_tree(status, code), code, headers)


def _error_tree(status: status_pb2.Status, code: int) -> dict[str, Any]:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(code, "server_error" if code >= 500 else "invalid_request_error")
    reason, _ = reason_and_remedy(status)
    field = getattr(error_of(status), "metadata", {}).get("field")
    return {"error": {"message": status.message, "type": kind, "param": field, "code": reason.lower() or None}}
