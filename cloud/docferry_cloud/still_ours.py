"""A question that an engine may ask as often as it likes: whether anybody still wants what it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

ASK_EVERY_S = 0.25
"""Seconds between two looks into the database."""


def no_longer_wanted(stopping: threading.Event, is_ours: Callable[[], bool]) -> Callable[[], bool]:
    """Whether to stop: this process stops, or the work is no longer its own.

    Args:
        is_ours: Asked at most every `ASK_EVERY_S`, and never again once it said no.
    """
    asked, ours = time.monotonic(), True

    def stop() -> bool:
        nonlocal asked, ours
        if ours and time.monotonic() - asked > ASK_EVERY_S:
            ours = is_ours()
            asked = time.monotonic()
        return stopping.is_set() or not ours

    return stop
