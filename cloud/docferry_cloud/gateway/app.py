"""The gateway's application: the mirror, calls of their own, pages for phones and operators, and the guard around."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from docferry_cloud.console.routes import DOORS, console_routes
from docferry_cloud.gateway.chat import chat_endpoint, models_endpoint
from docferry_cloud.gateway.guard import Guard, Knock, Limits
from docferry_cloud.gateway.link import Link
from docferry_cloud.gateway.mirror import exactly, mirror_routes
from docferry_cloud.gateway.openapi import document
from docferry_cloud.gateway.problems import HANDLERS
from docferry_cloud.gateway.read import read_endpoint
from docferry_cloud.phone.routes import phone_routes
from docferry_cloud.settings import CloudSettings

_METHODS = ["GET", "POST", "PUT", "DELETE"]
_HEADERS = ["authorization", "content-type", "content-range", "idempotency-key", "last-event-id", "traceparent"]


def application(link: Link, settings: CloudSettings, closing: asyncio.Event, knock: Knock) -> ASGIApp:
    """The ASGI application.

    Args:
        closing: Set when the process is about to stop: who waits is told where to go on.
        knock: See `guard.Guard`.
    """
    described = JSONResponse(document())

    async def openapi(_: Request) -> Response:
        return described

    async def read(request: Request) -> Response:
        return await read_endpoint(request, link, closing)

    async def chat(request: Request) -> Response:
        return await chat_endpoint(request, link, closing)

    own = [
        exactly("GET", "/openapi.json", openapi),
        exactly("POST", "/v1/read", read),
        exactly("POST", "/v1/chat/completions", chat),
        exactly("GET", "/v1/models", models_endpoint),
    ]
    # What a proxy in front takes is TLS, whatever comes in here.
    secure = settings.certificate is not None or settings.http_behind_proxy
    origins = list(settings.http_origins)
    cors = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=_METHODS, allow_headers=_HEADERS)
    own_machine = not settings.public and not settings.tokens
    phones = phone_routes(link, behind_proxy=settings.http_behind_proxy, own_machine=own_machine)
    inner = Starlette(
        routes=[*own, *phones, *console_routes(link, secure=secure), *mirror_routes(link)],
        middleware=[cors] if origins else [],
        exception_handlers=HANDLERS,
    )
    inner.router.redirect_slashes = False
    return Guard(
        inner,
        limits=Limits(body_bytes=settings.http_body_bytes),
        origins=settings.http_origins,
        knock=knock,
        doors=DOORS,
        behind_proxy=settings.http_behind_proxy,
        own_machine=own_machine,
    )
