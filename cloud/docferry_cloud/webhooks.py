"""The loop that posts events to webhooks, and one attempt of it.

First attempts at one webhook are made in the order of the log; a retry may come later and carries its sequence.
The address is resolved once, checked, and connected to: a name cannot point elsewhere between check and use.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import json
import logging
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from docferry.errors import DocferryError, Unavailable
from docferry.logs import about
from docferry.metrics import Metrics
from docferry.tracing import Span, Tell, now_ns, span_id, traceparent
from docferry_cloud import webhook_format
from docferry_cloud.database import Database
from docferry_cloud.log_ids import ids_of
from docferry_cloud.metrics import seconds_since_text
from docferry_cloud.subscriptions import Delivery, Subscriptions
from docferry_cloud.watch import EventFeed

log = logging.getLogger(__name__)

_TIMEOUT_S = 15.0
# A turn and the attempt it ends with fit into the lease, so that two processes never post to one webhook at once.
_TURN_S = 30.0
_LEASE_S = 60.0
_AT_ONCE = 16
_IDLE_S = 5.0
_OF_WORK = ("analysis.succeeded", "analysis.failed")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended: the status (0 if no answer came), what Retry-After asks for, and why it failed."""

    status: int
    retry_after: float = 0.0
    failure: str = ""

    @property
    def received(self) -> bool:
        """Only 2xx is success; a redirect is not followed and not success."""
        return 200 <= self.status < 300


class Poster:
    """Makes attempts.

    Args:
        allow_private: Let attempts go to private and loopback addresses.
    """

    def __init__(self, client: httpx.AsyncClient, *, allow_private: bool) -> None:
        self._client = client
        self._allow_private = allow_private

    async def post(self, delivery: Delivery, trace: str = "") -> Attempt:
        """Make one attempt; failures are the answer, not an exception. `trace` is the header `traceparent`, if any."""
        try:
            # httpx times single reads and writes; a receiver that drips bytes must end too.
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._post(delivery, trace)
        except TimeoutError:
            return Attempt(0, failure=f"no answer within {_TIMEOUT_S:g} s")
        # A ValueError comes from a host that no resolver takes.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, DocferryError) as error:
            return Attempt(0, failure=str(error) or type(error).__name__)

    async def _post(self, delivery: Delivery, trace: str) -> Attempt:
        url = httpx.URL(delivery.url)
        address = await self._address(url)
        headers = webhook_format.headers(delivery.secret, delivery.event_id, int(time.time()), delivery.body)
        headers["host"] = url.netloc.decode("ascii")
        if trace:
            headers["traceparent"] = trace
        request = self._client.build_request(
            "POST",
            url.copy_with(host=address),
            content=delivery.body,
            headers=headers,
            # The certificate is checked for the name, though the connection goes to the address.
            extensions={"sni_hostname": url.host, "timeout": httpx.Timeout(_TIMEOUT_S).as_dict()},
        )
        # Streamed and closed unread: the body of the answer means nothing and may be endless.
        response = await self._client.send(request, stream=True, follow_redirects=False)
        await response.aclose()
        asked = webhook_format.retry_after(response.headers.get("retry-after"), datetime.now(UTC))
        return Attempt(response.status_code, asked, f"HTTP {response.status_code}")

    async def _address(self, url: httpx.URL) -> str:
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        for *_, sockaddr in found:
            address = str(sockaddr[0]).partition("%")[0]
            if self._allow_private or _is_public(address):
                return address
        raise Unavailable(
            f"{url.host} resolves to no public address", remedy="set webhooks.allow_private to reach private ones"
        )


