"""Threads for calls that block, so many and no more: what waits for one kind of thing does not hold up another."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Threads:
    """A bounded number of threads, started when they are needed; `name` is what they are called in a dump."""

    def __init__(self, count: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a blocking function on one of the threads; a call still queued is dropped with its caller."""
        loop = asyncio.get_running_loop()
        # What is logged there is about the same analysis.
        context = contextvars.copy_context()
        return await loop.run_in_executor(self._executor, lambda: context.run(function, *args, **kwargs))

    def abandon(self) -> None:
        """Drop what is queued, and wait for nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Wait for what runs, drop what is queued, end the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)
