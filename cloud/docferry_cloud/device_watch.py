"""DeviceService.Watch: what is still wanted of a device first, then what comes up, with beats in silence.

Wants are raised together with an event, so the event feed wakes this one; a device's watch looks into the database only
when some want was raised, not at every event.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from docferry.errors import InputError, Overloaded
from docferry_cloud.database import Database
from docferry_cloud.rows import Caller, WantRow
from docferry_cloud.want_list import WantList
from docferry_cloud.watch import Beat, EventFeed, WatchTimes

_BATCH = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """A want and the token that goes on after it."""

    row: WantRow
    token: str


class WantFeed:
    """Wakes the devices that watch this process when wants were raised, whichever process raised them.

    Args:
        max_watchers: Of one device at once; while tokens are not configured all agents are one device.
    """

    def __init__(
        self,
        database: Database,
        wants: WantList,
        feed: EventFeed,
        times: WatchTimes | None = None,
        max_watchers: int = 64,
    ) -> None:
        self._database = database
        self._wants = wants
        self._feed = feed
        self._times = times or WatchTimes()
        self._max_watchers = max_watchers
        self._watchers: Counter[Caller] = Counter()
        self._latest = 0
        self._raised = asyncio.Condition()

    async def run(self) -> None:
        """Follow the wants until cancelled; when the event feed closes, every watch ends."""
        while not self._feed.closing:
            # Read first: what is logged while we look into the wants is looked at again.
            logged = self._feed.latest
            latest = await self._database.run(self._wants.latest)
            if latest > self._latest:
                async with self._raised:
                    self._latest = latest
                    self._raised.notify_all()
            await self._feed.wait_beyond(logged, self._times.heartbeat)
        async with self._raised:
            self._raised.notify_all()
        await asyncio.Event().wait()

    async def watch(self, caller: Caller, resume_token: str) -> AsyncGenerator[Wanted | Beat, None]:
        """What is wanted of this device after `resume_token`, with a beat at the end of the past and in silence.

        Raises:
            InputError: The token is malformed.
            Overloaded: The device watches too often at once.
        """
        cursor = self._cursor(resume_token)
        if self._watchers[caller] >= self._max_watchers:
            raise Overloaded(f"this device watches {self._max_watchers} times already", retry_after=5)
        self._watchers[caller] += 1
        try:
            async with aclosing(self._follow(caller, cursor)) as items:
                async for item in items:
                    yield item
        finally:
            self._watchers[caller] -= 1
            if not self._watchers[caller]:
                del self._watchers[caller]

    async def _follow(self, caller: Caller, cursor: int) -> AsyncGenerator[Wanted | Beat, None]:
        ends = time.monotonic() + self._times.max_age
        beat_due = 0.0
        while not self._feed.closing and time.monotonic() < ends:
            latest = self._latest
            while rows := await self._database.run(self._wants.open, caller, cursor, _BATCH):
                for row in rows:
                    cursor = row.sequence
                    yield Wanted(row, self._token(cursor))
            if time.monotonic() >= beat_due:
                yield Beat(self._token(cursor))
                beat_due = time.monotonic() + self._times.heartbeat
            await self._wait_beyond(latest, max(0.0, min(beat_due, ends) - time.monotonic()))

    async def _wait_beyond(self, sequence: int, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s), self._raised:
                await self._raised.wait_for(lambda: self._latest > sequence or self._feed.closing)
        except TimeoutError:
            pass

    def _token(self, sequence: int) -> str:
        return base64.urlsafe_b64encode(f"w1:{self._feed.log_id}:{sequence}".encode()).decode()

    def _cursor(self, token: str) -> int:
        """Where to begin: 0, everything still wanted, without a token or with one of another store."""
        if not token:
            return 0
        try:
            version, log_id, sequence = base64.urlsafe_b64decode(token.encode()).decode("ascii").split(":")
            if version == "w1" and sequence.isdecimal():
                return int(sequence) if log_id == self._feed.log_id else 0
        except (binascii.Error, ValueError):
            pass
        raise InputError("the resume token is malformed", remedy="give one seen before, or none", field="resume_token")