class WebhookLoop:
    """Advances the delivery rows.

    Args:
        schedule: Waits in seconds after the first, second, ... failed attempt.
        luck: 0..1, spreads the waits.
        tell: Takes spans; without it attempts carry no `traceparent`.
    """

    def __init__(
        self,
        *,
        database: Database,
        subscriptions: Subscriptions,
        feed: EventFeed,
        poster: Poster,
        metrics: Metrics,
        schedule: tuple[float, ...] = webhook_format.RETRY_SECONDS,
        luck: Callable[[], float] = random.random,
        tell: Tell | None = None,
    ) -> None:
        self._database = database
        self._subscriptions = subscriptions
        self._feed = feed
        self._poster = poster
        self._metrics = metrics
        self._schedule = schedule
        self._luck = luck
        self._tell = tell
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Post what is due, until cancelled. What is being posted at that moment is posted again later."""
        active: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            seen = 0
            while True:
                for name in await self._database.run(self._subscriptions.due):
                    if name not in active:
                        active[name] = group.create_task(self._serve(name))
                        active[name].add_done_callback(functools.partial(_forget, active, name))
                seen = await self._feed.wait_beyond(seen, await self._pause())

    async def _serve(self, subscription_id: str) -> None:
        async with self._gate:
            try:
                if await self._database.run(self._subscriptions.lease, subscription_id, _LEASE_S):
                    await self._leased(subscription_id)
            # One webhook's trouble must not reach the group, which would end the turns of all others.
            except Exception:
                log.exception("webhook %s: left alone until its lease ends", subscription_id)

    async def _leased(self, subscription_id: str) -> None:
        try:
            await self._turn(subscription_id)
        except asyncio.CancelledError:
            # The service stops: the next process need not wait for the lease to end.
            await self._database.run(self._subscriptions.free, subscription_id)
            raise
        await self._database.run(self._subscriptions.free, subscription_id)

    async def _turn(self, subscription_id: str) -> None:
        ends = time.monotonic() + _TURN_S
        while time.monotonic() < ends:
            delivery = await self._database.run(self._subscriptions.next_delivery, subscription_id)
            if delivery is None:
                break
            await self._attempt(delivery)

    async def _attempt(self, delivery: Delivery) -> None:
        told = json.loads(delivery.body)
        with about(**ids_of(told["data"]["analysis_id"], told["data"]["document_id"])):
            attempt = await self._traced(delivery, told["type"], **told["data"])
            await self._settle(delivery, attempt, told["timestamp"])

    async def _traced(
        self, delivery: Delivery, kind: str, *, analysis_id: str, document_id: str, **_rest: object
    ) -> Attempt:
        if self._tell is None:
            return await self._poster.post(delivery)
        key = f"{delivery.subscription_id}:{delivery.event_id}:{delivery.attempts}"
        start_ns = now_ns()
        attempt = await self._poster.post(delivery, traceparent(document_id, "deliver", key))
        # Events of the work's end came from the work, all others from what a caller did.
        parent = span_id("publish" if kind in _OF_WORK else "submit", analysis_id)
        told = {"http.response.status_code": attempt.status, "attempt": delivery.attempts + 1}
        failure = "" if attempt.received else "NOT_RECEIVED"
        self._tell(Span("deliver", document_id, key, start_ns, now_ns(), parent, failure, told))
        return attempt

    async def _settle(self, delivery: Delivery, attempt: Attempt, timestamp: str) -> None:
        if attempt.received:
            self._count("received")
            log.info("webhook %s: received event %s", delivery.subscription_id, delivery.event_id)
            self._metrics.observe("docferry_delivery_seconds", seconds_since_text(timestamp))
            await self._database.run(self._subscriptions.settle, delivery)
            return
        log.warning(
            "webhook %s: attempt %d for event %s failed: %s",
            delivery.subscription_id,
            delivery.attempts + 1,
            delivery.event_id,
            attempt.failure,
        )
        wait = webhook_format.next_wait(delivery.attempts + 1, self._schedule, attempt.retry_after, self._luck())
        if attempt.status == 410:
            self._count("gone")
            await self._database.run(
                self._subscriptions.disable, delivery.subscription_id, "the receiver answered 410 Gone"
            )
        elif wait is None:
            self._count("gave_up")
            reason = f"gave up after {delivery.attempts + 1} attempts: {attempt.failure}"
            await self._database.run(self._subscriptions.disable, delivery.subscription_id, reason)
        else:
            self._count("failed")
            await self._database.run(self._subscriptions.postpone, delivery, wait)

    def _count(self, outcome: str) -> None:
        self._metrics.count("docferry_delivery_attempts_total", outcome)

    async def _pause(self) -> float:
        wait = await self._database.run(self._subscriptions.next_wait)
        # At least a little: what is due at a webhook that is being posted to cannot be begun here.
        return _IDLE_S if wait is None else min(_IDLE_S, max(0.05, wait))


def client() -> httpx.AsyncClient:
    """The client for attempts: no proxies or credentials from the environment, no redirects, short timeouts."""
    return httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False, follow_redirects=False)


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        # An IPv4 address in IPv6 clothes counts as what it leads to.
        inner = ip.ipv4_mapped or ip.sixtofour or (ipaddress.IPv4Address(ip.packed[12:]) if ip in _NAT64 else None)
        if inner is not None and not inner.is_global:
            return False
        if ip.ipv4_mapped is not None:
            return True
    return ip.is_global and not ip.is_multicast


def _forget(active: dict[str, asyncio.Task[None]], name: str, _task: asyncio.Task[None]) -> None:
    active.pop(name, None)
