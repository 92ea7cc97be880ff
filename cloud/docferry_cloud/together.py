"""Submissions that come at the same time share one transaction: one wait for the disk acknowledges all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from docferry.errors import StorageFull, Unavailable
from docferry_cloud.database import Database
from docferry_cloud.rows import Submission, Taken
from docferry_cloud.store import Store

_MOST = 32


@dataclass(frozen=True, slots=True)
class _Waiting:
    new: Submission
    taken: asyncio.Future[Taken]


class Together:
    """Takes submissions into a store, those of one moment at once. Nobody waits for others to come."""

    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._store = store
        self._waiting: list[_Waiting] = []
        self._taking: asyncio.Task[None] | None = None

    async def take(self, new: Submission) -> Taken:
        """`Store.take`, with its errors; durable on return."""
        waiting = _Waiting(new, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._taking is None:
            self._taking = asyncio.create_task(self._take_all())
        return await waiting.taken

    async def _take_all(self) -> None:
        """What comes while a transaction is under way is the next one."""
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            # A caller that has left meanwhile has nothing taken.
            batch = [waiting for waiting in batch if not waiting.taken.cancelled()]
            await self._take_batch(batch)
        self._taking = None

    async def _take_batch(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = await self._database.run(self._store.take_many, [waiting.new for waiting in batch])
        except (StorageFull, Unavailable) as error:
            for waiting in batch:
                _settle(waiting, error)
        # One of them is not to be stored, and nothing was: each by itself, so that it is that one's answer alone.
        except Exception as error:  # noqa: BLE001
            if len(batch) == 1:
                _settle(batch[0], error)
            for waiting in batch if len(batch) > 1 else ():
                await self._take_batch([waiting])
        else:
            for waiting, outcome in zip(batch, outcomes, strict=True):
                _settle(waiting, outcome)


def _settle(waiting: _Waiting, outcome: Taken | Exception) -> None:
    if waiting.taken.done():
        return
    if isinstance(outcome, Exception):
        waiting.taken.set_exception(outcome)
    else:
        waiting.taken.set_result(outcome)
