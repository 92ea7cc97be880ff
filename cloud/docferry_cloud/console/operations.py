"""Routes and what they saved, devices, subscriptions with what could not be delivered, and keys."""

from __future__ import annotations

import time
from typing import Any

from google.protobuf.duration_pb2 import Duration
from starlette.responses import RedirectResponse, Response

from docferry.errors import InputError
from docferry.v1 import envelope_pb2
from docferry.v1 import operator_service_pb2 as pb
from docferry.v1 import subscription_service_pb2 as subscription_pb
from docferry_cloud.access.rules import Scope
from docferry_cloud.console import session
from docferry_cloud.console.charts import ENOUGH, day_lines, risk_curve
from docferry_cloud.console.document import route_word
from docferry_cloud.console.inbox import PAGE_SIZE
from docferry_cloud.console.visit import Visit

_QUIET_S, _LOST_S = 3600, 86400
_FULL = frozenset({envelope_pb2.ROUTE_DECISION_PAGE, envelope_pb2.ROUTE_DECISION_ORIGINAL})
_DAYS = (7, 30, 90)


async def routing(visit: Visit) -> Response:
    """What became of the documents by route and by day."""
    asked = visit.request.query_params.get("days", "")
    days = int(asked) if len(asked) <= 3 and asked.isdecimal() and int(asked) in _DAYS else 30
    figures = await visit.call("OperatorService.GetFigures", pb.GetFiguresRequest(days=days), pb.GetFiguresResponse)
    return visit.page(
        "routing.html",
        title="Routing",
        days=days,
        choices=_DAYS,
        routes=_routes(figures),
        saved=saved(figures),
        daily=figures.days,
        lines=day_lines(figures),
        curve=risk_curve(figures),
        reviewed=(figures.reviewed_lines, figures.reviewed_documents),
        enough=ENOUGH,
    )


def saved(figures: pb.GetFiguresResponse) -> dict[str, Any]:
    """Against sending everything in full.

    Bytes are those captured less those sent. Seconds of engines are what the pages would have taken at the pace of the
    documents that did go up in full, less what they took; None where none did, as there is nothing to go by.
    """
    routes = figures.routes
    original, sent = sum(route.original_bytes for route in routes), sum(route.sent_bytes for route in routes)
    full = [route for route in routes if route.decision in _FULL and route.pages]
    took, pages = sum(route.cloud_seconds for route in routes), sum(route.pages for route in routes)
    pace = sum(route.cloud_seconds for route in full) / sum(route.pages for route in full) if full else None
    return {
        "documents": sum(route.documents for route in routes),
        "original": original,
        "sent": sent,
        "bytes": max(0, original - sent),
        "share": sent / original if original else 0.0,
        "seconds": None if pace is None else max(0.0, pace * pages - took),
        "took": took,
    }


async def devices(visit: Visit) -> Response:
    """The devices with what is known of their health."""
    answer = await visit.call("OperatorService.ListDevices", pb.ListDevicesRequest(), pb.ListDevicesResponse)
    now = time.time()
    rows = [{"device": device, "health": _health(device, now)} for device in answer.devices]
    return visit.page("devices.html", title="Devices", rows=rows)


async def subscriptions(visit: Visit) -> Response:
    """Who is told of events, and what could not be delivered."""
    return await _subscriptions(visit)


async def add_subscription(visit: Visit) -> Response:
    """Add a webhook; its secret is shown on the page that answers, and never again."""
    form = await visit.form()
    request = subscription_pb.SubscriptionServiceCreateRequest(
        subscription=subscription_pb.Subscription(
            url=str(form.get("url", ""))[:4096], kind=subscription_pb.Subscription.KIND_WEBHOOK
        )
    )
    answer = await visit.call("SubscriptionService.Create", request, subscription_pb.SubscriptionServiceCreateResponse)
    return await _subscriptions(visit, made=answer)


async def remove_subscription(visit: Visit) -> Response:
    """Remove a subscription."""
    await visit.form()
    subscription_id = visit.request.path_params["subscription_id"]
    request = subscription_pb.SubscriptionServiceDeleteRequest(subscription_id=subscription_id)
    await visit.call("SubscriptionService.Delete", request, subscription_pb.SubscriptionServiceDeleteResponse)
    return _back("subscriptions")


