"""Who may work beside whom in one process: a document under suspicion is worked on alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Turns of threads: any number beside one another, or one alone. Who waits for a turn alone goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._beside = 0
        self._waiting = 0
        self._taken = False

    @contextmanager
    def beside(self) -> Iterator[None]:
        """A turn beside others; waits while someone works alone or waits to."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken and not self._waiting)
            self._beside += 1
        try:
            yield
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, patience_s: float) -> Iterator[bool]:
        """A turn alone; False if the others did not end within `patience_s`."""
        with self._changed:
            self._waiting += 1
            try:
                free = self._changed.wait_for(lambda: not self._taken and not self._beside, timeout=patience_s)
            finally:
                self._waiting -= 1
                self._changed.notify_all()
            self._taken = self._taken or free
        try:
            yield free
        finally:
            if free:
                with self._changed:
                    self._taken = False
                    self._changed.notify_all()
