"""How often a key may call: a bucket of calls that fills at a steady rate, one a key, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from docferry.errors import Overloaded

MOST_BUCKETS = 10_000


class CallLimits:
    """Buckets by the key's name. A front end counts what comes to itself.

    Args:
        per_minute: Calls a minute in the long run; 0 sets no limit.
        burst: Calls at once after a rest.
        clock: Seconds, never going back.
    """

    def __init__(self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
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
                f"this key may call {self._rate * 60:g} times a minute",
                retry_after=wait,
                remedy=f"wait {wait:.1f} s, or ask the operator for more",
            )
