"""A cloud that takes everything and answers at once, so that a soak test wears out the agent and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from docferry.channel import server_options
from docferry.v1 import analysis_pb2, analysis_service_pb2, analysis_service_pb2_grpc, event_pb2

Analysis = analysis_pb2.Analysis
Context = grpc.aio.ServicerContext[Any, Any]


class QuickCloud(analysis_service_pb2_grpc.AnalysisServiceServicer):
    """Keeps nothing of a document but its ids. Each analysis is finished once all its parts are there."""

    def __init__(self) -> None:
        self.finished = 0
        self._analyses: dict[str, Analysis] = {}
        self._by_request: dict[str, str] = {}
        self._log: list[str] = []
        self._news = asyncio.Event()

    async def Submit(  # noqa: N802 - the contract's name
        self,
        request: analysis_service_pb2.SubmitRequest,
        context: Context,  # noqa: ARG002 - gRPC's signature
    ) -> analysis_service_pb2.SubmitResponse:
        """Take an envelope; the same request gives the same analysis."""
        envelope = request.envelope
        known = self._by_request.get(envelope.request_id)
        if known is None:
            known = self._by_request[envelope.request_id] = f"analysis-{len(self._by_request)}"
            wants = [analysis_pb2.Want(part_id=p.part_id, kind=p.kind) for p in envelope.parts if not p.data]
            self._analyses[known] = Analysis(
                analysis_id=known,
                request_id=envelope.request_id,
                document_id=envelope.document_id,
                state=Analysis.STATE_AWAITING_PARTS if wants else Analysis.STATE_SUCCEEDED,
                wants=wants,
                file_name=envelope.file_name,
            )
            if not wants:
                self._finish(known)
        return analysis_service_pb2.SubmitResponse(analysis=self._analyses[known])

    async def Supply(  # noqa: N802 - the contract's name
        self,
        request: analysis_service_pb2.SupplyRequest,
        context: Context,  # noqa: ARG002 - gRPC's signature
    ) -> analysis_service_pb2.SupplyResponse:
        """Count a chunk and let it go."""
        analysis = self._analyses[request.analysis_id]
        received = request.offset + len(request.data)
        left = [want for want in analysis.wants if want.part_id != request.part_id]
        if received < request.total_size:
            left.append(analysis_pb2.Want(part_id=request.part_id, received=received))
        del analysis.wants[:]
        analysis.wants.extend(left)
        if not left:
            self._finish(analysis.analysis_id)
        return analysis_service_pb2.SupplyResponse(received=received, state=analysis.state)

    async def Get(  # noqa: N802 - the contract's name
        self,
        request: analysis_service_pb2.AnalysisServiceGetRequest,
        context: Context,  # noqa: ARG002 - gRPC's signature
    ) -> analysis_service_pb2.AnalysisServiceGetResponse:
        """An analysis by its id."""
        return analysis_service_pb2.AnalysisServiceGetResponse(analysis=self._analyses[request.analysis_id])

    async def Watch(  # noqa: N802 - the contract's name
        self,
        request: analysis_service_pb2.AnalysisServiceWatchRequest,
        context: Context,  # noqa: ARG002 - gRPC's signature
    ) -> AsyncIterator[analysis_service_pb2.AnalysisServiceWatchResponse]:
        """The finished analyses in order, from the resume token on."""
        place = int(request.resume_token or 0)
        while True:
            self._news.clear()
            while place < len(self._log):
                analysis = self._analyses[self._log[place]]
                place += 1
                event = event_pb2.Event(
                    event_id=f"event-{place}",
                    sequence=place,
                    resume_token=str(place),
                    type=event_pb2.Event.TYPE_SUCCEEDED,
                    analysis_id=analysis.analysis_id,
                    document_id=analysis.document_id,
                    state=analysis.state,
                )
                yield analysis_service_pb2.AnalysisServiceWatchResponse(event=event)
            await self._news.wait()

    def _finish(self, analysis_id: str) -> None:
        analysis = self._analyses[analysis_id]
        analysis.state = Analysis.STATE_SUCCEEDED
        analysis.versions.add(version=1, engine="none")
        self._log.append(analysis_id)
        self.finished += 1
        self._news.set()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[tuple[QuickCloud, str]]:
    """The cloud on a free port of this machine, and its address."""
    cloud = QuickCloud()  # type: ignore[abstract]  # what is missing answers UNIMPLEMENTED
    server = grpc.aio.server(options=server_options())
    analysis_service_pb2_grpc.add_AnalysisServiceServicer_to_server(cloud, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield cloud, f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
