"""Which request of a phone is answered by what. What an rpc answers goes through the mirror's own handlers."""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from docferry.errors import InputError
from docferry.v1 import subscription_service_pb2 as pb
from docferry_cloud.gateway.asking import fill, json_body
from docferry_cloud.gateway.link import Link, metadata_of, while_connected
from docferry_cloud.gateway.mirror import Handler, exactly, mirrored
from docferry_cloud.gateway.routes import SERVICES, MirrorRoute, Shape
from docferry_cloud.phone.claiming import claim, claim_page
from docferry_cloud.phone.rendering import Pages
from docferry_cloud.phone.result_page import result_page
from docferry_cloud.phone.sheet import sheet
from docferry_cloud.phone.start import start_page
from docferry_cloud.phone.words import WORDS, language_of

_ONE = "/r/{analysis_id}"
_MIRRORED = (
    MirrorRoute("POST", f"{_ONE}/ask", "AnalysisService.Ask", body=True, shape=Shape.PIECES),
    MirrorRoute("GET", f"{_ONE}/export", "AnalysisService.Export", query=("format",), shape=Shape.FILE),
    MirrorRoute(
        "GET", f"{_ONE}/events", "AnalysisService.Watch", query=("resume_token", "progress"), shape=Shape.EVENTS
    ),
)
_SUBSCRIPTIONS = SERVICES["SubscriptionService"].methods_by_name
_MOST_SUBSCRIPTION = 8192
_FILES = {
    "/phone/phone.css": ("phone.css", "text/css"),
    "/phone/phone.js": ("phone.js", "text/javascript"),
    "/phone/icon.svg": ("icon.svg", "image/svg+xml"),
    "/phone/manifest.webmanifest": ("manifest.webmanifest", "application/manifest+json"),
    # At the top, since a worker may only serve what lies beneath it.
    "/sw.js": ("sw.js", "text/javascript"),
}
_WORKERS_POLICY = {"content-security-policy": "default-src 'none'; connect-src 'self'"}


def phone_routes(link: Link, *, behind_proxy: bool, own_machine: bool) -> list[Route]:
    """The pages, their files and their calls.

    Args:
        behind_proxy: A proxy in front speaks TLS.
        own_machine: Whoever gets here is this machine's own user, as long as no key was issued.
    """
    pages = Pages()

    async def result(request: Request) -> Response:
        return await result_page(request, link, pages)

    async def opening(request: Request) -> Response:
        return await claim_page(request, pages)

    async def opened(request: Request) -> Response:
        return await claim(request, link, pages, secure=behind_proxy or request.url.scheme == "https")

    async def picture(request: Request) -> Response:
        return await sheet(request, link)

    async def push_key(request: Request) -> Response:
        asked = pb.SubscriptionServiceGetPushKeyRequest()
        call = link.unary(_SUBSCRIPTIONS["GetPushKey"], asked, metadata_of(request))
        answer = await while_connected(request, call)
        assert isinstance(answer, pb.SubscriptionServiceGetPushKeyResponse)
        return JSONResponse({"public_key": answer.public_key})

    async def subscribe(request: Request) -> Response:
        asked = await _subscription(request)
        await while_connected(request, link.unary(_SUBSCRIPTIONS["Create"], asked, metadata_of(request)))
        return JSONResponse({})

    async def start(request: Request) -> Response:
        return await start_page(request, link, pages, own_machine=own_machine)

    async def offline(request: Request) -> Response:
        return pages.answer(request, "offline.html")

    routes = [
        *(exactly("GET", path, _file(*file)) for path, file in _FILES.items()),
        exactly("GET", "/phone/offline", offline),
        exactly("GET", "/c/{token}", opening),
        exactly("POST", "/c/{token}", opened),
        exactly("GET", "/r/", start),
        exactly("GET", _ONE, result),
        exactly("GET", f"{_ONE}/pages/{{page}}", picture),
        exactly("GET", f"{_ONE}/push_key", push_key),
        exactly("POST", f"{_ONE}/subscriptions", subscribe),
        *(mirrored(route, link) for route in _MIRRORED),
    ]
    for route in routes:
        # The rest is the pages' own, and changes with them.
        route.include_in_schema = route.path == _ONE
    return routes


async def _subscription(request: Request) -> pb.SubscriptionServiceCreateRequest:
    """What a browser's `PushSubscription.toJSON()` asks for: to be told of this analysis alone."""
    tree = await json_body(request, _MOST_SUBSCRIPTION)
    keys = tree.get("keys")
    if not isinstance(keys, dict):
        raise InputError(
            "the subscription has no keys", remedy="send what PushSubscription.toJSON() gives", field="keys"
        )
    asked = pb.SubscriptionServiceCreateRequest()
    language = tree.get("language")
    fill(
        asked,
        {
            "subscription": {
                "kind": "KIND_WEB_PUSH",
                "url": tree.get("endpoint", ""),
                "analysis_id": request.path_params["analysis_id"],
                "language": language if language in WORDS else language_of(request.headers.get("accept-language", "")),
            },
            "push_keys": {"p256dh": keys.get("p256dh", ""), "auth": keys.get("auth", "")},
        },
    )
    return asked


def _file(name: str, kind: str) -> Handler:
    content = (resources.files("docferry_cloud.phone") / "static" / name).read_bytes()
    headers = _WORKERS_POLICY if name == "sw.js" else {}

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return answer
