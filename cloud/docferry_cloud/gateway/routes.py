"""The one table of the mirror: which HTTP request stands for which rpc. Routes and the OpenAPI document follow from it.

A field comes from the path, from the query or from the JSON body; a body that contradicts the
path is refused. Names are the contract's own, in snake_case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from google.protobuf.descriptor import MethodDescriptor

from docferry.v1 import analysis_service_pb2, claim_service_pb2, operator_service_pb2, subscription_service_pb2


class Shape(Enum):
    """How an rpc's request and answer stand in HTTP."""

    JSON = "one JSON object"
    PIECES = "JSON objects as they come: server-sent events, NDJSON or, by default, all of them in one"
    FILE = "a file"
    EVENTS = "server-sent events or NDJSON, without an end"
    CHUNK = "bytes in, JSON out"


@dataclass(frozen=True, slots=True)
class MirrorRoute:
    """One way to call an rpc.

    Attributes:
        path: Template; the names in braces are fields of the request.
        rpc: `Service.Method`.
        query: Fields that may stand in the query.
        body: Whether the other fields come as a JSON object.
    """

    method: str
    path: str
    rpc: str
    query: tuple[str, ...] = ()
    body: bool = False
    shape: Shape = Shape.JSON

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields in the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def descriptor(self) -> MethodDescriptor:
        """The rpc's descriptor."""
        service, _, method = self.rpc.partition(".")
        return SERVICES[service].methods_by_name[method]


SERVICES = {
    "AnalysisService": analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"],
    "ClaimService": claim_service_pb2.DESCRIPTOR.services_by_name["ClaimService"],
    "SubscriptionService": subscription_service_pb2.DESCRIPTOR.services_by_name["SubscriptionService"],
    "OperatorService": operator_service_pb2.DESCRIPTOR.services_by_name["OperatorService"],
}

_LIST = (
    *("page_size", "page_token", "states", "document_id", "created_from", "created_before", "order"),
    *("query", "routes", "device"),
)
_ONE = "/v1/analyses/{analysis_id}"
_PART = f"{_ONE}/parts/{{part_id}}"

# Custom verbs stand before the plain resource: the first route that fits is taken.
MIRROR: tuple[MirrorRoute, ...] = (
    MirrorRoute("POST", "/v1/analyses", "AnalysisService.Submit", body=True),
    MirrorRoute("GET", "/v1/analyses", "AnalysisService.List", query=_LIST),
    MirrorRoute("POST", f"{_ONE}:cancel", "AnalysisService.Cancel"),
    MirrorRoute("POST", f"{_ONE}:ask", "AnalysisService.Ask", body=True, shape=Shape.PIECES),
    MirrorRoute("POST", f"{_ONE}:fill", "AnalysisService.Fill", body=True),
    MirrorRoute("POST", f"{_ONE}:correct", "AnalysisService.Correct", body=True),
    MirrorRoute("GET", f"{_ONE}:export", "AnalysisService.Export", query=("format", "version"), shape=Shape.FILE),
    MirrorRoute("POST", f"{_ONE}/parts", "AnalysisService.RequestPart", body=True),
    MirrorRoute("GET", _PART, "AnalysisService.GetPart", shape=Shape.FILE),
    MirrorRoute("PUT", _PART, "AnalysisService.Supply", query=("offset", "total_size", "sha256"), shape=Shape.CHUNK),
    MirrorRoute("GET", f"{_ONE}/pages/{{page}}", "AnalysisService.GetPage", query=("longer_side",), shape=Shape.FILE),
    MirrorRoute("POST", f"{_ONE}/claims", "ClaimService.Create", body=True),
    MirrorRoute("DELETE", f"{_ONE}/claims", "ClaimService.Revoke"),
    MirrorRoute("GET", _ONE, "AnalysisService.Get", query=("version",)),
    MirrorRoute("DELETE", _ONE, "AnalysisService.Delete"),
    MirrorRoute("GET", "/v1/documents/{document_id}", "AnalysisService.Get", query=("version",)),
    MirrorRoute(
        "GET",
        "/v1/events",
        "AnalysisService.Watch",
        query=("analysis_id", "resume_token", "live_only", "progress"),
        shape=Shape.EVENTS,
    ),
    MirrorRoute("POST", "/v1/claims:open", "ClaimService.Open"),
    MirrorRoute("POST", "/v1/subscriptions", "SubscriptionService.Create", body=True),
    MirrorRoute("GET", "/v1/subscriptions", "SubscriptionService.List", query=("page_size", "page_token")),
    MirrorRoute("POST", "/v1/subscriptions/{subscription_id}:rotate", "SubscriptionService.Rotate", body=True),
    MirrorRoute("POST", "/v1/subscriptions/{subscription_id}:replay", "SubscriptionService.Replay", body=True),
    MirrorRoute("DELETE", "/v1/subscriptions/{subscription_id}", "SubscriptionService.Delete"),
    MirrorRoute(
        "GET",
        "/v1/deliveries",
        "SubscriptionService.ListDeliveries",
        query=("subscription_id", "dead_only", "page_size", "page_token"),
    ),
    MirrorRoute("GET", "/v1/push_key", "SubscriptionService.GetPushKey"),
    MirrorRoute("POST", "/v1/session", "OperatorService.OpenSession"),
    MirrorRoute("GET", "/v1/session", "OperatorService.GetSession"),
    MirrorRoute("DELETE", "/v1/session", "OperatorService.CloseSession"),
    MirrorRoute("GET", "/v1/figures", "OperatorService.GetFigures", query=("days",)),
    MirrorRoute("GET", "/v1/devices", "OperatorService.ListDevices"),
    MirrorRoute("POST", "/v1/keys", "OperatorService.CreateKey", body=True),
    MirrorRoute("GET", "/v1/keys", "OperatorService.ListKeys"),
    MirrorRoute("POST", "/v1/keys/{key_id}:revoke", "OperatorService.RevokeKey"),
)
