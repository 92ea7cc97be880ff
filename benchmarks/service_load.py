"""Clients of a fleet: they submit until acknowledged, whatever dies meanwhile, and watch until all is told."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import grpc
import grpc.aio

from docferry.channel import call_metadata, open_channel
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry.status import error_from_rpc
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import analysis_service_pb2_grpc as grpc_api
from docferry.v1 import envelope_pb2, event_pb2

_AGAIN_S = 0.05
_LOOK_S = 0.01
_CALL_S = 10.0
_SENT_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)


@dataclass(slots=True)
class Tally:
    """What clients saw.

    Attributes:
        acked: Analysis id by request id.
        ack_ms: How long each acknowledgement took, retries included.
        told: How often the watcher was told of each analysis's success.
        told_at: When it was first told, in nanoseconds since 1970.
        failed: How often the watcher was told of a failure.
        disorder: Events whose sequence was not above that of the event before.
        refused: Calls that were sent again.
    """

    acked: dict[str, str] = field(default_factory=dict)
    ack_ms: list[float] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    told_at: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    disorder: int = 0
    refused: int = 0


class Clients:
    """Clients of a service with several front ends; each call goes to the next one."""

    def __init__(self, channels: Iterable[grpc.aio.Channel], tally: Tally, token: str = "") -> None:
        self._stubs = [grpc_api.AnalysisServiceStub(channel) for channel in channels]
        self._metadata = call_metadata(token)
        self._tally = tally
        self._turn = 0
        line = Line("r1.l1", "TOTAL 9.00", ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2)), 0.9)
        region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(line,))
        self._structure = pack_reading(Reading(Document((Page(100, 200, (region,)),)), "double@1"))

    def _next(self) -> grpc_api.AnalysisServiceAsyncStub:
        self._turn += 1
        return self._stubs[self._turn % len(self._stubs)]

    async def submit(self) -> str:
        """Submit one document until it is acknowledged; gives its analysis's id."""
        envelope = envelope_pb2.Envelope(
            request_id=str(uuid.uuid4()),
            document_id=str(uuid.uuid4()),
            protocol_version=1,
            file_name="receipt.jpg",
            original_bytes=1000,
            structure=self._structure,
        )
        began = time.perf_counter()
        while True:
            try:
                answer = await self._next().Submit(
                    pb.SubmitRequest(envelope=envelope), timeout=_CALL_S, metadata=self._metadata
                )
            except grpc.aio.AioRpcError as error:
                if error.code() not in _SENT_AGAIN:
                    raise error_from_rpc(error) from error
                self._tally.refused += 1
                await asyncio.sleep(_AGAIN_S)
                continue
            self._tally.ack_ms.append((time.perf_counter() - began) * 1000)
            self._tally.acked[envelope.request_id] = answer.analysis.analysis_id
            return answer.analysis.analysis_id

    async def flood(self, documents: int, at_once: int) -> float:
        """Submit many, so many at once; gives the seconds that it took."""
        numbers = iter(range(documents))

        async def one_after_the_other() -> None:
            for _ in numbers:
                await self.submit()

        began = time.perf_counter()
        await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
        return time.perf_counter() - began

    async def pace(self, documents: int, pause_s: float) -> None:
        """Submit one after the other with pauses: what one device sees of a service that has time."""
        for _ in range(documents):
            await self.submit()
            await asyncio.sleep(pause_s)

    async def waits(self, documents: int, within_s: float) -> list[float]:
        """Submit one after the other, each once the one before is done; gives how long each took, in milliseconds."""
        took = []
        for _ in range(documents):
            began = time.perf_counter()
            await self.submit()
            if not await self.all_told(within_s):
                raise TimeoutError(f"a document was not done within {within_s:g} s")
            took.append((time.perf_counter() - began) * 1000)
        return took

    async def watch(self) -> None:
        """Follow the event log by resume tokens, from front end to front end, until cancelled."""
        token, last = "", 0
        while True:
            try:
                request = pb.AnalysisServiceWatchRequest(resume_token=token)
                async for answer in self._next().Watch(request, metadata=self._metadata):
                    if not answer.HasField("event"):
                        token = answer.heartbeat.resume_token
                        continue
                    event = answer.event
                    token = event.resume_token
                    self._tally.disorder += event.sequence <= last
                    last = event.sequence
                    self._tally.failed += event.type == event_pb2.Event.TYPE_FAILED
                    if event.type == event_pb2.Event.TYPE_SUCCEEDED:
                        self._tally.told[event.analysis_id] += 1
                        self._tally.told_at.setdefault(event.analysis_id, time.time_ns())
            except grpc.aio.AioRpcError as error:
                if error.code() not in (*_SENT_AGAIN, grpc.StatusCode.CANCELLED):
                    raise error_from_rpc(error) from error
            await asyncio.sleep(_AGAIN_S)

    async def all_told(self, within_s: float) -> bool:
        """Wait until the watcher was told of all that was acknowledged; False if it was not in time."""
        ends = time.monotonic() + within_s
        while set(self._tally.acked.values()) - set(self._tally.told):
            if time.monotonic() > ends:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    async def stored(self) -> Counter[str]:
        """How many analyses the service lists for each request."""
        found: Counter[str] = Counter()
        token = ""
        while True:
            answer = await self._page(token)
            found.update(analysis.request_id for analysis in answer.analyses)
            token = answer.next_page_token
            if not token:
                return found

    async def _page(self, token: str) -> pb.AnalysisServiceListResponse:
        while True:
            try:
                request = pb.AnalysisServiceListRequest(page_size=100, page_token=token)
                return await self._next().List(request, timeout=_CALL_S, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                # A front end that was killed last is back, but its channel may not know yet.
                if error.code() not in _SENT_AGAIN:
                    raise error_from_rpc(error) from error
                await asyncio.sleep(_AGAIN_S)

    async def lag_ms(self, analysis_id: str) -> float:
        """From the moment at which the engine was done to the moment at which the watcher was told."""
        request = pb.AnalysisServiceGetRequest(analysis_id=analysis_id)
        version = (await self._next().Get(request, timeout=_CALL_S, metadata=self._metadata)).analysis.versions[-1]
        stamp = int(version.interpretation.document.pages[0].regions[0].lines[0].text)
        return (self._tally.told_at[analysis_id] - stamp) / 1e6


def opened(addresses: Iterable[str]) -> list[grpc.aio.Channel]:
    """A channel to each front end; close them."""
    return [open_channel(address) for address in addresses]
