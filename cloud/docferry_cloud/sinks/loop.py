"""The one loop that advances the delivery rows, whatever kind of subscriber they are for.

First attempts at one subscriber are made in the order of the log; a retry may come later and carries its sequence.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from docferry.errors import DocferryError
from docferry_cloud import webhook_format
from docferry_cloud.database import Database
from docferry_cloud.deliveries import Deliveries, Due
from docferry_cloud.schema import SinkKind
from docferry_cloud.sinks.message import Message, message, told
from docferry_cloud.sinks.observed import Observed
from docferry_cloud.sinks.port import Delivery, Outcome, Sink, Verdict
from docferry_cloud.sinks.titles import Facts
from docferry_cloud.watch import EventFeed

log = logging.getLogger(__name__)

# A turn and the attempt it ends with fit into the lease, so that two processes never post to one subscriber at once.
# The longest attempt is two posts: a push service that finds a message too large is sent a thinner one.
_TURN_S = 20.0
_LEASE_S = 60.0
_AT_ONCE = 64
# Of one tenant: subscribers that hang hold up their own tenant's, nobody else's.
_TENANT_AT_ONCE = 8
_IDLE_S = 5.0
_TIDY_S = 300.0


@dataclass
class _Gate:
    """How many of one tenant's subscribers are being served or wait for it, and the room for them."""

    room: asyncio.Semaphore
    users: int = 0


class DeliveryLoop:
    """Advances the delivery rows.

    Args:
        sinks: An adapter for every kind.
        observed: Makes the attempts.
        public_url: Where links lead, without a slash at the end; empty: no links.
        schedule: Waits in seconds after the first, second, ... failed attempt.
        luck: 0..1, spreads the waits.
    """

    def __init__(
        self,
        *,
        database: Database,
        deliveries: Deliveries,
        feed: EventFeed,
        sinks: Mapping[SinkKind, Sink],
        observed: Observed,
        public_url: str = "",
        schedule: tuple[float, ...] = webhook_format.RETRY_SECONDS,
        luck: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._deliveries = deliveries
        self._feed = feed
        self._sinks = sinks
        self._observed = observed
        self._public_url = public_url
        self._schedule = schedule
        self._luck = luck
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._gates: dict[str, _Gate] = {}
        self._turned = asyncio.Event()

    async def run(self) -> None:
        """Deliver what is due, until cancelled. What is being posted at that moment is posted again later."""
        active: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            seen, tidy_at = 0, 0.0
            while not self._feed.closing:
                self._turned.clear()
                if time.monotonic() >= tidy_at:
                    await self._database.run(self._deliveries.tidy)
                    tidy_at = time.monotonic() + _TIDY_S
                for due in await self._database.run(self._deliveries.due):
                    name = due.subscription_id
                    if name not in active:
                        active[name] = group.create_task(self._serve(due))
                        active[name].add_done_callback(functools.partial(self._forget, active, name))
                seen = await self._wait(seen, await self._pause())
            # The service stops: nothing is begun any more, and what is being posted is cancelled with us.
            await asyncio.Event().wait()

    async def _wait(self, seen: int, timeout_s: float) -> int:
        """Wait for an event beyond `seen` or for the end of somebody's turn; gives the log's end."""
        grown = asyncio.create_task(self._feed.wait_beyond(seen, timeout_s))
        turned = asyncio.create_task(self._turned.wait())
        try:
            await asyncio.wait((grown, turned), return_when=asyncio.FIRST_COMPLETED)
            return grown.result() if grown.done() else seen
        finally:
            for task in (grown, turned):
                task.cancel()
            await asyncio.gather(grown, turned, return_exceptions=True)

    async def _serve(self, due: Due) -> None:
        async with self._tenant_room(due.tenant), self._gate:
            try:
                if await self._database.run(self._deliveries.lease, due.subscription_id, _LEASE_S):
                    await self._leased(due.subscription_id)
            # One subscriber's trouble must not reach the group, which would end the turns of all others.
            except Exception:
                log.exception("subscription %s: left alone until its lease ends", due.subscription_id)

    @contextlib.asynccontextmanager
    async def _tenant_room(self, tenant: str) -> AsyncIterator[None]:
        gate = self._gates.setdefault(tenant, _Gate(asyncio.Semaphore(_TENANT_AT_ONCE)))
        gate.users += 1
        try:
            async with gate.room:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[tenant]

    async def _leased(self, subscription_id: str) -> None:
        try:
            await self._turn(subscription_id)
        except asyncio.CancelledError:
            # The service stops: the next process need not wait for the lease to end.
            await self._database.run(self._deliveries.free, subscription_id)
            raise
        await self._database.run(self._deliveries.free, subscription_id)

    async def _turn(self, subscription_id: str) -> None:
        ends = time.monotonic() + _TURN_S
        while time.monotonic() < ends:
            delivery = await self._database.run(self._deliveries.next_delivery, subscription_id)
            if delivery is None:
                break
            await self._attempt(delivery)

    async def _attempt(self, delivery: Delivery) -> None:
        try:
            message = await self._message(delivery)
            outcome = await self._observed.attempt(self._sinks[delivery.kind], delivery, message)
        except DocferryError:
            # The database is away, say: no attempt was made.
            raise
        except Exception as error:
            # It counts: what fails here for ever is given up in the end, and holds up nobody behind it.
            log.exception("subscription %s: the attempt failed inside", delivery.subscription_id)
            await self._settle(delivery, Outcome(Verdict.RETRY, f"failed inside: {type(error).__name__}"))
            return
        await self._settle(delivery, outcome)
        if outcome.verdict is Verdict.DELIVERED:
            self._observed.received(message)

    async def _message(self, delivery: Delivery) -> Message:
        event = told(delivery.body)
        facts = Facts()
        if event.has_content:
            facts = await self._database.run(self._deliveries.facts, delivery.tenant, event.analysis_id, event.version)
        return message(event, delivery.event_id, delivery.sequence, facts, delivery.language, self._public_url)

    async def _settle(self, delivery: Delivery, outcome: Outcome) -> None:
        rows = self._deliveries
        if outcome.verdict is Verdict.DELIVERED:
            await self._database.run(rows.settle, delivery)
            return
        attempts = delivery.attempts + 1
        wait = webhook_format.next_wait(attempts, self._schedule, outcome.retry_after, self._luck())
        if outcome.verdict is Verdict.GONE:
            self._observed.count("unsubscribed" if delivery.kind is SinkKind.WEB_PUSH else "gone")
            await self._database.run(rows.gone, delivery, outcome.failure)
        elif outcome.verdict is Verdict.REFUSED:
            self._observed.count("gave_up")
            await self._database.run(rows.bury, delivery, outcome.failure)
        elif wait is None:
            self._observed.count("gave_up")
            reason = f"gave up after {attempts} attempts: {outcome.failure}"
            await self._database.run(rows.give_up, delivery, reason)
        else:
            self._observed.count("failed")
            await self._database.run(rows.postpone, delivery, wait, outcome.failure)

    async def _pause(self) -> float:
        wait = await self._database.run(self._deliveries.next_wait)
        # At least a little: another process may have been faster.
        return _IDLE_S if wait is None else min(_IDLE_S, max(0.05, wait))

    def _forget(self, active: dict[str, asyncio.Task[None]], name: str, _task: asyncio.Task[None]) -> None:
        active.pop(name, None)
        self._turned.set()
