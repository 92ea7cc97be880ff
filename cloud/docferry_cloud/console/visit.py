"""One request to a page: whose session it is, what that allows, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import grpc.aio
from google.protobuf.message import Message
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from docferry.errors import DocferryError, InputError
from docferry.v1 import operator_service_pb2
from docferry_cloud.access.rules import RULES
from docferry_cloud.console import session
from docferry_cloud.console.render import HEADERS, Renderer
from docferry_cloud.gateway.link import Link, Metadata, StreamCall, metadata_of
from docferry_cloud.gateway.problems import Refused, reason_and_remedy, status_and_code
from docferry_cloud.gateway.routes import SERVICES

M = TypeVar("M", bound=Message)
LOGIN = f"{session.PATH}/login"
_MOST_FIELDS = 4000

NAVIGATION = (
    ("Inbox", "inbox", "AnalysisService.List"),
    ("Review", "review", "AnalysisService.List"),
    ("Routing", "routing", "OperatorService.GetFigures"),
    ("Devices", "devices", "OperatorService.ListDevices"),
    ("Subscriptions", "subscriptions", "SubscriptionService.List"),
    ("Keys", "keys", "OperatorService.ListKeys"),
)
"""What the pages are called, where they lie under `/console/`, and the rpc that each needs."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One admitted request.

    Attributes:
        cookie: The browser's cookie, new or as it came.
        who: Who the service says it is.
    """

    request: Request
    link: Link
    renderer: Renderer
    metadata: Metadata
    cookie: str
    who: operator_service_pb2.GetSessionResponse

    async def call(self, rpc: str, message: Message, answer: type[M]) -> M:
        """Call an rpc, `Service.Method`, as this visitor.

        Raises:
            grpc.aio.AioRpcError: It failed.
        """
        service, _, method = rpc.partition(".")
        descriptor = SERVICES[service].methods_by_name[method]
        given = await self.link.unary(descriptor, message, self.metadata)
        assert isinstance(given, answer)
        return given

    def stream(self, rpc: str, message: Message) -> StreamCall:
        """Begin a streaming rpc as this visitor; whoever reads it cancels it."""
        service, _, method = rpc.partition(".")
        return self.link.stream(SERVICES[service].methods_by_name[method], message, self.metadata)

    def may(self, rpc: str) -> bool:
        """Whether the session allows an rpc; the service decides again when it is called."""
        return bool(RULES[f"docferry.v1.{rpc}"].scopes & set(self.who.scopes))

    async def form(self) -> FormData:
        """The fields of a form of ours.

        Raises:
            Refused: It was not made for this browser, or is none.
        """
        fields = await self.request.form(max_files=0, max_fields=_MOST_FIELDS)
        if session.forged(session.cookie_of(self.request), fields.get("token")):
            raise Refused(
                403,
                InputError("this form was not made for your session", remedy="load the page again, send it anew"),
            )
        return fields

    def page(self, template: str, code: int = 200, /, **values: Any) -> Response:
        """A page with the frame that all have."""
        here = self.request.url.path.removeprefix(f"{session.PATH}/").partition("/")[0]
        links = [(name, place) for name, place, rpc in NAVIGATION if self.may(rpc)]
        frame = {
            "links": links,
            "here": "inbox" if here == "analyses" else here,
            "who": self.who,
            "token": session.form_token(self.cookie),
            "may": self.may,
        }
        return self.renderer.page(template, frame | values, code)


Handler = Callable[[Visit], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


class Doorman:
    """Makes endpoints of pages: each visit is asked for by the service, and failures become pages too.

    Args:
        secure: Whether browsers come over TLS.
    """

    def __init__(self, link: Link, renderer: Renderer, *, secure: bool) -> None:
        self._link = link
        self.renderer = renderer
        self.secure = secure

    def page(self, handler: Handler) -> Endpoint:
        """An endpoint for visitors whom the service knows; others are sent to the login."""

        async def endpoint(request: Request) -> Response:
            cookie = session.cookie_of(request)
            visit: Visit | None = None
            try:
                visit = await self.visit(request, cookie or session.strangers_cookie())
                answer = await handler(visit)
            except (grpc.aio.AioRpcError, DocferryError, Refused) as failure:
                answer = self._failed(failure, visit)
            if not cookie and visit is not None:
                session.set_cookie(answer, visit.cookie, secure=self.secure)
            return answer

        return endpoint

    async def visit(self, request: Request, cookie: str) -> Visit:
        """Whoever sends a request.

        Raises:
            grpc.aio.AioRpcError: The service does not know them, or is away.
        """
        metadata = metadata_of(request)
        rpc = SERVICES["OperatorService"].methods_by_name["GetSession"]
        given = await self._link.unary(rpc, operator_service_pb2.GetSessionRequest(), metadata)
        who = cast("operator_service_pb2.GetSessionResponse", given)
        return Visit(request, self._link, self.renderer, metadata, cookie, who)

    def _failed(self, failure: Exception, visit: Visit | None) -> Response:
        status, code, headers = status_and_code(failure)
        if code == 401:
            # A body that was not taken in ends the connection.
            kept = {name: value for name, value in headers.items() if name == "connection"}
            return RedirectResponse(LOGIN, 303, headers=kept)
        reason, remedy = reason_and_remedy(status)
        values: Mapping[str, Any] = {"message": status.message, "reason": reason, "remedy": remedy, "number": code}
        if visit is None:
            answer = self.renderer.page("problem_alone.html", values, code)
        else:
            answer = visit.page("problem.html", code, **values)
        answer.headers.update(headers | HEADERS)
        return answer
