"""The uplink: sends what the outbox holds, for as long as it takes, and fetches the answers.

Each document has its own schedule, so one that the cloud cannot digest does not hold up the rest. Schedules live in
memory and follow the monotonic clock: after a restart everything is due at once, whatever the wall clock says.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from docferry.async_client import AsyncClient, finished
from docferry.errors import (
    Conflict,
    DocferryError,
    EnvelopeError,
    InputError,
    NotFound,
    StorageFull,
    Unavailable,
    UnsupportedVersion,
)
from docferry.tracing import Span, Tell, now_ns, span_id, traceparent
from docferry.v1 import analysis_pb2, envelope_pb2, event_pb2
from docferry_edge.entry import FINAL, Entry, State, elapsed_ms
from docferry_edge.outbox import Outbox

_log = logging.getLogger(__name__)
_CURSOR = "watch.resume_token"
_WHOLE = frozenset({envelope_pb2.ROUTE_DECISION_PAGE, envelope_pb2.ROUTE_DECISION_ORIGINAL})


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to try again.

    Attributes:
        first, longest: Seconds of the first and the longest pause; the real pause is drawn from 0 to that
            ("full jitter"), so that many devices do not come back at the same moment.
        refusals: A document on which the cloud fails this often while it takes others is quarantined.
        at_once: Documents sent at the same time.
        idle: Seconds between looks into the outbox when nothing wakes the uplink.
    """

    first: float = 0.5
    longest: float = 30.0
    refusals: int = 20
    at_once: int = 4
    idle: float = 1.0


