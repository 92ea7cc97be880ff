"""The servicer of subscriptions: receive, ask, answer."""

# The rpc names are the contract's, and what a method does not need it still is given.
# ruff: noqa: N802, ARG002

from __future__ import annotations

from docferry.errors import Forbidden, InputError
from docferry.v1 import subscription_service_pb2 as pb
from docferry.v1 import subscription_service_pb2_grpc as subscription_grpc
from docferry_cloud import resources
from docferry_cloud.deliveries import DeliveryRow
from docferry_cloud.rows import Caller
from docferry_cloud.schema import SinkKind
from docferry_cloud.services import Servicer, answered
from docferry_cloud.subscriptions import SubscriptionRow, Wish

_OVERLAP_S = 86400.0
_DELIVERIES = "deliveries"
_KINDS = {
    pb.Subscription.KIND_UNSPECIFIED: SinkKind.WEBHOOK,
    pb.Subscription.KIND_WEBHOOK: SinkKind.WEBHOOK,
    pb.Subscription.KIND_WEB_PUSH: SinkKind.WEB_PUSH,
}


class SubscriptionServicer(Servicer, subscription_grpc.SubscriptionServiceServicer):
    """`SubscriptionService`."""

    SERVICE = pb.DESCRIPTOR.services_by_name["SubscriptionService"].full_name

    @answered
    async def Create(
        self, request: pb.SubscriptionServiceCreateRequest, caller: Caller
    ) -> pb.SubscriptionServiceCreateResponse:
        """Add a subscription."""
        tenant, wish = caller.tenant, _wish(request)
        if caller.claimed and wish.kind is not SinkKind.WEB_PUSH:
            raise Forbidden("a claim lets a browser be told, nobody else", remedy="use a key with the scope admin")
        row, secret = await self._service.subscribe(tenant, wish)
        return pb.SubscriptionServiceCreateResponse(subscription=_subscription(row), secret=_told(row, secret))

    @answered
    async def List(
        self, request: pb.SubscriptionServiceListRequest, caller: Caller
    ) -> pb.SubscriptionServiceListResponse:
        """Give a page of subscriptions."""
        tenant, size = caller.tenant, resources.page_size(request.page_size)
        rows = await self._service.subscriptions_page(tenant, size + 1, resources.after_token(request.page_token))
        shown, more = resources.cut(rows, size, lambda row: (row.create_time, row.subscription_id))
        return pb.SubscriptionServiceListResponse(
            subscriptions=[_subscription(row) for row in shown], next_page_token=more
        )

    @answered
    async def Delete(
        self, request: pb.SubscriptionServiceDeleteRequest, caller: Caller
    ) -> pb.SubscriptionServiceDeleteResponse:
        """Remove a subscription."""
        await self._service.unsubscribe(caller.tenant, request.subscription_id)
        return pb.SubscriptionServiceDeleteResponse()

    @answered
    async def Rotate(
        self, request: pb.SubscriptionServiceRotateRequest, caller: Caller
    ) -> pb.SubscriptionServiceRotateResponse:
        """Give a webhook a new key."""
        tenant = caller.tenant
        overlap = request.overlap.seconds + request.overlap.nanos / 1e9 if request.HasField("overlap") else _OVERLAP_S
        asymmetric = request.signature_method == pb.SIGNATURE_METHOD_ED25519
        row, secret = await self._service.rotate(
            tenant, request.subscription_id, request.secret, overlap, asymmetric=asymmetric
        )
        return pb.SubscriptionServiceRotateResponse(subscription=_subscription(row), secret=_told(row, secret))

    @answered
    async def ListDeliveries(
        self, request: pb.SubscriptionServiceListDeliveriesRequest, caller: Caller
    ) -> pb.SubscriptionServiceListDeliveriesResponse:
        """Give a page of deliveries."""
        tenant, size = caller.tenant, resources.page_size(request.page_size)
        after = resources.after_token(request.page_token, _DELIVERIES)
        rows = await self._service.deliveries_page(
            tenant, request.subscription_id, size + 1, after, dead=request.dead_only
        )
        shown, more = resources.cut(rows, size, lambda row: (row.sequence, row.subscription_id), _DELIVERIES)
        return pb.SubscriptionServiceListDeliveriesResponse(
            deliveries=[_delivery(row) for row in shown], next_page_token=more
        )

    @answered
    async def Replay(
        self, request: pb.SubscriptionServiceReplayRequest, caller: Caller
    ) -> pb.SubscriptionServiceReplayResponse:
        """Deliver again what was given up."""
        tenant = caller.tenant
        count = await self._service.replay(tenant, request.subscription_id, request.event_id)
        return pb.SubscriptionServiceReplayResponse(replayed=count)

    @answered
    async def GetPushKey(
        self, request: pb.SubscriptionServiceGetPushKeyRequest, caller: Caller
    ) -> pb.SubscriptionServiceGetPushKeyResponse:
        """Give the key that a browser subscribes with."""
        return pb.SubscriptionServiceGetPushKeyResponse(public_key=self._service.push_key())


def _wish(request: pb.SubscriptionServiceCreateRequest) -> Wish:
    asked = request.subscription
    kind = _KINDS.get(asked.kind)
    if asked.kind == pb.Subscription.KIND_APPRISE:
        raise InputError("Apprise addresses are the operator's", remedy="ask for one in the settings", field="kind")
    if kind is None:
        raise InputError(f"subscriptions of kind {asked.kind} are not known", remedy="update the service", field="kind")
    return Wish(
        url=asked.url,
        kind=kind,
        secret=request.secret,
        asymmetric=request.signature_method == pb.SIGNATURE_METHOD_ED25519,
        p256dh=request.push_keys.p256dh,
        auth=request.push_keys.auth,
        language=asked.language or "en",
        analysis_id=asked.analysis_id,
        document_id=asked.document_id,
    )


def _told(row: SubscriptionRow, secret: str) -> str:
    """What a client is told of a key: an ed25519 key's private half stays here."""
    return "" if row.public_key else secret


def _subscription(row: SubscriptionRow) -> pb.Subscription:
    return pb.Subscription(
        subscription_id=row.subscription_id,
        url=row.url,
        create_time=resources.time(row.create_time),
        disabled_reason=row.disabled_reason,
        kind=pb.Subscription.Kind.Value(f"KIND_{row.kind.value}"),
        language=row.language,
        analysis_id=row.analysis_id,
        document_id=row.document_id,
        public_key=row.public_key,
    )


def _delivery(row: DeliveryRow) -> pb.Delivery:
    return pb.Delivery(
        subscription_id=row.subscription_id,
        event_id=row.event_id,
        sequence=row.sequence,
        attempts=row.attempts,
        create_time=resources.time(row.create_time),
        due_time=None if row.dead_time else resources.time(row.due_time),
        dead_time=resources.time(row.dead_time) if row.dead_time else None,
        failure=row.failure,
    )
