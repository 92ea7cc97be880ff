"""The servicer of claims: receive, ask, answer."""

# The rpc names are the contract's, and what a method does not need it still is given.
# ruff: noqa: N802, ARG002

from __future__ import annotations

from collections.abc import Callable

from docferry.errors import NotFound
from docferry.v1 import claim_service_pb2 as pb
from docferry.v1 import claim_service_pb2_grpc as claim_grpc
from docferry_cloud import resources
from docferry_cloud.access.claims import OPEN_WITHIN_S, Claims
from docferry_cloud.access.gate import Gate
from docferry_cloud.analysis_rows import not_found
from docferry_cloud.database import Database
from docferry_cloud.rows import Caller
from docferry_cloud.service import Service
from docferry_cloud.services import Servicer, answered


class ClaimServicer(Servicer, claim_grpc.ClaimServiceServicer):
    """`ClaimService`.

    Args:
        reached_at: Where people reach the service, without a slash at the end; gives an empty text where that is not
            known.
    """

    SERVICE = pb.DESCRIPTOR.services_by_name["ClaimService"].full_name

    def __init__(
        self, service: Service, gate: Gate, database: Database, claims: Claims, reached_at: Callable[[], str]
    ) -> None:
        super().__init__(service, gate)
        self._database = database
        self._claims = claims
        self._reached_at = reached_at

    @answered
    async def Create(self, request: pb.ClaimServiceCreateRequest, caller: Caller) -> pb.ClaimServiceCreateResponse:
        """Make a link."""
        row = await self._service.get(caller.tenant, request.analysis_id, "")
        if caller.only_own and row.device != caller.device:
            raise not_found(request.analysis_id)
        within = request.open_within
        seconds = within.seconds + within.nanos / 1e9 if request.HasField("open_within") else OPEN_WITHIN_S
        create = self._claims.create
        claim, token = await self._database.run(create, caller.tenant, row.device, row.analysis_id, seconds)
        base = self._reached_at()
        return pb.ClaimServiceCreateResponse(
            token=token,
            link=f"{base}/c/{token}" if base else "",
            expire_time=resources.time(claim.expire_time),
        )

    @answered
    async def Open(self, request: pb.ClaimServiceOpenRequest, caller: Caller) -> pb.ClaimServiceOpenResponse:
        """Trade a link for a session."""
        if not caller.link:
            raise NotFound("the call carries no link's token", remedy="send it as `authorization: Bearer dfl_...`")
        claim, session = await self._database.run(self._claims.open, caller.link)
        return pb.ClaimServiceOpenResponse(
            analysis_id=claim.analysis_id, session=session, expire_time=resources.time(claim.session_until or 0)
        )

    @answered
    async def Revoke(self, request: pb.ClaimServiceRevokeRequest, caller: Caller) -> pb.ClaimServiceRevokeResponse:
        """Take back what was handed out."""
        row = await self._service.get(caller.tenant, request.analysis_id, "")
        if caller.only_own and row.device != caller.device:
            raise not_found(request.analysis_id)
        count = await self._database.run(self._claims.revoke, caller.tenant, row.analysis_id)
        return pb.ClaimServiceRevokeResponse(revoked=count)