class Uplink:
    """Sends and fetches for one outbox over one client. Run `run`; call `wake` when something new was packed.

    Args:
        keep_originals: Whether captured files outlive their settling, where the cloud has not got the whole page.
        spans: Takes spans; without it calls carry no `traceparent`.
    """

    def __init__(
        self,
        outbox: Outbox,
        client: AsyncClient,
        changed: Callable[[str], None],
        pace: Pace | None = None,
        *,
        keep_originals: bool = False,
        spans: Tell | None = None,
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._changed = changed
        self._pace = pace or Pace()
        self._keep_originals = keep_originals
        self._spans = spans
        self._news = asyncio.Event()
        self._due: dict[str, tuple[float, int]] = {}
        self._reachable: bool | None = None
        self._delivered = 0
        self._failed_at: dict[str, int] = {}

    def wake(self) -> None:
        """There is something to send."""
        self._news.set()

    async def run(self) -> None:
        """Send and fetch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_all())
            tasks.create_task(self._fetch_all())

    async def _send_all(self) -> None:
        while True:
            self._news.clear()
            try:
                pause = await self._send_due()
            except StorageFull as error:
                _log.error("sending waits: %s", error)
                pause = self._pace.idle
            try:
                async with asyncio.timeout(pause):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _send_due(self) -> float:
        """Send what is due; gives the seconds until the next look."""
        unsent = await asyncio.to_thread(self._outbox.unsent)
        alive = set(unsent)
        self._due = {document_id: due for document_id, due in self._due.items() if document_id in alive}
        now = time.monotonic()
        due = [document_id for document_id in unsent if self._due.get(document_id, (0.0, 0))[0] <= now]
        # While the cloud is away one document at a time finds out whether it is back.
        width = 1 if self._reachable is False else self._pace.at_once
        for start in range(0, len(due), width):
            await asyncio.gather(*(self._send(document_id) for document_id in due[start : start + width]))
            if self._reachable is False:
                break
        if not self._due:
            return self._pace.idle
        soonest = min(when for when, _ in self._due.values()) - time.monotonic()
        return min(self._pace.idle, max(0.02, soonest))

    async def _send(self, document_id: str) -> None:
        entry = await asyncio.to_thread(self._outbox.get, document_id)
        try:
            await self._deliver(entry)
        except UnsupportedVersion as error:
            # The ends speak different versions until one is updated: that is the link's fault, not the document's.
            self._postpone(document_id, error)
        except (EnvelopeError, InputError, Conflict) as error:
            # Trying again would give the same answer: set it aside with its reason and go on with the rest.
            _log.warning("document %s: the cloud refused it: %s", document_id, error)
            await self._set_aside(document_id, error)
        except DocferryError as error:
            if isinstance(error, Unavailable):
                self._seen(reachable=False, why=str(error))
            if type(error) is DocferryError and await self._is_to_blame(document_id):
                await self._set_aside(document_id, error)
            else:
                self._postpone(document_id, error)
        else:
            self._delivered += 1
            self._due.pop(document_id, None)
            self._changed(document_id)

    async def _deliver(self, entry: Entry) -> None:
        document_id = entry.document_id
        request = await asyncio.to_thread(self._outbox.request, document_id)
        if request is None:
            return  # settled meanwhile
        # Submitting again is how a resend learns what is still wanted: same bytes, same analysis.
        trace = traceparent(document_id, "send", entry.request_id) if self._spans is not None else ""
        start_ns = now_ns()
        analysis = await self._client.submit(request, traceparent=trace)
        self._seen(reachable=True)
        if entry.state is State.PACKED:
            self._trace(entry, start_ns)
            timings = _elapsed("ack", entry)
            await asyncio.to_thread(self._outbox.submitted, document_id, analysis.analysis_id, timings)
        for want in analysis.wants:
            if want.state:
                continue  # asked for after the envelope: `wants` answers it
            data = await asyncio.to_thread(self._outbox.part, document_id, want.part_id)
            if data is None:
                raise NotFound(
                    f"the cloud wants part {want.part_id}, which is not here", remedy="capture the document again"
                )
            await self._client.supply(analysis.analysis_id, want.part_id, data, offset=want.received)
        await asyncio.to_thread(self._outbox.delivered, document_id, _elapsed("delivered", entry))

    def _trace(self, entry: Entry, start_ns: int) -> None:
        """Tell of the document's capture and reading, and of the call that the cloud acknowledged."""
        if self._spans is None:
            return
        captured_ns = int(entry.captured_at * 1e9)
        read_ns = captured_ns + int(entry.timings.get("read", 0.0) * 1e6)
        document_id, key = entry.document_id, entry.request_id
        self._spans(Span("capture", document_id, key, captured_ns, read_ns))
        self._spans(Span("send", document_id, key, start_ns, now_ns(), span_id("capture", key)))

    async def _is_to_blame(self, document_id: str) -> bool:
        """Whether an INTERNAL answer is this document's fault: again and again, while others got through between."""
        others = self._delivered
        if self._failed_at.get(document_id) == others:
            return False
        self._failed_at[document_id] = others
        return await asyncio.to_thread(self._outbox.refused, document_id) >= self._pace.refusals

    async def _set_aside(self, document_id: str, error: DocferryError) -> None:
        await asyncio.to_thread(self._outbox.failed, document_id, error, state=State.QUARANTINED)
        self._due.pop(document_id, None)
        self._failed_at.pop(document_id, None)
        self._changed(document_id)

    def _postpone(self, document_id: str, error: DocferryError) -> None:
        tries = self._due.get(document_id, (0.0, 0))[1]
        ceiling = min(self._pace.longest, self._pace.first * 2**tries)
        pause = max(getattr(error, "retry_after", 0.0), random.uniform(0, ceiling))  # noqa: S311 - jitter, no secret
        self._due[document_id] = (time.monotonic() + pause, min(tries + 1, 16))
        _log.info("document %s: again in %.1f s: %s", document_id, pause, error)

    async def _fetch_all(self) -> None:
        """Follow the event log; the cursor moves only after an event was dealt with."""
        while True:
            token = await asyncio.to_thread(self._outbox.mark, _CURSOR)
            try:
                async for event in self._client.watch(token):
                    await self._fetch(event)
                    await asyncio.to_thread(self._outbox.set_mark, _CURSOR, event.resume_token)
            except StorageFull as error:
                _log.error("answers wait: %s", error)
                await asyncio.sleep(self._pace.idle)
            except DocferryError as error:
                # History gone, a token that is no longer taken, a server fault: ask for what is missing, then go on.
                _log.warning("watching stopped: %s", error)
                await self._catch_up()
                await asyncio.sleep(random.uniform(0, self._pace.longest))  # noqa: S311 - jitter, no secret

    async def _fetch(self, event: event_pb2.Event) -> None:
        deleted = event.type == event_pb2.Event.TYPE_DELETED
        if not deleted and not finished(event.state):
            return
        try:
            entry = await asyncio.to_thread(self._outbox.get, event.document_id)
        except NotFound:
            return  # another device's document
        if entry.state is State.SETTLED:
            if deleted:
                await asyncio.to_thread(self._outbox.originals.forget, entry.document_id)
            return
        if entry.state in FINAL and not deleted:
            return
        while not deleted:
            try:
                analysis = await self._client.get(event.analysis_id)
            except Unavailable:
                await asyncio.sleep(random.uniform(0, self._pace.first))  # noqa: S311 - jitter, no secret
            except NotFound:
                break  # deleted since
            else:
                await self._settle(entry, analysis)
                return
        error = NotFound(
            f"{entry.file_name}: the analysis was deleted in the cloud", remedy="capture the document again if needed"
        )
        await asyncio.to_thread(self._outbox.discarded, entry.document_id, error)
        self._changed(entry.document_id)

    async def _settle(self, entry: Entry, analysis: analysis_pb2.Analysis) -> None:
        if not finished(analysis.state):
            return
        raw = analysis.SerializeToString()
        keep = self._keep_originals and analysis.route.decision not in _WHOLE
        await asyncio.to_thread(
            self._outbox.settled, entry.document_id, raw, _elapsed("event", entry), keep_original=keep
        )
        self._changed(entry.document_id)

    async def _catch_up(self) -> None:
        """Ask for every answer that is still out, and follow the log from its beginning again."""
        try:
            for entry in await asyncio.to_thread(self._outbox.in_state, State.SUBMITTED, State.DELIVERED):
                try:
                    await self._settle(entry, await self._client.get(entry.analysis_id))
                except StorageFull:
                    raise
                except DocferryError as error:
                    _log.info("document %s: no answer yet: %s", entry.document_id, error)
            await asyncio.to_thread(self._outbox.set_mark, _CURSOR, "")
        except StorageFull as error:
            _log.error("answers wait: %s", error)

    def _seen(self, *, reachable: bool, why: str = "") -> None:
        """Log when the link comes or goes, once."""
        if reachable == self._reachable:
            return
        self._reachable = reachable
        if reachable:
            _log.info("the cloud is reachable")
        else:
            _log.warning("the cloud cannot be reached; documents are kept and sent later: %s", why)


def _elapsed(step: str, entry: Entry) -> dict[str, float]:
    ms = elapsed_ms(entry)
    return {} if ms is None else {step: round(ms, 1)}
