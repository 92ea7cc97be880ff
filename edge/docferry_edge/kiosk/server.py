"""A small HTTP server on loopback for the kiosk's page.

    GET /         the page, in English and Chinese
    GET /preview  what the camera sees, as a stream of small JPEG pictures (multipart/x-mixed-replace)
    GET /events   the document being read, as server-sent events: JSON objects with a `type`

It listens on 127.0.0.1 only and answers only to names of this machine, so that no web page elsewhere can reach it by
rebinding its own name (DNS rebinding); requests that a browser says come from another site are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Generator
from importlib import resources

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docferry.errors import ConfigurationError, Overloaded
from docferry_edge.kiosk.hub import Event, Events, Frames, Hub

_FILES = {"/": ("index.html", "text/html"), "/kiosk.js": ("kiosk.js", "text/javascript")}
_FILES["/kiosk.css"] = ("kiosk.css", "text/css")

_BEAT_S = 15.0
"""A comment goes out this often, so that a browser that has gone is noticed."""

_CONNECTIONS = 64
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_OWN_SITES = frozenset({"", "none", "same-origin"})

_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; img-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self';"
        b" base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes any that is free.

    Raises:
        ConfigurationError: Something else listens there.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"the kiosk page's port {port} cannot be used: {error.strerror}",
            remedy="set kiosk.port to a free one, or to 0 for no page",
        ) from None
    return listener


async def serve(hub: Hub, listener: socket.socket) -> None:
    """Serve until cancelled; every stream has ended and the socket is closed when this returns."""
    config = uvicorn.Config(
        application(hub),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(task)
    finally:
        hub.close()
        server.should_exit = True
        await task
        listener.close()


def application(hub: Hub) -> ASGIApp:
    """The page and its two streams, guarded."""

    async def preview(_: Request) -> Response:
        if not hub.has_camera:
            return PlainTextResponse("no camera is set up", 404)
        try:
            frames = hub.look()
        except Overloaded as error:
            return _busy(error)
        return _Stream(_multipart(frames), "multipart/x-mixed-replace; boundary=frame", frames.close)

    async def events(_: Request) -> Response:
        try:
            found = hub.listen()
        except Overloaded as error:
            return _busy(error)
        return _Stream(_server_sent(found), "text/event-stream", found.close)

    routes = [Route(path, _file(*file), methods=["GET"]) for path, file in _FILES.items()]
    routes += [Route("/preview", preview, methods=["GET"]), Route("/events", events, methods=["GET"])]
    return Guard(Starlette(routes=routes))


class Guard:
    """Refuses whoever is not a page of this machine's own, and puts the same strict headers on every answer."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        refusal = _refusal(Request(scope))
        await (refusal or self._inner)(scope, receive, strict)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the agent's."""
        yield


def _refusal(request: Request) -> Response | None:
    host = request.headers.get("host", "").lower()
    name, colon, port = host.rpartition(":")
    if (name if colon and port.isdigit() else host) not in _OWN_NAMES:
        return PlainTextResponse("this page is for this machine only", 421)
    if request.headers.get("sec-fetch-site", "") not in _OWN_SITES:
        return PlainTextResponse("this page is not for other sites", 403)
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return PlainTextResponse("this page is not for other sites", 403)
    return None


def _file(name: str, kind: str) -> Response:
    content = (resources.files("docferry_edge.kiosk") / "static" / name).read_bytes()
    return Response(content, media_type=kind)


def _busy(error: Overloaded) -> Response:
    return PlainTextResponse(str(error), 503, {"retry-after": f"{error.retry_after:.0f}"})


class _Stream(StreamingResponse):
    """A stream that lets go of what feeds it, however it ends, even before its first byte."""

    def __init__(self, body: AsyncIterator[bytes], kind: str, close: Callable[[], None]) -> None:
        super().__init__(body, media_type=kind)
        self._let_go = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._let_go()


async def _multipart(frames: Frames) -> AsyncIterator[bytes]:
    # The boundary ends each part at once: browsers show a picture when they see the end of it.
    yield b"--frame\r\n"
    while (frame := await frames.get()) is not None:
        head = b"content-type: image/jpeg\r\ncontent-length: %d\r\n\r\n" % len(frame)
        yield head + frame + b"\r\n--frame\r\n"


async def _server_sent(events: Events) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    for told in events.story:
        yield _data(told)
    while True:
        try:
            async with asyncio.timeout(_BEAT_S):
                event = await events.get()
        except TimeoutError:
            yield b": alive\n\n"
            continue
        if event is None:
            return
        yield _data(event)


def _data(event: Event) -> bytes:
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
