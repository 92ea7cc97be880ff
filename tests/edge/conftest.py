"""A cloud in memory on a real socket, with a link that can be broken in every way the tests need."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio
import pytest

from docferry.channel import server_options
from docferry.errors import DocferryError
from docferry.status import abort
from docferry.v1 import analysis_pb2, analysis_service_pb2, analysis_service_pb2_grpc, event_pb2

Analysis = analysis_pb2.Analysis


@dataclass
class FakeCloud(analysis_service_pb2_grpc.AnalysisServiceServicer):
    """Keeps the contract as the edge sees it; `before` is awaited at the head of every call and may raise."""

    before: Callable[[str, object], Awaitable[None]] | None = None
    after: Callable[[str, object], Awaitable[None]] | None = None
    proxy: Callable[[object, grpc.aio.ServicerContext], Awaitable[None]] | None = None
    bodies: dict[str, bytes] = field(default_factory=dict)
    analyses: dict[str, Analysis] = field(default_factory=dict)
    parts: dict[tuple[str, str], bytes] = field(default_factory=dict)
    log: list[event_pb2.Event] = field(default_factory=list)
    submits: list[bytes] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def Submit(self, request, context):
        if self.proxy is not None:
            await self.proxy(request, context)
        await self._at("before", "Submit", request, context)
        raw = request.SerializeToString(deterministic=True)
        self.submits.append(raw)
        envelope = request.envelope
        if envelope.request_id not in self.bodies:
            self.bodies[envelope.request_id] = raw
            wants = [
                analysis_pb2.Want(part_id=part.part_id, kind=part.kind) for part in envelope.parts if not part.data
            ]
            self.analyses[envelope.request_id] = Analysis(
                analysis_id=f"analysis-{len(self.analyses)}",
                request_id=envelope.request_id,
                document_id=envelope.document_id,
                state=Analysis.STATE_AWAITING_PARTS if wants else Analysis.STATE_PENDING,
                wants=wants,
                file_name=envelope.file_name,
            )
        assert self.bodies[envelope.request_id] == raw, "a retry must send the same bytes"
        await self._at("after", "Submit", request, context)
        return analysis_service_pb2.SubmitResponse(analysis=self.analyses[envelope.request_id])

    async def Supply(self, request, context):
        await self._at("before", "Supply", request, context)
        analysis = self._by_id(request.analysis_id)
        key = (request.analysis_id, request.part_id)
        held = self.parts.get(key, b"")
        assert request.offset <= len(held)
        held += request.data[len(held) - request.offset :]
        self.parts[key] = held
        for want in analysis.wants:
            if want.part_id == request.part_id:
                want.received = len(held)
        if len(held) == request.total_size:
            assert hashlib.sha256(held).digest() == request.sha256
            kept = [want for want in analysis.wants if want.part_id != request.part_id]
            del analysis.wants[:]
            analysis.wants.extend(kept)
        await self._at("after", "Supply", request, context)
        return analysis_service_pb2.SupplyResponse(received=len(held), state=analysis.state)

    async def Get(self, request, context):
        await self._at("before", "Get", request, context)
        return analysis_service_pb2.AnalysisServiceGetResponse(analysis=self._by_id(request.analysis_id))

    async def Watch(self, request, context):
        await self._at("before", "Watch", request, context)
        place = int(request.resume_token or 0)
        while True:
            self.news.clear()
            for event in self.log[place:]:
                place += 1
                yield analysis_service_pb2.AnalysisServiceWatchResponse(event=event)
            await self.news.wait()

    def finish(self, document_id: str, kind: event_pb2.Event.Type.ValueType = event_pb2.Event.TYPE_SUCCEEDED) -> None:
        """The analysis of this document has ended: store it and tell whoever watches."""
        analysis = next(found for found in self.analyses.values() if found.document_id == document_id)
        analysis.state = Analysis.STATE_SUCCEEDED
        analysis.versions.add(version=1, engine="pipeline")
        self.log.append(
            event_pb2.Event(
                event_id=f"event-{len(self.log)}",
                sequence=len(self.log) + 1,
                resume_token=str(len(self.log) + 1),
                type=kind,
                analysis_id=analysis.analysis_id,
                document_id=document_id,
                state=analysis.state,
            )
        )
        self.news.set()

    def _by_id(self, analysis_id: str) -> Analysis:
        return next(found for found in self.analyses.values() if found.analysis_id == analysis_id)

    async def _at(self, moment: str, method: str, request: object, context: grpc.aio.ServicerContext) -> None:
        hook = getattr(self, moment)
        if hook is None:
            return
        try:
            await hook(method, request)
        except DocferryError as error:
            await abort(context, error)


@dataclass
class Link:
    """Where the cloud listens; it can be taken down and brought up again on the same port."""

    cloud: FakeCloud
    port: int = 0
    server: grpc.aio.Server | None = None

    async def up(self) -> None:
        self.server = grpc.aio.server(options=server_options())
        analysis_service_pb2_grpc.add_AnalysisServiceServicer_to_server(self.cloud, self.server)
        self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self.server.start()

    async def down(self) -> None:
        if self.server is not None:
            await self.server.stop(0)
            self.server = None


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    link = Link(FakeCloud())
    await link.up()
    yield link
    await link.down()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
