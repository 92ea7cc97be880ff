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

from docferry.client import Client, finished
from docferry.errors import Conflict, DocferryError, EnvelopeError, InputError, NotFound, Unavailable
from docferry.v1 import analysis_pb2, event_pb2
from docferry_edge.outbox import UNSENT, Entry, Outbox, State

_log = logging.getLogger(__name__)
_CURSOR = "watch.resume_token"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to try again.

    Attributes:
        first, longest: Seconds of the first and the longest pause; the real pause is drawn from 0 to that
            ("full jitter"), so that many devices do not come back at the same moment.
        refusals: A document on which a reachable cloud fails this often is quarantined.
        idle: Seconds between looks into the outbox when nothing wakes the uplink.
    """

    first: float = 0.5
    longest: float = 30.0
    refusals: int = 20
    idle: float = 1.0


class Uplink:
    """Sends and fetches for one outbox over one client. Run `run`; call `wake` when something new was packed."""

    def __init__(
        self, outbox: Outbox, client: Client, changed: Callable[[str], None], pace: Pace | None = None
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._changed = changed
        self._pace = pace or Pace()
        self._news = asyncio.Event()
        self._due: dict[str, tuple[float, int]] = {}
        self._reachable: bool | None = None

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
            entries = await asyncio.to_thread(self._outbox.in_state, *UNSENT)
            now = time.monotonic()
            for entry in entries:
                if self._due.get(entry.document_id, (0.0, 0))[0] <= now:
                    await self._send(entry)
            pause = self._pace.idle
            if self._due:
                soonest = min(due for due, _ in self._due.values())
                pause = min(pause, max(0.02, soonest - time.monotonic()))
            try:
                async with asyncio.timeout(pause):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _send(self, entry: Entry) -> None:
        try:
            await self._deliver(entry)
        except (EnvelopeError, InputError, Conflict) as error:
            # Trying again would give the same answer: set it aside with its reason and go on with the rest.
            _log.warning("document %s: the cloud refused it: %s", entry.document_id, error)
            await asyncio.to_thread(self._outbox.failed, entry.document_id, error, state=State.QUARANTINED)
            self._due.pop(entry.document_id, None)
            self._changed(entry.document_id)
        except DocferryError as error:
            await self._postpone(entry, error)
        else:
            self._due.pop(entry.document_id, None)
            self._changed(entry.document_id)

    async def _deliver(self, entry: Entry) -> None:
        document_id = entry.document_id
        if entry.request is None:
            raise AssertionError(f"{document_id} is {entry.state} without a request")
        # Submitting again is how a resend learns what is still wanted: same bytes, same analysis.
        analysis = await self._client.submit(entry.request)
        self._seen(reachable=True)
        if entry.state is State.PACKED:
            timings = {"ack": _since(entry)}
            await asyncio.to_thread(self._outbox.submitted, document_id, analysis.analysis_id, timings)
        for want in analysis.wants:
            data = await asyncio.to_thread(self._outbox.part, document_id, want.part_id)
            if data is None:
                raise NotFound(
                    f"the cloud wants part {want.part_id}, which is not here", remedy="capture the document again"
                )
            await self._client.supply(analysis.analysis_id, want.part_id, data, offset=want.received)
        await asyncio.to_thread(self._outbox.delivered, document_id, {"delivered": _since(entry)})

    async def _postpone(self, entry: Entry, error: DocferryError) -> None:
        document_id = entry.document_id
        if isinstance(error, Unavailable):
            self._seen(reachable=False, why=str(error))
        elif type(error) is DocferryError:
            # INTERNAL: the cloud answered and failed. That may be this document's fault.
            refusals = await asyncio.to_thread(self._outbox.refused, document_id)
            if refusals >= self._pace.refusals:
                await asyncio.to_thread(self._outbox.failed, document_id, error, state=State.QUARANTINED)
                self._changed(document_id)
                return
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
            except DocferryError as error:
                # History gone, a token that is no longer taken, a server fault: ask for what is missing, then go on.
                _log.warning("watching stopped: %s", error)
                await self._catch_up()
                await asyncio.to_thread(self._outbox.set_mark, _CURSOR, "")
                await asyncio.sleep(random.uniform(0, self._pace.longest))  # noqa: S311 - jitter, no secret

    async def _fetch(self, event: event_pb2.Event) -> None:
        if not finished(event.state):
            return
        try:
            entry = await asyncio.to_thread(self._outbox.get, event.document_id)
        except NotFound:
            return  # another device's document
        if entry.state in {State.SETTLED, State.FAILED, State.QUARANTINED}:
            return
        while True:
            try:
                analysis = await self._client.get(event.analysis_id)
            except Unavailable:
                await asyncio.sleep(random.uniform(0, self._pace.first))  # noqa: S311 - jitter, no secret
            except NotFound as error:  # deleted since: no answer will come
                await asyncio.to_thread(self._outbox.failed, entry.document_id, error)
                self._changed(entry.document_id)
                return
            else:
                await self._settle(entry, analysis)
                return

    async def _settle(self, entry: Entry, analysis: analysis_pb2.Analysis) -> None:
        if not finished(analysis.state):
            return
        timings = {"event": _since(entry)}
        await asyncio.to_thread(self._outbox.settled, entry.document_id, analysis.SerializeToString(), timings)
        self._changed(entry.document_id)

    async def _catch_up(self) -> None:
        for entry in await asyncio.to_thread(self._outbox.in_state, State.SUBMITTED, State.DELIVERED):
            try:
                await self._settle(entry, await self._client.get(entry.analysis_id))
            except DocferryError as error:
                _log.info("document %s: no answer yet: %s", entry.document_id, error)

    def _seen(self, *, reachable: bool, why: str = "") -> None:
        """Log when the link comes or goes, once."""
        if reachable == self._reachable:
            return
        self._reachable = reachable
        if reachable:
            _log.info("the cloud is reachable")
        else:
            _log.warning("the cloud cannot be reached; documents are kept and sent later: %s", why)


def _since(entry: Entry) -> float:
    """Milliseconds since capture by the wall clock, never negative."""
    return max(0.0, (time.time() - entry.captured_at) * 1000)
