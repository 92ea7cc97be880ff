"""Watch: what was missed first, then what happens, strictly in order."""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain

from docferry.errors import HistoryGone, InputError, Overloaded
from docferry.metrics import Metrics
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog, EventRow, TenantEvent
from docferry_cloud.event_tail import TAIL, EventTail, Watcher
from docferry_cloud.metrics import seconds_since
from docferry_cloud.schema import EventType

log = logging.getLogger(__name__)

_BATCH = 100
MAX_CLAIM_WATCHERS = 8
"""Streams of one claim at once; of all claims of a tenant together it is half of the tenant's."""


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """Seconds: how often the log is polled for events of other processes, between heartbeats, until a stream ends."""

    poll: float = 0.1
    heartbeat: float = 15.0
    max_age: float = 1800.0


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing happened; go on from `token`."""

    token: str


@dataclass(frozen=True, slots=True)
class Told:
    """An event and the token that goes on after it."""

    row: EventRow
    token: str


class EventFeed:
    """Wakes watchers of one process when the log grows, whoever wrote.

    Args:
        max_watchers: Of one tenant at once: what they cost is a stream each, not a look into the database each.
        metrics: Of `docferry_cloud.metrics`.
    """

    def __init__(
        self,
        database: Database,
        log: EventLog,
        times: WatchTimes | None = None,
        max_watchers: int = 512,
        *,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._log = log
        self._times = times or WatchTimes()
        self._max_watchers = max_watchers
        self._metrics = metrics
        self._watchers: dict[str, set[Watcher]] = {}
        self._log_id = ""
        self._latest = 0
        self._lasting = 0
        self._tail = EventTail(0)
        self._grown = asyncio.Condition()
        self._nudged = asyncio.Event()
        self._closing = False

    async def open(self) -> None:
        """Learn the log's name and its end, and listen to this process's own appends."""
        self._log_id = await self._database.run(self._log.open)
        self._latest = self._lasting = await self._database.run(self._log.latest)
        self._tail = EventTail(self._latest)
        loop = asyncio.get_running_loop()

        def nudge() -> None:
            # A workflow's thread may outlive the loop by a moment at shutdown.
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._nudged.set)

        self._log.listen(nudge)

    async def run(self) -> None:
        """Follow the log's end until cancelled: at once for our own events, by polling for other processes'."""
        while True:
            try:
                async with asyncio.timeout(self._times.poll):
                    await self._nudged.wait()
            except TimeoutError:
                pass
            self._nudged.clear()
            latest = await self._database.run(self._log.latest)
            if latest > self._latest:
                # One more than is kept: then some may lie between.
                found = await self._database.run(self._log.newest, self._latest, latest, TAIL + 1)
                await self._extend(found, latest)

    async def _extend(self, found: Sequence[TenantEvent], latest: int) -> None:
        gap = len(found) > TAIL
        if found:
            self._tail.extend(found, gap=gap)
        self._latest = latest
        # No `await` between what is here and who is told of it: a watcher whose bell is silent has missed nothing.
        by_tenant: dict[str, list[TenantEvent]] = {}
        for event in found:
            by_tenant.setdefault(event.tenant, []).append(event)
        for tenant, watchers in self._watchers.items():
            events = by_tenant.get(tenant, ())
            for watcher in watchers:
                if gap or any(map(watcher.is_told, events)):
                    watcher.ring()
        lasting = [event.row.sequence for event in found if event.row.type is not EventType.PROGRESS]
        if lasting or gap:
            async with self._grown:
                self._lasting = latest if gap else lasting[-1]
                self._grown.notify_all()

    async def close(self) -> None:
        """End every watch cleanly; clients go on by their tokens."""
        async with self._grown:
            self._closing = True
            self._grown.notify_all()
        for watcher in chain.from_iterable(self._watchers.values()):
            watcher.ring()

    @property
    def latest(self) -> int:
        """The log's end, as far as this process knows."""
        return self._latest

    @property
    def log_id(self) -> str:
        """The log's own name; empty before `open`."""
        return self._log_id

    @property
    def closing(self) -> bool:
        """Whether every watch is to end."""
        return self._closing

    async def wait_beyond(self, sequence: int, timeout_s: float) -> int:
        """Wait until there is more than PROGRESS after `sequence`, at most `timeout_s`; gives the log's end."""
        try:
            async with asyncio.timeout(timeout_s), self._grown:
                await self._grown.wait_for(lambda: self._lasting > sequence or self._closing)
        except TimeoutError:
            pass
        return self._latest

    async def watch(
        self,
        tenant: str,
        *,
        resume_token: str = "",
        analysis_id: str = "",
        live_only: bool = False,
        progress: bool = False,
        claim: str = "",
    ) -> AsyncGenerator[Told | Beat, None]:
        """The tenant's events after `resume_token`, then live ones, with a beat at the end of the past and in silence.

        The cursor moves when the consumer asks for the next item, so what was not handed over comes again.

        Args:
            claim: Names the claim that its holder watches by; empty for everyone with a key.

        Raises:
            InputError: The token is malformed.
            HistoryGone: Events after the token were purged, or it is of another log.
            Overloaded: The tenant has too many watchers, or the claim, or all of the tenant's claims.
        """
        cursor = await self._start(resume_token, live_only=live_only)
        watchers = self._watchers.setdefault(tenant, set())
        self._check_room(watchers, claim)
        watcher = Watcher(tenant, analysis_id, progress=progress, claim=claim)
        watchers.add(watcher)
        self._metrics.set("docferry_watchers", self._watching)
        read = functools.partial(self._log.read, tenant, analysis_id=analysis_id, progress=progress)
        try:
            async with aclosing(self._follow(watcher, cursor, read)) as items:
                async for item in items:
                    yield item
        finally:
            watchers.discard(watcher)
            if not watchers:
                self._watchers.pop(tenant, None)
            self._metrics.set("docferry_watchers", self._watching)

    def _check_room(self, watchers: Collection[Watcher], claim: str) -> None:
        if len(watchers) >= self._max_watchers:
            raise Overloaded(f"{self._max_watchers} watchers are connected already", retry_after=30)
        if not claim:
            return
        # Who holds a link must not be able to lock out those who hold keys, nor those who hold other links.
        held = [watcher.claim for watcher in watchers if watcher.claim]
        if held.count(claim) >= MAX_CLAIM_WATCHERS:
            raise Overloaded(f"{MAX_CLAIM_WATCHERS} watchers of this link are connected already", retry_after=30)
        if len(held) >= max(1, self._max_watchers // 2):
            raise Overloaded("too many watchers of links are connected already", retry_after=30)

    @property
    def _watching(self) -> int:
        return sum(map(len, self._watchers.values()))

    async def _follow(
        self, watcher: Watcher, cursor: int, read: Callable[[int, int, int], list[EventRow]]
    ) -> AsyncGenerator[Told | Beat, None]:
        ends = time.monotonic() + self._times.max_age
        beat_due = 0.0
        while not self._closing and time.monotonic() < ends:
            watcher.hush()
            latest = max(cursor, self._latest)
            while cursor < latest:
                rows = self._tail.read(watcher, cursor, latest, _BATCH)
                if rows is None:
                    rows = await self._database.run(read, cursor, latest, _BATCH)
                for row in rows:
                    # Before the first beat it is the past that is told.
                    if beat_due:
                        self._metrics.observe("docferry_event_lag_seconds", seconds_since(row.create_time))
                    yield Told(row, self.token(row.sequence))
                    cursor = row.sequence
                if rows:
                    beat_due = time.monotonic() + self._times.heartbeat if beat_due else 0.0
                if len(rows) < _BATCH:
                    cursor = latest
            if time.monotonic() >= beat_due:
                yield Beat(self.token(cursor))
                beat_due = time.monotonic() + self._times.heartbeat
            if not await watcher.rung(max(0.0, min(beat_due, ends) - time.monotonic())):
                # What has come since was for others.
                cursor = max(cursor, self._latest)

    async def _start(self, resume_token: str, *, live_only: bool) -> int:
        if not resume_token:
            newest = await self._database.run(self._log.latest)
            return newest if live_only else 0
        log_id, sequence = _parse(resume_token)
        newest = await self._database.run(self._log.latest)
        if log_id != self._log_id or sequence > newest or sequence < await self._database.run(self._log.purged):
            raise HistoryGone(
                "the events after this resume token are no longer kept",
                remedy="list the analyses, then watch without a token",
            )
        return sequence

    def token(self, sequence: int) -> str:
        """The opaque token that goes on after `sequence`."""
        return base64.urlsafe_b64encode(f"1:{self._log_id}:{sequence}".encode()).decode()


def _parse(token: str) -> tuple[str, int]:
    try:
        version, log_id, sequence = base64.urlsafe_b64decode(token.encode()).decode("ascii").split(":")
        if version == "1" and sequence.isdecimal():
            return log_id, int(sequence)
    except (binascii.Error, ValueError):
        pass
    raise InputError(
        "the resume token is malformed",
        remedy="give one from an event or a heartbeat seen before",
        field="resume_token",
    )
