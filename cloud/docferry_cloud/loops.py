"""Loops that keep going."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

_RESTART_S = 1.0


def keep_going(name: str, body: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """A task that runs a loop: an error is logged and the loop begun again, as its state is in rows."""

    async def forever() -> None:
        while True:
            try:
                await body()
            except Exception:
                log.exception("%s: begun again in %g s", name, _RESTART_S)
                await asyncio.sleep(_RESTART_S)

    return asyncio.create_task(forever(), name=name)


async def end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
