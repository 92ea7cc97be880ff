"""A small HTTP server on loopback for the kiosk's page.

    GET /         the page, in English and Chinese
    GET /preview  what the camera sees, as a stream of small JPEG pictures (multipart/x-mixed-replace)
    GET /events   the document being read, as server-sent events: JSON objects with a `type`
    POST /drop    a photo, whose bytes are the body: safe on disk when this answers
    POST /correct what the guest put right, as JSON
    POST /leave   the guest has gone

It listens on 127.0.0.1 only and answers only to names of this machine, so that no web page elsewhere can reach it by
rebinding its own name (DNS rebinding); requests that a browser says come from another site are refused, and whatever
changes something must come from this very page.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docferry.envelope import MAX_PART_BYTES
from docferry.errors import ConfigurationError, InputError, NotFound, Overloaded, StorageFull
from docferry_edge.kiosk.guest import Guest
from docferry_edge.kiosk.hub import Event, Events, Frames, Hub

_FILES = {"/": ("index.html", "text/html"), "/kiosk.js": ("kiosk.js", "text/javascript")}
_FILES |= {"/kiosk.css": ("kiosk.css", "text/css"), "/icon.svg": ("icon.svg", "image/svg+xml")}

_BEAT_S = 15.0
"""A comment goes out this often, so that a browser that has gone is noticed."""

_CONNECTIONS = 64
_BODY_S = 60.0
"""How long a photo may take to come, from a browser on this very machine: others wait behind it."""
_MOST_JSON = 64 << 10
_CORRECTION: dict[str, type] = {"document_id": str, "page": int, "line_id": str, "text": str}
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_OWN_SITES = frozenset({"", "none", "same-origin"})

_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; img-src 'self' blob:; script-src 'self'; style-src 'self'; connect-src 'self';"
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


async def serve(hub: Hub, listener: socket.socket, guest: Guest | None = None) -> None:
    """Serve until cancelled; every stream has ended and the socket is closed when this returns."""
    config = uvicorn.Config(
        application(hub, guest),
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


def application(hub: Hub, guest: Guest | None = None) -> ASGIApp:
    """The page, its two streams, and what a guest may do, guarded. Without a guest one can only look."""
    dropping = asyncio.Semaphore(1)

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
    if guest is not None:
        routes += _guest_routes(hub, guest, dropping)
    return Guard(Starlette(routes=routes))


def _guest_routes(hub: Hub, guest: Guest, dropping: asyncio.Semaphore) -> list[Route]:
    def forget() -> None:
        guest.leave()
        hub.forget()

    async def drop(request: Request) -> Response:
        # The guest may have left before all of it is here.
        handed_in = time.time()
        guest.handing_in(handed_in)
        try:
            # One at a time: a photo is held in memory.
            async with dropping:
                data = await _photo(request)
                document_id = await guest.take(request.query_params.get("name", ""), data, handed_in)
        except BaseException:
            # Nothing came, perhaps because the page has gone: the screen must not wait for it. Whoever stands there by
            # now, if this one has left, keeps what is theirs.
            if guest.here_since(handed_in):
                forget()
            raise
        return JSONResponse({"document_id": document_id})

    async def correct(request: Request) -> Response:
        wish = _correction(await _body(request, _MOST_JSON))
        await guest.correct(**wish)
        return JSONResponse({})

    async def leave(_: Request) -> Response:
        forget()
        return JSONResponse({})

    return [
        Route(path, _told(answer), methods=["POST"])
        for path, answer in (("/drop", drop), ("/correct", correct), ("/leave", leave))
    ]


async def _photo(request: Request) -> bytes:
    async with asyncio.timeout(_BODY_S):
        data = await _body(request, MAX_PART_BYTES)
    if not data:
        raise InputError("the photo is empty", remedy="take it again")
    return data


def _correction(raw: bytes) -> dict[str, Any]:
    """What `Guest.correct` takes.

    Raises:
        InputError: It is something else.
    """
    with contextlib.suppress(ValueError, RecursionError):
        tree = json.loads(raw)
        if isinstance(tree, dict):
            wish = {name: tree.get(name) for name in _CORRECTION}
            if all(type(wish[name]) is kind for name, kind in _CORRECTION.items()):
                return wish
    raise InputError("this is no correction", remedy="send document_id, page, line_id and text")


def _told(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The answer, or why there is none."""

    async def tell(request: Request) -> Response:
        try:
            return await answer(request)
        except NotFound as error:
            return JSONResponse({"error": error.as_dict()}, 404)
        except InputError as error:
            return JSONResponse({"error": error.as_dict()}, 400)
        except TimeoutError:
            return PlainTextResponse("the photo did not come in time", 408)
        except StorageFull as error:
            return JSONResponse({"error": error.as_dict()}, 507)

    return tell


async def _body(request: Request, most: int) -> bytes:
    """The request's body, counted while it comes.

    Raises:
        InputError: It is larger.
    """
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most:
            raise InputError(f"more than {most} bytes", remedy="send a smaller photo")
    return bytes(data)


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
    if origin is None and request.method not in {"GET", "HEAD"}:
        # Browsers name the page that wants to change something; who does not is none.
        return PlainTextResponse("this is for the page itself", 403)
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