async def replay(visit: Visit) -> Response:
    """Deliver again what was given up: one event, or all of a subscription."""
    form = await visit.form()
    request = subscription_pb.SubscriptionServiceReplayRequest(
        subscription_id=visit.request.path_params["subscription_id"], event_id=str(form.get("event_id", ""))[:64]
    )
    await visit.call("SubscriptionService.Replay", request, subscription_pb.SubscriptionServiceReplayResponse)
    return _back("subscriptions")


async def keys(visit: Visit) -> Response:
    """The keys."""
    return await _keys(visit)


async def create_key(visit: Visit) -> Response:
    """Issue a key; its secret is shown on the page that answers, and never again."""
    form = await visit.form()
    days = str(form.get("days", "")).strip()
    if days and not (len(days) <= 6 and days.isascii() and days.isdecimal() and 0 < int(days) <= 36500):
        raise InputError(f"{days[:20]!r} is no number of days", remedy="give 1..36500, or leave it empty for ever")
    request = pb.CreateKeyRequest(
        key=pb.Key(
            name=str(form.get("name", "")).strip()[:100],
            device=str(form.get("device", "")).strip()[:100],
            scopes=[scope for scope in form.getlist("scope") if isinstance(scope, str)],
        ),
        valid_for=Duration(seconds=int(days) * 86400) if days else None,
    )
    made = await visit.call("OperatorService.CreateKey", request, pb.CreateKeyResponse)
    # An open service closes with its first key: whoever made it would be asked for it by the next page.
    return await _keys(visit, made=made) if not visit.who.open else _key_page(visit, [made.key], made)


async def revoke_key(visit: Visit) -> Response:
    """Take a key back."""
    await visit.form()
    request = pb.RevokeKeyRequest(key_id=visit.request.path_params["key_id"])
    await visit.call("OperatorService.RevokeKey", request, pb.RevokeKeyResponse)
    return _back("keys")


async def _keys(visit: Visit, made: pb.CreateKeyResponse | None = None) -> Response:
    answer = await visit.call("OperatorService.ListKeys", pb.ListKeysRequest(), pb.ListKeysResponse)
    return _key_page(visit, list(answer.keys), made)


def _key_page(visit: Visit, listed: list[pb.Key], made: pb.CreateKeyResponse | None) -> Response:
    return visit.page("keys.html", title="Keys", keys=listed, made=made, scopes=list(Scope))


async def _subscriptions(
    visit: Visit, made: subscription_pb.SubscriptionServiceCreateResponse | None = None
) -> Response:
    query = visit.request.query_params
    listed = await visit.call(
        "SubscriptionService.List",
        subscription_pb.SubscriptionServiceListRequest(page_size=PAGE_SIZE, page_token=query.get("page_token", "")),
        subscription_pb.SubscriptionServiceListResponse,
    )
    dead = await visit.call(
        "SubscriptionService.ListDeliveries",
        subscription_pb.SubscriptionServiceListDeliveriesRequest(
            dead_only=True, page_size=PAGE_SIZE, page_token=query.get("dead_token", "")
        ),
        subscription_pb.SubscriptionServiceListDeliveriesResponse,
    )
    return visit.page(
        "subscriptions.html",
        title="Subscriptions",
        subscriptions=listed.subscriptions,
        next=listed.next_page_token,
        dead=dead.deliveries,
        next_dead=dead.next_page_token,
        kinds={
            subscription_pb.Subscription.KIND_WEBHOOK: "webhook",
            subscription_pb.Subscription.KIND_WEB_PUSH: "browser",
            subscription_pb.Subscription.KIND_APPRISE: "Apprise",
        },
        made=made,
    )


def _routes(figures: pb.GetFiguresResponse) -> list[dict[str, Any]]:
    whole = sum(route.documents for route in figures.routes) or 1
    return [
        {
            "word": "from before" if not route.decision else route_word(route.decision),
            "share": route.documents / whole,
            "width": f"{300 * route.documents / whole:.1f}",
            "figures": route,
        }
        for route in figures.routes
    ]


def _health(device: pb.Device, now: float) -> tuple[str, str]:
    """A class and what it says, the worst first."""
    if not device.HasField("last_seen_time"):
        return "c0", "never heard of"
    silent = now - device.last_seen_time.seconds
    if silent > _LOST_S:
        return "c0", "silent for more than a day"
    if device.documents and device.failed / device.documents > 0.1:
        return "c1", "more than a tenth of its documents fail"
    if silent > _QUIET_S:
        return "c2", "quiet for more than an hour"
    return "c4", "well"


def _back(place: str) -> Response:
    return RedirectResponse(f"{session.PATH}/{place}", 303)
