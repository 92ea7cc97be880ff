"""The newest events of all tenants, in memory: read once for everybody who watches, however many they are."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from docferry_cloud.event_log import EventRow, TenantEvent
from docferry_cloud.schema import EventType

TAIL = 1024
"""Events that are kept, at least while there are so many; twice as many at most. Some hundred bytes each."""


class Watcher:
    """One stream: whose events it is told, which of them, by which claim (empty: by none), and its bell."""

    def __init__(self, tenant: str, analysis_id: str = "", *, progress: bool = False, claim: str = "") -> None:
        self.tenant = tenant
        self.claim = claim
        self._analysis_id = analysis_id
        self._progress = progress
        self._bell = asyncio.Event()

    def is_told(self, event: TenantEvent) -> bool:
        """Whether an event is for this stream."""
        row = event.row
        if event.tenant != self.tenant or self._analysis_id not in ("", row.analysis_id):
            return False
        return self._progress or row.type is not EventType.PROGRESS

    def ring(self) -> None:
        """Something has come."""
        self._bell.set()

    def hush(self) -> None:
        """What has come up to now is about to be looked at."""
        self._bell.clear()

    async def rung(self, within_s: float) -> bool:
        """Wait for the bell; whether it rang in time."""
        try:
            async with asyncio.timeout(within_s):
                await self._bell.wait()
        except TimeoutError:
            pass
        return self._bell.is_set()


class EventTail:
    """All events of the log after `start`, up to where it was extended last."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._sequences: list[int] = []
        self._events: list[TenantEvent] = []

    def extend(self, events: Sequence[TenantEvent], *, gap: bool) -> None:
        """Add what has come, oldest first; `gap`: between what is here and these there is more."""
        if gap:
            self._sequences.clear()
            self._events.clear()
            self._start = events[0].row.sequence - 1
        self._events.extend(events)
        self._sequences.extend(event.row.sequence for event in events)
        if len(self._events) > 2 * TAIL:
            self._start = self._sequences[-TAIL - 1]
            del self._sequences[:-TAIL], self._events[:-TAIL]

    def read(self, watcher: Watcher, after: int, upto: int, limit: int) -> list[EventRow] | None:
        """What a stream is told with `after < sequence <= upto`; None if it reaches back further than what is here."""
        if after < self._start:
            return None
        first, last = bisect_right(self._sequences, after), bisect_right(self._sequences, upto)
        told: list[EventRow] = []
        for place in range(first, last):
            event = self._events[place]
            if watcher.is_told(event):
                told.append(event.row)
                if len(told) == limit:
                    break
        return told
