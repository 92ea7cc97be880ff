"""When to tell how far a document has come: often enough to watch, never so often that the event log fills with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from docferry.errors import DocferryError

log = logging.getLogger(__name__)

STEPS = 20
"""Events of one document at most, beside the first: one for every twentieth part of its pages."""

Tell = Callable[[int, int], None]
"""Told how many pages were read, of how many."""


class PageProgress:
    """Passes on the first page that was read, then a twentieth part after the other, none too soon after another.

    A document of one page tells nothing, and neither does the last page: what comes next says that it is done.

    Args:
        every_s: Seconds that lie between two events, at least.
    """

    def __init__(self, pages: int, tell: Tell, *, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pages = pages
        self._tell = tell
        self._every_s = every_s
        self._clock = clock
        self._step = -(-pages // STEPS)
        self._next = 1
        self._due = clock() + every_s

    def page_done(self, number: int) -> None:
        """Take note that page `number`, from 0, has been read, and all before it."""
        done = number + 1
        if done >= self._pages or done < self._next or self._clock() < self._due:
            return
        try:
            self._tell(done, self._pages)
        except DocferryError as error:
            # A courtesy: a database that is away for a moment must not cost what was read so far.
            log.warning("progress not told: %s", error)
        except Exception:
            log.exception("progress not told")
        self._next = done + self._step
        self._due = self._clock() + self._every_s
