"""Limits by the hour: how many bytes and how many whole pages may still leave. Pure but for the clock it is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from docferry_edge.route import Room

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class HourLimits:
    """Most bytes and whole pages in any hour; 0 for no limit."""

    bytes: int = 0
    pages: int = 0


class Meter:
    """Counts what left in the last hour.

    Not safe for several threads at once. What was counted is stored, so that a restart does not forget it.

    Args:
        limits: What may leave.
        clock: Unix time in seconds. When it is set back, what lies in its future counts until it comes to be past.
        load, store: Where the count is kept, as text.
    """

    def __init__(
        self, limits: HourLimits, clock: Callable[[], float], load: Callable[[], str], store: Callable[[str], None]
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._load = load
        self._store = store

    def room(self) -> Room:
        """What may leave now."""
        if not (self._limits.bytes or self._limits.pages):
            return Room()
        spent = self._spent()
        return Room(
            bytes=max(0, self._limits.bytes - sum(size for _, size, _ in spent)) if self._limits.bytes else None,
            pages=max(0, self._limits.pages - sum(page for _, _, page in spent)) if self._limits.pages else None,
        )

    def left(self, size: int, *, page: bool) -> None:
        """A request of so many bytes was packed, with a whole page or without."""
        if self._limits.bytes or self._limits.pages:
            self._store(json.dumps([*self._spent(), (self._clock(), size, int(page))]))

    def _spent(self) -> list[tuple[float, int, int]]:
        since = self._clock() - HOUR_S
        return [(at, size, page) for at, size, page in json.loads(self._load() or "[]") if at > since]
