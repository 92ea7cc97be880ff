"""What holds for every HTTP request, before any route: who may ask from where, how much, and the headers of answers.

- A stranger's body is not taken in: whoever sends one is asked for a key first, by the service's own gate.
- Bounded: bytes of a body (counted as they come, never trusted), time for it, large bodies held at once.
- A browser's page of another site is refused unless the settings name it. Where no keys are configured, the answers
  are for this machine only, and so are the names it may be called by: no page elsewhere gets in by rebinding its own
  name (DNS rebinding).
- Strict headers on every answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docferry.errors import DocferryError, InputError, Overloaded
from docferry_cloud.gateway.link import Metadata, metadata_of
from docferry_cloud.gateway.problems import Refused, problem_tree, status_and_code

Knock = Callable[[Metadata], Awaitable[object]]
"""Raises `Unauthenticated` for metadata of nobody's."""

_DOOR_S = 10.0

LARGE_BODY = 1 << 20
"""A body beyond this takes one of the places for large ones."""

_HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_OWN_NAMES = frozenset({"localhost", "ip6-localhost"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"", "none", "same-origin"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take.

    Attributes:
        body_bytes: Most bytes of a body.
        body_s: Seconds for a body to come whole.
        large_bodies: Bodies beyond `LARGE_BODY` held at once.
    """

    body_bytes: int = 32 << 20
    body_s: float = 120.0
    large_bodies: int = 4


class Guard:
    """The ASGI application around the routes.

    Args:
        knock: Whether the service knows who carries this metadata; what comes of it is decided by the rpc alone.
        origins: Web origins whose pages may call.
        behind_proxy: A proxy in front speaks TLS: browsers see https where http comes in.
        own_machine: Only names of this machine are answered to.
        doors: Paths where a body is taken from somebody whom nobody knows yet, each with the most bytes of it.
    """

    def __init__(
        self,
        inner: ASGIApp,
        *,
        limits: Limits,
        knock: Knock,
        origins: tuple[str, ...],
        own_machine: bool,
        doors: Mapping[str, int] | None = None,
        behind_proxy: bool = False,
    ) -> None:
        self._inner = inner
        self._knock = knock
        self._limits = limits
        self._origins = frozenset(origins)
        self._own_machine = own_machine
        self._doors = dict(doors or {})
        self._behind_proxy = behind_proxy
        self._large = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        limits, knock = self._limits, lambda: self._knock(metadata_of(Request(scope)))
        if scope.get("path") in self._doors:
            limits, knock = Limits(self._doors[scope["path"]], body_s=_DOOR_S), _anyone
        body = _Body(receive, limits, self._take_large, knock)

        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._admit(scope, Headers(scope=scope))
        except Refused as refusal:
            status, code, more = status_and_code(refusal)
            await JSONResponse(problem_tree(status, code), code, more)(scope, receive, strict)
            return
        try:
            await self._inner(scope, body, strict)
        finally:
            self._large -= body.large

    def _admit(self, scope: Scope, headers: Headers) -> None:
        if self._own_machine and not _own_name(headers.get("host", "")):
            raise Refused(
                421,
                InputError(
                    "this service is for this machine only",
                    remedy="call it by 127.0.0.1, or let the operator configure keys",
                ),
            )
        stated = headers.get("content-length", "0")
        if stated.isdecimal() and int(stated[:20]) > self._limits.body_bytes:
            raise _too_large(self._limits.body_bytes)
        origin = headers.get("origin", "")
        if origin in self._origins:
            return
        site = headers.get("sec-fetch-site", "")
        # Following a link is no call: the page that holds the link sees nothing of the answer.
        link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        own = f"{'https' if self._behind_proxy else scope.get('scheme', 'http')}://{headers.get('host', '')}"
        # What a cookie speaks for must come from a page of our own, said by the browser and not only not denied (CSRF).
        unsaid = not origin and site != "same-origin" and "cookie" in headers and scope["method"] not in _SAFE_METHODS
        if unsaid or (site not in _OWN_SITES and not link) or (origin and origin != own):
            raise Refused(
                403, InputError("pages of other sites may not call", remedy="let the operator name it in http.origins")
            )

    def _take_large(self) -> None:
        if self._large >= self._limits.large_bodies:
            raise Overloaded(f"{self._large} large bodies are being taken in already", retry_after=2)
        self._large += 1


class _Body:
    """The request's body, counted and timed while it comes."""

    def __init__(
        self,
        receive: Receive,
        limits: Limits,
        take_large: Callable[[], None],
        knock: Callable[[], Awaitable[object]],
    ) -> None:
        self._receive = receive
        self._limits = limits
        self._take_large = take_large
        self._knock = knock
        self._taken = 0
        self._whole = False
        self._due: float | None = None
        self.large = 0

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        loop = asyncio.get_running_loop()
        if self._due is None:
            try:
                await self._knock()
            except DocferryError as stranger:
                raise Refused(status_and_code(stranger)[1], stranger, {"connection": "close"}) from None
            self._due = loop.time() + self._limits.body_s
        try:
            async with asyncio.timeout_at(self._due):
                message = await self._receive()
        except TimeoutError:
            reason = f"the body did not come within {self._limits.body_s:g} s"
            raise Refused(408, InputError(reason, remedy="send it again"), {"connection": "close"}) from None
        if message["type"] == "http.request":
            self._taken += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._taken > self._limits.body_bytes:
                raise _too_large(self._limits.body_bytes)
            if self._taken > LARGE_BODY and not self.large:
                self._take_large()
                self.large = 1
        return message


async def _anyone() -> None:
    """A door is open to everyone."""


def _too_large(limit: int) -> Refused:
    return Refused(
        413,
        InputError(f"the body exceeds {limit} bytes", remedy="announce the part, then PUT its bytes piece by piece"),
        {"connection": "close"},
    )


def _own_name(host: str) -> bool:
    name, colon, port = host.lower().rpartition(":")
    name = name if colon and port.isdigit() else host.lower()
    if name in _OWN_NAMES:
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
