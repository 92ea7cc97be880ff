"""The way from the gateway to the service: one gRPC channel, each call with what its HTTP caller says of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.requests import ClientDisconnect, Request

from docferry.channel import UNARY_DEADLINE_S, WATCH_DEADLINE_S
from docferry.errors import Unauthenticated
from docferry_cloud.access.claims import Half
from docferry_cloud.access.gate import CALLED_FROM
from docferry_cloud.console.session import session_of

T = TypeVar("T")
Metadata = tuple[tuple[str, str], ...]
StreamCall = grpc.aio.UnaryStreamCall[Any, Any]

SESSION_COOKIE = "docferry_claim"
"""The cookie with a claim's session: sent by its holder's browser to that document's pages alone."""

_LONGEST_TOKEN = 4096
_LONGEST_TRACE = 512


def metadata_of(request: Request) -> Metadata:
    """The metadata that stands for a caller: `authorization` word for word or the session in its cookie, its address,
    and the trace it belongs to. The console's pages have a cookie of their own.

    Raises:
        Unauthenticated: The header cannot be a token.
    """
    headers = request.headers
    found = [(CALLED_FROM, request.client.host)] if request.client else []
    if given := headers.get("authorization", ""):
        if len(given) > _LONGEST_TOKEN or not _plain(given):
            raise Unauthenticated("the authorization header holds no token", remedy="send Authorization: Bearer TOKEN")
        found.append(("authorization", given))
    elif session := session_of(request):
        found.append(("authorization", f"Bearer {session}"))
    elif session := request.cookies.get(SESSION_COOKIE, ""):
        # What is no session is sent on as one that nobody made, so that it is refused as such.
        plain = session if len(session) <= _LONGEST_TOKEN and _plain(session) else Half.SESSION
        found.append(("authorization", f"Bearer {plain}"))
    for name in ("traceparent", "tracestate"):
        value = headers.get(name, "")
        if value and len(value) <= _LONGEST_TRACE and _plain(value):
            found.append((name, value))
    return tuple(found)


class Link:
    """Calls rpcs by their descriptors."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def unary(self, rpc: MethodDescriptor, request: Message, metadata: Metadata) -> Message:
        """Call a unary rpc.

        Raises:
            grpc.aio.AioRpcError: It failed.
        """
        call = self.channel.unary_unary(
            _name(rpc),
            request_serializer=_bytes,
            response_deserializer=GetMessageClass(rpc.output_type).FromString,
        )
        answer: Message = await call(request, timeout=UNARY_DEADLINE_S, metadata=metadata)
        return answer

    def stream(self, rpc: MethodDescriptor, request: Message, metadata: Metadata) -> StreamCall:
        """Begin a streaming rpc; whoever reads it cancels it."""
        call = self.channel.unary_stream(
            _name(rpc),
            request_serializer=_bytes,
            response_deserializer=GetMessageClass(rpc.output_type).FromString,
        )
        return call(request, timeout=WATCH_DEADLINE_S, metadata=metadata)


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled as soon as the HTTP caller is gone.

    Raises:
        ClientDisconnect: They are gone.
    """
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            leaving.result()
            raise ClientDisconnect
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _name(rpc: MethodDescriptor) -> str:
    return f"/{rpc.containing_service.full_name}/{rpc.name}"


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()


def _plain(value: str) -> bool:
    return value.isascii() and value.isprintable()
