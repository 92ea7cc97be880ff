"""How often a key or an address may call: a bucket that fills at a steady rate, one a name, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from docferry.errors import Overloaded

MOST_BUCKETS = 10_000


class CallLimits:
    """Buckets by name. A front end counts what comes to itself.

    Args:
        per_minute: Calls a minute in the long run; 0 sets no limit.
        burst: Calls at once after a rest.
        clock: Seconds, never going back.
        told: What is bounded, in words, followed by how often.
    """

    def __init__(
        self,
        per_minute: int,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        told: str = "this key may call",
    ) -> None:
        self._told = told
        self._rate = per_minute / 60
        self._burst = float(max(1, burst))
        self._clock = clock
        # Calls left and when that was, the one that called longest ago first.
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count a call.

        Raises:
            Overloaded: The bucket is empty; says when the next call is allowed.
        """
        if not self._rate:
            return
        now = self._clock()
        left, then = self._buckets.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > MOST_BUCKETS:
            # The one that has rested longest: most likely it is full again, and the same as none.
            del self._buckets[next(iter(self._buckets))]
        if not allowed:
            wait = max(0.001, (1 - left) / self._rate)
            raise Overloaded(
                f"{self._told} {self._rate * 60:g} times a minute",
                retry_after=wait,
                remedy=f"wait {wait:.1f} s, or ask the operator for more",
            )

    def give_back(self, name: str) -> None:
        """Take back a call that turned out to be none to count."""
        if name in self._buckets:
            left, then = self._buckets[name]
            self._buckets[name] = (min(self._burst, left + 1), then)
