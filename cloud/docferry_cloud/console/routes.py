"""Where the pages of the console lie."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from docferry.errors import NotFound
from docferry_cloud.console import document, inbox, operations, review, session
from docferry_cloud.console.login import INBOX, MOST_LOGIN_BYTES, Login
from docferry_cloud.console.render import Renderer
from docferry_cloud.console.visit import LOGIN, Doorman, Handler
from docferry_cloud.gateway.link import Link
from docferry_cloud.gateway.mirror import exactly

DOORS = {LOGIN: MOST_LOGIN_BYTES}
"""Where somebody whom nobody knows may send a body, and how many bytes of it."""

_ONE = "/analyses/{analysis_id}"
_SUBSCRIPTION = "/subscriptions/{subscription_id}"
_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/inbox", inbox.inbox),
    ("GET", _ONE, document.document),
    ("GET", f"{_ONE}/text", document.text),
    ("GET", f"{_ONE}/compare", document.compare),
    ("GET", f"{_ONE}/export", document.export),
    ("GET", f"{_ONE}/pages/{{page}}", document.page),
    ("GET", f"{_ONE}/pages/{{page}}/picture", document.picture),
    ("POST", f"{_ONE}/pages/{{page}}/fetch", document.fetch_page),
    ("GET", "/review", inbox.queue),
    ("GET", "/review/{analysis_id}", review.show),
    ("POST", "/review/{analysis_id}", review.settle),
    ("GET", "/routing", operations.routing),
    ("GET", "/devices", operations.devices),
    ("GET", "/subscriptions", operations.subscriptions),
    ("POST", "/subscriptions", operations.add_subscription),
    ("POST", f"{_SUBSCRIPTION}/remove", operations.remove_subscription),
    ("POST", f"{_SUBSCRIPTION}/replay", operations.replay),
    ("GET", "/keys", operations.keys),
    ("POST", "/keys", operations.create_key),
    ("POST", "/keys/{key_id}/revoke", operations.revoke_key),
)


def console_routes(link: Link, *, secure: bool) -> list[BaseRoute]:
    """The pages.

    Args:
        secure: Whether browsers come over TLS, so that the cookie must not go without it.
    """
    renderer = Renderer()
    doorman = Doorman(link, renderer, secure=secure)
    login = Login(doorman, link)

    async def begin(_: Request) -> Response:
        return RedirectResponse(INBOX, 303)

    async def static(request: Request) -> Response:
        found = renderer.static(request.path_params["name"])
        if found is None:
            raise NotFound("there is no such file", remedy="load the page again")
        return found

    pages: list[Route] = [
        exactly("GET", "/static/{name}", static),
        exactly("GET", "/login", login.show),
        exactly("POST", "/login", login.enter),
        exactly("POST", "/logout", doorman.page(login.leave)),
        *(exactly(method, path, doorman.page(handler)) for method, path, handler in _PAGES),
    ]
    return [exactly("GET", session.PATH, begin), Mount(session.PATH, routes=pages)]
