"""Answers that go on: messages as server-sent events or NDJSON, and files; the rpc ends as soon as nobody listens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from docferry_cloud.gateway.link import StreamCall
from docferry_cloud.gateway.problems import problem_tree, status_and_code

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"


class Stream(StreamingResponse):
    """A stream that lets go of the rpc that feeds it, however it ends, even before its first byte."""

    def __init__(
        self, body: AsyncIterator[bytes], kind: str, let_go: Callable[[], Any], headers: dict[str, str] | None = None
    ) -> None:
        # No proxy on the way may hold events back.
        super().__init__(body, media_type=kind, headers={"x-accel-buffering": "no", **(headers or {})})
        self._let_go = let_go

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._let_go()


def wanted_kind(request: Request, default: str) -> str:
    """The kind of stream that the caller's Accept header names first; `default` where it names none of them."""
    for given in request.headers.get("accept", "").lower().split(","):
        kind = given.partition(";")[0].strip()
        if kind in {SSE, NDJSON}:
            return kind
        if kind == "application/json":
            return default
    return default


def framed(kind: str, tree: Any, *, event: str = "", token: str | None = None) -> bytes:
    """One message of a stream.

    Args:
        event: Its name, in server-sent events.
        token: The id that a client gives back to go on after it; an empty one makes it forget the one it had.
    """
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    if kind == NDJSON:
        return f"{text}\n".encode()
    head = "" if token is None else f"id: {token}\n"
    head += f"event: {event}\n" if event else ""
    return f"{head}data: {text}\n\n".encode()


def failed(kind: str, failure: Exception) -> bytes:
    """An error in the midst of a stream, whose HTTP code is out already."""
    status, code, _ = status_and_code(failure)
    return framed(kind, problem_tree(status, code), event="error")


async def first_of(call: StreamCall) -> Any:
    """The first message, or None at the end; on an error, the call is over.

    Raises:
        grpc.aio.AioRpcError: The call failed.
    """
    try:
        message = await call.read()
    except BaseException:
        call.cancel()
        raise
    return None if message is grpc.aio.EOF else message


async def rest_of(first: Any, call: StreamCall) -> AsyncIterator[Any]:
    """All messages, the first one included."""
    while first is not None:
        yield first
        message = await call.read()
        first = None if message is grpc.aio.EOF else message
