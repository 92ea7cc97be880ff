"""A circuit breaker: a server that failed several times in a row is left alone, then tried with one call."""

from __future__ import annotations

import threading
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds, from any start, never backwards."""


class Breaker:
    """One server's state, and how many calls it has under way. Safe to use from several threads.

    Args:
        most_failures: In a row; then nothing is sent for `open_s` seconds.
    """

    def __init__(self, clock: Clock, *, most_failures: int = 3, open_s: float = 10.0) -> None:
        self._clock = clock
        self._most = most_failures
        self._open_s = open_s
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0
        self._calls = 0

    @property
    def calls(self) -> int:
        """Under way."""
        return self._calls

    @property
    def closed(self) -> bool:
        """Whether calls go through; once its time is over one at a time may, until one succeeds."""
        with self._lock:
            return self._free()

    def begin(self) -> bool:
        """Take a call's place; False if none may be sent now."""
        with self._lock:
            if not self._free():
                return False
            self._calls += 1
            return True

    def succeeded(self) -> None:
        """The call has ended well."""
        with self._lock:
            self._calls -= 1
            self._failures = 0

    def failed(self) -> None:
        """The call has failed, and the server is why."""
        with self._lock:
            self._calls -= 1
            self._failures += 1
            if self._failures >= self._most:
                self._until = self._clock() + self._open_s

    def dropped(self) -> None:
        """The call has ended without telling anything of the server."""
        with self._lock:
            self._calls -= 1

    def busy(self, seconds: float) -> None:
        """The server has asked to be left alone so long."""
        with self._lock:
            self._calls -= 1
            self._until = max(self._until, self._clock() + seconds)

    def _free(self) -> bool:
        if self._clock() < self._until:
            return False
        return self._failures < self._most or not self._calls
