"""Watch: what was missed first, then what happens, strictly in order."""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from docferry.errors import HistoryGone, InputError, Overloaded
from docferry.metrics import Metrics
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog, EventRow
from docferry_cloud.metrics import seconds_since

log = logging.getLogger(__name__)

_BATCH = 100


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
        max_watchers: Of one tenant at once.
        metrics: Of `docferry_cloud.metrics`.
    """

    def __init__(
        self,
        database: Database,
        log: EventLog,
        times: WatchTimes | None = None,
        max_watchers: int = 64,
        *,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._log = log
        self._times = times or WatchTimes()
        self._max_watchers = max_watchers
        self._metrics = metrics
        self._watchers: dict[str, int] = {}
        self._log_id = ""
        self._latest = 0
        self._grown = asyncio.Condition()
        self._nudged = asyncio.Event()
        self._closing = False

    async def open(self) -> None:
        """Learn the log's name and its end, and listen to this process's own appends."""
        self._log_id = await self._database.run(self._log.open)
        self._latest = await self._database.run(self._log.latest)
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
                async with self._grown:
                    self._latest = latest
                    self._grown.notify_all()

    async def close(self) -> None:
        """End every watch cleanly; clients go on by their tokens."""
        async with self._grown:
            self._closing = True
            self._grown.notify_all()

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
        """Wait until the log's end lies beyond `sequence`, at most `timeout_s`; gives the end."""
        try:
            async with asyncio.timeout(timeout_s), self._grown:
                await self._grown.wait_for(lambda: self._latest > sequence or self._closing)
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
    ) -> AsyncGenerator[Told | Beat, None]:
        """The tenant's events after `resume_token`, then live ones, with a beat at the end of the past and in silence.

        The cursor moves when the consumer asks for the next item, so what was not handed over comes again.

        Raises:
            InputError: The token is malformed.
            HistoryGone: Events after the token were purged, or it is of another log.
            Overloaded: The tenant has too many watchers.
        """
        cursor = await self._start(resume_token, live_only=live_only)
        if self._watchers.get(tenant, 0) >= self._max_watchers:
            raise Overloaded(f"{self._max_watchers} watchers are connected already", retry_after=30)
        self._watchers[tenant] = self._watchers.get(tenant, 0) + 1
        self._metrics.set("docferry_watchers", self._watching)
        try:
            async with aclosing(self._follow(tenant, cursor, analysis_id, progress=progress)) as items:
                async for item in items:
                    yield item
        finally:
            self._watchers[tenant] -= 1
            if not self._watchers[tenant]:
                del self._watchers[tenant]
            self._metrics.set("docferry_watchers", self._watching)

    @property
    def _watching(self) -> int:
        return sum(self._watchers.values())

    async def _follow(
        self, tenant: str, cursor: int, analysis_id: str, *, progress: bool
    ) -> AsyncGenerator[Told | Beat, None]:
        read = functools.partial(self._log.read, progress=progress)
        ends = time.monotonic() + self._times.max_age
        latest, beat_due = self._latest, 0.0
        while not self._closing and time.monotonic() < ends:
            while cursor < latest:
                rows = await self._database.run(read, tenant, cursor, latest, _BATCH, analysis_id)
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
            wait = min(beat_due, ends) - time.monotonic()
            latest = max(cursor, await self.wait_beyond(cursor, max(0.0, wait)))

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
