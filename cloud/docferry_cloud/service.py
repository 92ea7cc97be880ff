"""What the service does for a caller, without gRPC: bounded, away from the event loop, durable before it answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from docferry.errors import Overloaded
from docferry.logs import about
from docferry.tracing import Span, now_ns, parent_of
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import device_service_pb2 as device_pb
from docferry.v1 import envelope_pb2
from docferry_cloud import intake
from docferry_cloud.core import Core
from docferry_cloud.correct import Correction, Corrections
from docferry_cloud.database import wall_clock
from docferry_cloud.deliveries import Deliveries, DeliveryRow
from docferry_cloud.device_watch import Wanted, WantFeed
from docferry_cloud.listing import Listing, page
from docferry_cloud.log_ids import ids_of
from docferry_cloud.metrics import count_submission
from docferry_cloud.rows import AnalysisRow, Caller, Taken
from docferry_cloud.schema import SinkKind, State
from docferry_cloud.sinks.push import Push
from docferry_cloud.subscriptions import SubscriptionRow, Subscriptions, Wish
from docferry_cloud.supply import Progress, check_chunk, find_part, piece, supply
from docferry_cloud.together import Together
from docferry_cloud.want_list import refusal, wish
from docferry_cloud.watch import Beat, EventFeed, Told

log = logging.getLogger(__name__)

MAX_INTAKES = 64
"""Submits and supplies held in memory at once; each is about a megabyte."""
_AGAIN_S = 0.05
_AGAIN_TIMES = 40


class Service:
    """The use cases.

    Args:
        enqueue: Gives a PENDING analysis its place in the queue; a failure is not the caller's, the sweeper helps.
        again: The same for one that may have been in the queue before; False if it is to be asked again soon.
    """

    def __init__(
        self,
        core: Core,
        *,
        subscriptions: Subscriptions,
        deliveries: Deliveries,
        push: Push,
        feed: EventFeed,
        want_feed: WantFeed,
        enqueue: Callable[[str, int], None],
        again: Callable[[str], bool],
    ) -> None:
        self._database = core.database
        self._metrics = core.metrics
        self._tell = core.tell
        self._log = core.log
        self._blobs = core.blobs
        self._blob_list = core.blob_list
        self._blob_threads = core.blob_threads
        self._store = core.store
        self._wants = core.wants
        self._corrections = Corrections(core.database, core.log)
        self._together = Together(core.database, core.store)
        # One after the other: who waits for an acknowledgement goes before who waits for work to begin.
        self._enqueuing = asyncio.Lock()
        self._subscriptions = subscriptions
        self._deliveries = deliveries
        self._push = push
        self._feed = feed
        self._want_feed = want_feed
        self._enqueue = enqueue
        self._again = again
        self._intakes = 0
        self._background: set[asyncio.Task[None]] = set()

    def now(self) -> int:
        """The server's clock, in microseconds."""
        return wall_clock()

    async def submit(self, request: pb.SubmitRequest, caller: Caller) -> AnalysisRow:
        """Take an envelope; on return it is durable and, if all of it is here, on its way into the queue."""
        start_ns = now_ns()
        began, outcome = time.perf_counter(), "refused"
        try:
            async with self._room():
                new = await self._database.run(intake.submission, request, caller)
                taken = await self._together.take(new)
                outcome = "new" if taken.new else "repeated"
                if taken.new:
                    count_submission(self._metrics, new)
                    parent = parent_of(caller.traceparent, new.document_id)
                    self._tell(Span("submit", new.document_id, taken.analysis_id, start_ns, now_ns(), parent))
                with about(**ids_of(taken.analysis_id, new.document_id, caller.tenant)):
                    log.info("accepted" if taken.new else "sent again")
                    if taken.new and not new.announced:
                        self._later(self._put_in_queue(taken))
                if taken.row is not None:
                    return taken.row
                return await self._database.run(self._store.get, caller.tenant, analysis_id=taken.analysis_id)
        finally:
            self._metrics.observe("docferry_submit_seconds", time.perf_counter() - began, outcome)

    async def supply(self, request: pb.SupplyRequest, caller: Caller) -> Progress:
        """Take the next bytes of a part."""
        chunk = intake.chunk(request)
        check_chunk(chunk)
        async with self._room():
            progress = await self._database.run(supply, self._database, self._log, chunk, caller)
        self._metrics.count("docferry_sent_bytes_total", "supply", by=chunk.message_bytes)
        if progress.completed:
            self._later(self._go_on(chunk.analysis_id))
        return progress

    async def request_part(self, tenant: str, request: pb.RequestPartRequest) -> tuple[str, AnalysisRow]:
        """Ask the device for a picture; gives its part id and the analysis."""
        wished = wish(request)
        part_id = await self._database.run(self._wants.request, tenant, request.analysis_id, wished)
        return part_id, await self._database.run(self._store.get, tenant, analysis_id=request.analysis_id)

    async def part(
        self, tenant: str, analysis_id: str, part_id: str
    ) -> AsyncGenerator[tuple[envelope_pb2.Part, bytes], None]:
        """A part and its bytes, piece by piece."""
        part = await self._database.run(find_part, self._database, tenant, analysis_id, part_id)
        data, part.data = part.data, b""
        if data:
            yield part, data
            return
        start = 0
        while data := await self._blob_threads.run(piece, self._database, self._blobs, analysis_id, part_id, start):
            yield part, data
            start += len(data)

    def watch_wants(self, caller: Caller, resume_token: str) -> AsyncGenerator[Wanted | Beat, None]:
        """What is wanted of a device, still and from now on."""
        return self._want_feed.watch(caller, resume_token)

    async def refuse(self, caller: Caller, request: device_pb.RefuseRequest) -> State:
        """Take note that a device will not supply a part; gives the analysis's state."""
        reason = refusal(request)
        taken = await self._database.run(self._wants.refuse, caller, request.analysis_id, request.part_id, reason)
        if taken.resumed:
            self._later(self._go_on(request.analysis_id))
        return taken.state

    async def get(self, tenant: str, analysis_id: str, document_id: str, version: int = 0) -> AnalysisRow:
        """One analysis, with one version alone if that is given."""
        named = {"analysis_id": analysis_id, "document_id": document_id}
        return await self._database.run(self._store.get, tenant, **named, version=version)

    async def stored(self, tenant: str, analysis_id: str) -> tuple[bytes, dict[str, bytes]] | None:
        """The envelope of a tenant's analysis and its supplied parts; None once it is deleted.

        Raises:
            NotFound: No such analysis of this tenant.
        """
        await self.get(tenant, analysis_id, "")
        return await self._blob_threads.run(self._store.envelope, analysis_id)

    async def page(self, tenant: str, wanted: Listing, limit: int, after: tuple[int, str] | None) -> list[AnalysisRow]:
        """A page of analyses."""
        return await self._database.run(page, self._database, tenant, wanted, limit, after)

    def watch(self, caller: Caller, request: pb.AnalysisServiceWatchRequest) -> AsyncGenerator[Told | Beat, None]:
        """Events from the past, then live."""
        return self._feed.watch(
            caller.tenant,
            resume_token=request.resume_token,
            analysis_id=request.analysis_id,
            live_only=request.live_only,
            progress=request.progress,
            claim=caller.who if caller.claimed else "",
        )

    async def cancel(self, tenant: str, analysis_id: str) -> AnalysisRow:
        """Stop the work on an analysis; a finished one stays as it is."""
        return await self._database.run(self._store.cancel, tenant, analysis_id)

    async def correct(self, tenant: str, analysis_id: str, change: Correction) -> AnalysisRow:
        """Store what a person put right as a version."""
        await self._database.run(self._corrections.store, tenant, analysis_id, change)
        return await self._database.run(self._store.get, tenant, analysis_id=analysis_id)

    async def delete(self, tenant: str, analysis_id: str) -> None:
        """Delete an analysis with all its data."""
        released = await self._database.run(self._store.delete, tenant, analysis_id)
        if released:
            await self._blob_threads.run(self._blob_list.clear, released)

    async def subscribe(self, tenant: str, wish: Wish) -> tuple[SubscriptionRow, str]:
        """Add a subscription; gives it with a webhook's key.

        Raises:
            ConfigurationError: A browser subscribes, but Web Push is not set up.
        """
        if wish.kind is SinkKind.WEB_PUSH:
            self._push.vapid()
        return await self._database.run(self._subscriptions.create, tenant, wish)

    async def rotate(
        self, tenant: str, subscription_id: str, secret: str, overlap_s: float, *, asymmetric: bool
    ) -> tuple[SubscriptionRow, str]:
        """Give a webhook a new key; gives both."""
        rotate = self._subscriptions.rotate
        return await self._database.run(rotate, tenant, subscription_id, secret, overlap_s, asymmetric=asymmetric)

    async def deliveries_page(
        self, tenant: str, subscription_id: str, limit: int, before: tuple[int, str] | None, *, dead: bool
    ) -> list[DeliveryRow]:
        """Deliveries, newest event first."""
        page = self._deliveries.page
        return await self._database.run(page, tenant, subscription_id, dead=dead, limit=limit, before=before)

    async def replay(self, tenant: str, subscription_id: str, event_id: str) -> int:
        """Make dead letters due again; gives how many."""
        count = await self._database.run(self._deliveries.replay, tenant, subscription_id, event_id)
        self._log.announce()
        return count

    def push_key(self) -> str:
        """The public key that browsers subscribe with.

        Raises:
            ConfigurationError: Web Push is not set up.
        """
        return self._push.vapid().public

    async def subscriptions_page(
        self, tenant: str, limit: int, before: tuple[int, str] | None
    ) -> list[SubscriptionRow]:
        """Subscriptions, newest first."""
        return await self._database.run(self._subscriptions.page, tenant, limit, before)

    async def unsubscribe(self, tenant: str, subscription_id: str) -> None:
        """Remove a subscription."""
        await self._database.run(self._subscriptions.delete, tenant, subscription_id)

    async def settle(self) -> None:
        """Wait for what was begun in the background."""
        while self._background:
            await asyncio.wait(set(self._background))

    async def _put_in_queue(self, taken: Taken) -> None:
        async with self._enqueuing:
            await self._database.run(self._enqueue, taken.analysis_id, taken.place)

    async def _go_on(self, analysis_id: str) -> None:
        """Queue an analysis whose parts have come; the workflow that asked for them may be ending just now."""
        for _ in range(_AGAIN_TIMES):
            if await self._database.run(self._again, analysis_id):
                return
            await asyncio.sleep(_AGAIN_S)

    @asynccontextmanager
    async def _room(self) -> AsyncIterator[None]:
        if self._intakes >= MAX_INTAKES:
            raise Overloaded(f"{MAX_INTAKES} envelopes are being taken in already", retry_after=1)
        self._intakes += 1
        try:
            yield
        finally:
            self._intakes -= 1

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it after the answer: the row is durable, and the sweeper repeats what fails here."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.warning("left to the sweeper: %s", task.exception())
