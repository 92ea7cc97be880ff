"""The servicers: receive, ask, answer. Errors become statuses in one place, `answered` and `streamed`."""

# The rpc names are the contract's, and what a method does not need it still is given.
# ruff: noqa: N802, ARG002

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import ClassVar, TypeVar

from docferry.errors import DocferryError, InputError, Unimplemented
from docferry.status import abort
from docferry.v1 import analysis_pb2 as analysis_pb
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import analysis_service_pb2_grpc as analysis_grpc
from docferry.v1 import device_service_pb2 as device_pb
from docferry.v1 import device_service_pb2_grpc as device_grpc
from docferry_cloud import resources
from docferry_cloud.access.gate import Context, Gate
from docferry_cloud.analysis_rows import not_found
from docferry_cloud.correct import correction
from docferry_cloud.device_watch import Wanted
from docferry_cloud.finished import MAX_EXPORTS, MAX_FILLS, asked, exported, filled_in, pictured
from docferry_cloud.listing import listing, place
from docferry_cloud.rows import AnalysisRow, Caller
from docferry_cloud.service import Service
from docferry_cloud.watch import Told

log = logging.getLogger(__name__)

S = TypeVar("S", bound="Servicer")
Q = TypeVar("Q")
A = TypeVar("A")


def answered(method: Callable[[S, Q, Caller], Awaitable[A]]) -> Callable[[S, Q, Context], Awaitable[A]]:
    """A unary method whose errors end the call with their status."""

    @functools.wraps(method)
    async def answer(self: S, request: Q, context: Context) -> A:
        try:
            with self.gate.visit(f"{self.SERVICE}.{method.__name__}", context) as visit:
                caller = await visit.admitted()
                visit.about(request)
                visit.confine(request)
                response = await method(self, request, caller)
                visit.about(response)
                return response
        # The border of the process: nothing may pass to the client but what we say on purpose.
        except Exception as error:  # noqa: BLE001
            await abort(context, _shown(error, method.__name__))

    return answer


def streamed(
    method: Callable[[S, Q, Caller], AsyncGenerator[A, None]],
) -> Callable[[S, Q, Context], AsyncGenerator[A, None]]:
    """The same for a method that answers with a stream."""

    @functools.wraps(method)
    async def stream(self: S, request: Q, context: Context) -> AsyncGenerator[A, None]:
        try:
            with self.gate.visit(f"{self.SERVICE}.{method.__name__}", context) as visit:
                caller = await visit.admitted()
                visit.about(request)
                visit.confine(request)
                async with aclosing(method(self, request, caller)) as answers:
                    async for answer in answers:
                        await visit.still_admitted()
                        yield answer
        except Exception as error:  # noqa: BLE001
            await abort(context, _shown(error, method.__name__))

    return stream


def _shown(error: Exception, name: str) -> DocferryError:
    if isinstance(error, DocferryError):
        return error
    reference = str(uuid.uuid4())
    log.error("%s failed, error %s", name, reference, exc_info=error)
    return DocferryError(
        f"{name} failed inside the service", remedy=f"tell the operator the error id {reference}", error_id=reference
    )


class Servicer:
    """What every servicer needs: the service behind it, and the gate before it."""

    SERVICE: ClassVar[str]
    """Full name of the service in the contract."""

    def __init__(self, service: Service, gate: Gate) -> None:
        self._service = service
        self.gate = gate


class AnalysisServicer(Servicer, analysis_grpc.AnalysisServiceServicer):
    """`AnalysisService`."""

    SERVICE = pb.DESCRIPTOR.services_by_name["AnalysisService"].full_name

    def __init__(self, service: Service, gate: Gate) -> None:
        super().__init__(service, gate)
        self._exports = asyncio.Semaphore(MAX_EXPORTS)
        self._fills = asyncio.Semaphore(MAX_FILLS)

    @answered
    async def Submit(self, request: pb.SubmitRequest, caller: Caller) -> pb.SubmitResponse:
        """Take an envelope."""
        row = await self._service.submit(request, caller)
        return pb.SubmitResponse(analysis=_seen(row, caller))

    @answered
    async def Supply(self, request: pb.SupplyRequest, caller: Caller) -> pb.SupplyResponse:
        """Take the next bytes of a part."""
        progress = await self._service.supply(request, caller)
        return pb.SupplyResponse(received=progress.received, state=resources.state_number(progress.state))

    @answered
    async def Get(self, request: pb.AnalysisServiceGetRequest, caller: Caller) -> pb.AnalysisServiceGetResponse:
        """Give one analysis."""
        tenant = caller.tenant
        if bool(request.analysis_id) == bool(request.document_id):
            raise InputError("one of analysis_id and document_id is needed", remedy="give one", field="analysis_id")
        row = await self._service.get(tenant, request.analysis_id, request.document_id, request.version)
        if caller.only_own and row.device != caller.device:
            raise not_found(request.analysis_id or request.document_id)
        return pb.AnalysisServiceGetResponse(analysis=resources.analysis(row))

    @answered
    async def List(self, request: pb.AnalysisServiceListRequest, caller: Caller) -> pb.AnalysisServiceListResponse:
        """Give a page of analyses."""
        tenant, size = caller.tenant, resources.page_size(request.page_size)
        wanted = listing(request)
        rows = await self._service.page(
            tenant, wanted, size + 1, resources.after_token(request.page_token, wanted.name)
        )
        shown, more = resources.cut(rows, size, lambda row: (place(row, wanted), row.analysis_id), wanted.name)
        return pb.AnalysisServiceListResponse(analyses=[resources.analysis(row) for row in shown], next_page_token=more)

    @streamed
    async def Watch(
        self, request: pb.AnalysisServiceWatchRequest, caller: Caller
    ) -> AsyncGenerator[pb.AnalysisServiceWatchResponse, None]:
        """Give events as they come."""
        async with aclosing(self._service.watch(caller, request)) as items:
            async for item in items:
                if isinstance(item, Told):
                    yield pb.AnalysisServiceWatchResponse(event=resources.event(item.row, item.token))
                else:
                    beat = pb.Heartbeat(resume_token=item.token, time=resources.time(self._service.now()))
                    yield pb.AnalysisServiceWatchResponse(heartbeat=beat)

    @answered
    async def Cancel(self, request: pb.CancelRequest, caller: Caller) -> pb.CancelResponse:
        """Stop the work on an analysis."""
        row = await self._service.cancel(caller.tenant, request.analysis_id)
        return pb.CancelResponse(analysis=_seen(row, caller))

    @answered
    async def Delete(
        self, request: pb.AnalysisServiceDeleteRequest, caller: Caller
    ) -> pb.AnalysisServiceDeleteResponse:
        """Delete an analysis and its data."""
        await self._service.delete(caller.tenant, request.analysis_id)
        return pb.AnalysisServiceDeleteResponse()

    @answered
    async def RequestPart(self, request: pb.RequestPartRequest, caller: Caller) -> pb.RequestPartResponse:
        """Ask the device for a picture."""
        part_id, row = await self._service.request_part(caller.tenant, request)
        return pb.RequestPartResponse(part_id=part_id, analysis=_seen(row, caller))

    @streamed
    async def GetPart(self, request: pb.GetPartRequest, caller: Caller) -> AsyncGenerator[pb.GetPartResponse, None]:
        """Give the bytes of a part."""
        tenant = caller.tenant
        async with aclosing(self._service.part(tenant, request.analysis_id, request.part_id)) as pieces:
            first = True
            async for part, data in pieces:
                yield pb.GetPartResponse(data=data, part=part if first else None)
                first = False

    @streamed
    def GetPage(self, request: pb.GetPageRequest, caller: Caller) -> AsyncGenerator[pb.GetPageResponse, None]:
        """Give a page as a picture."""
        return pictured(self._service, caller.tenant, request, self._exports)

    @streamed
    def Ask(self, request: pb.AskRequest, caller: Caller) -> AsyncGenerator[pb.AskResponse, None]:
        """Answer a question about a document."""
        return asked(self._service, caller.tenant, request)

    @answered
    async def Fill(self, request: pb.FillRequest, caller: Caller) -> pb.FillResponse:
        """Fill a schema of the caller's own."""
        return await filled_in(self._service, caller.tenant, request, self._fills)

    @answered
    async def Correct(self, request: pb.CorrectRequest, caller: Caller) -> pb.CorrectResponse:
        """Store what a person put right."""
        tenant = caller.tenant
        if caller.only_own and (await self._service.get(tenant, request.analysis_id, "")).device != caller.device:
            raise not_found(request.analysis_id)
        row = await self._service.correct(tenant, request.analysis_id, correction(request))
        return pb.CorrectResponse(analysis=_seen(row, caller))

    @streamed
    def Export(self, request: pb.ExportRequest, caller: Caller) -> AsyncGenerator[pb.ExportResponse, None]:
        """Give a document as a file."""
        return exported(self._service, caller.tenant, request, self._exports)


class DeviceServicer(Servicer, device_grpc.DeviceServiceServicer):
    """`DeviceService`: what is wanted of a device; certificates and configuration are not in this release."""

    SERVICE = device_pb.DESCRIPTOR.services_by_name["DeviceService"].full_name

    @answered
    async def Enroll(self, request: device_pb.EnrollRequest, caller: Caller) -> device_pb.EnrollResponse:
        """Not in this release."""
        raise _missing("Enroll")

    @answered
    async def Renew(self, request: device_pb.RenewRequest, caller: Caller) -> device_pb.RenewResponse:
        """Not in this release."""
        raise _missing("Renew")

    @answered
    async def GetConfiguration(
        self, request: device_pb.GetConfigurationRequest, caller: Caller
    ) -> device_pb.GetConfigurationResponse:
        """Not in this release."""
        raise _missing("GetConfiguration")

    @streamed
    async def Watch(
        self, request: device_pb.DeviceServiceWatchRequest, caller: Caller
    ) -> AsyncGenerator[device_pb.DeviceServiceWatchResponse, None]:
        """Tell what is wanted of the calling device."""
        async with aclosing(self._service.watch_wants(caller, request.resume_token)) as items:
            async for item in items:
                response = device_pb.DeviceServiceWatchResponse(resume_token=item.token)
                if isinstance(item, Wanted):
                    row = item.row
                    response.part.analysis_id, response.part.document_id = row.analysis_id, row.document_id
                    response.part.want.CopyFrom(resources.want(row))
                else:
                    response.heartbeat.time.CopyFrom(resources.time(self._service.now()))
                yield response

    @answered
    async def Refuse(self, request: device_pb.RefuseRequest, caller: Caller) -> device_pb.RefuseResponse:
        """Take note that a part will not come."""
        state = await self._service.refuse(caller, request)
        return device_pb.RefuseResponse(state=resources.state_number(state))


def _seen(row: AnalysisRow, caller: Caller) -> analysis_pb.Analysis:
    """The analysis as its changer may see it: a key that only submits learns its state, not its content."""
    if not caller.reads:
        row = replace(row, versions=tuple(replace(version, interpretation=b"") for version in row.versions))
    return resources.analysis(row)


def _missing(name: str) -> Unimplemented:
    return Unimplemented(f"{name} is not in this release", remedy="update the service when a later one has it")
