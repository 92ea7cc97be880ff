"""The program: puts the parts together, serves, and takes everything down in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_health.v1.health import aio as health_aio  # type: ignore[import-untyped]

from docferry.channel import LinkTimes, is_loopback, server_options
from docferry.errors import ConfigurationError
from docferry.v1 import (
    analysis_service_pb2,
    analysis_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    subscription_service_pb2,
    subscription_service_pb2_grpc,
)
from docferry_cloud import webhook_format, webhooks
from docferry_cloud.blob_list import BlobList
from docferry_cloud.blobs import open_blobs
from docferry_cloud.database import Database
from docferry_cloud.device_watch import WantFeed
from docferry_cloud.engine import Engine
from docferry_cloud.event_log import EventLog
from docferry_cloud.interpreter import Interpreter
from docferry_cloud.rows import Limits
from docferry_cloud.service import Service
from docferry_cloud.services import AnalysisServicer, DeviceServicer, SubscriptionServicer
from docferry_cloud.settings import CloudSettings
from docferry_cloud.store import Store
from docferry_cloud.subscriptions import Subscriptions
from docferry_cloud.sweeper import Sweeper, SweepTimes
from docferry_cloud.want_list import WantList
from docferry_cloud.watch import EventFeed, WatchTimes
from docferry_cloud.work import WorkList
from docferry_cloud.workflow import Workflows

log = logging.getLogger(__name__)

SERVICES = (
    analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"].full_name,
    device_service_pb2.DESCRIPTOR.services_by_name["DeviceService"].full_name,
    subscription_service_pb2.DESCRIPTOR.services_by_name["SubscriptionService"].full_name,
)
_RESTART_S = 1.0


@dataclass(frozen=True, slots=True)
class Times:
    """Everything that has a rhythm, in seconds; the defaults are for service, shorter ones for tests.

    Attributes:
        drain: How long calls in progress may take at shutdown, and how long running work.
        webhook_waits: Waits after the first, second, ... failed attempt.
    """

    sweep: SweepTimes = field(default_factory=SweepTimes)
    watch: WatchTimes = field(default_factory=WatchTimes)
    link: LinkTimes = field(default_factory=LinkTimes)
    webhook_waits: tuple[float, ...] = webhook_format.RETRY_SECONDS
    drain: float = 10.0


async def serve(
    settings: CloudSettings,
    *,
    engine_factory: Callable[[], Engine],
    ready: Callable[[str], None] | None = None,
    times: Times | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        engine_factory: Loads the engine; called once, in a thread, while intake already accepts.
        ready: Told the address as soon as calls are taken; health says when the engine is there too.

    Raises:
        ConfigurationError: The address, the TLS files or the data folder cannot be used.
        DocferryError: Whatever `engine_factory` raised.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = CloudServer(settings, engine_factory=engine_factory, times=times)
    try:
        address = await server.start()
        if ready is not None:
            ready(address)
        stopped = asyncio.create_task(stop.wait())
        failed = asyncio.create_task(server.failure())
        await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if failed.done():
            failed.result()
        failed.cancel()
    finally:
        await server.stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class CloudServer:
    """One process of the service. DBOS allows one at a time in a process."""

    def __init__(
        self, settings: CloudSettings, *, engine_factory: Callable[[], Engine], times: Times | None = None
    ) -> None:
        self._settings = settings
        self._engine_factory = engine_factory
        self._times = times or Times()
        self._stopping = threading.Event()
        self._engine: Engine | None = None
        folder = settings.directory
        self._database = Database(settings.database or folder / "store.sqlite", min_free_bytes=settings.min_free_bytes)
        self._log = EventLog(self._database)
        limits = Limits(settings.queue_limit, settings.tenant_limit, settings.retention_days)
        blobs = open_blobs(settings.blobs, folder / "blobs", settings.blobs_endpoint)
        blob_list = BlobList(self._database, blobs)
        self._store = Store(self._database, self._log, blobs, limits)
        self._subscriptions = Subscriptions(self._database)
        self._wants = WantList(self._database, self._log, request_s=settings.request_s)
        self._feed = EventFeed(self._database, self._log, self._times.watch)
        self._want_feed = WantFeed(self._database, self._wants, self._feed, self._times.watch)
        # The host and the pid would do until a pid is used again.
        owner = f"cloud-{uuid.uuid4()}"
        self._work = WorkList(self._database, self._log, owner)
        self._workflows = Workflows(
            settings.database or folder / "workflows.sqlite",
            executor_id=owner,
            concurrency=settings.workers,
            body=self._interpret,
        )
        self._sweeper = Sweeper(
            store=self._store,
            events=self._log,
            work=self._work,
            wants=self._wants,
            workflows=self._workflows,
            blobs=blob_list,
            retention_days=settings.retention_days,
            times=self._times.sweep,
        )
        self._service = Service(
            database=self._database,
            log=self._log,
            blobs=blobs,
            blob_list=blob_list,
            store=self._store,
            wants=self._wants,
            subscriptions=self._subscriptions,
            feed=self._feed,
            want_feed=self._want_feed,
            enqueue=self._workflows.enqueue,
            again=self._workflows.again,
        )
        self._health = health_aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self._up: asyncio.Task[None] | None = None
        self._loops: list[asyncio.Task[None]] = []

    async def start(self) -> str:
        """Take calls; gives the address. The engine and the worker come up afterwards, health says when.

        Raises:
            ConfigurationError: The address, the TLS files or the data folder cannot be used.
        """
        await self._database.run(self._database.create)
        await self._database.run(self._subscriptions.configure, self._settings.webhooks)
        await self._feed.open()
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        self._server = self._build()
        address = self._bind(self._server)
        await self._server.start()
        self._loops = [
            self._loop("event feed", self._feed.run),
            self._loop("want feed", self._want_feed.run),
            self._loop("webhooks", self._post),
        ]
        self._up = asyncio.create_task(self._come_up())
        log.info("listening on %s", address)
        return address

    async def failure(self) -> None:
        """Wait for ever, or raise what kept the engine or the worker from coming up."""
        if self._up is not None:
            await self._up
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Drain calls, stop the work, take DBOS down, close the database."""
        await self._health.enter_graceful_shutdown()
        await self._feed.close()
        if self._server is not None:
            await self._server.stop(self._times.drain)
        await self._service.settle()
        self._stopping.set()
        if self._up is not None:
            # The engine's load cannot be interrupted, and DBOS must not come up after it was taken down.
            await asyncio.wait((self._up,))
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self._engine is not None:
            await asyncio.to_thread(self._workflows.stop, self._times.drain)
            await self._database.run(self._work.announce_gone)
        await asyncio.to_thread(self._database.close)
        log.info("stopped")

    async def _come_up(self) -> None:
        engine = await asyncio.to_thread(self._engine_factory)
        if self._stopping.is_set():
            return
        self._engine = engine
        await asyncio.to_thread(self._workflows.start)
        await self._database.run(lambda: self._sweeper.sweep(first=True))
        self._loops += [
            self._loop("sweeper", self._sweep),
            self._loop("blobs", self._move),
            self._loop("purge", self._purge),
        ]
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        log.info("engine %s is loaded", engine.name)

    def _interpret(self, analysis_id: str) -> None:
        if self._engine is not None and not self._stopping.is_set():
            patience = self._settings.patience_s
            Interpreter(self._store, self._work, self._engine, self._stopping, patience).run(analysis_id)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._times.sweep.sweep)
            await self._database.run(self._sweeper.sweep)

    async def _move(self) -> None:
        while True:
            # Not on the store's threads: an object store may keep one waiting for long.
            await asyncio.to_thread(self._sweeper.move_blobs)
            await asyncio.sleep(self._times.sweep.sweep)

    async def _purge(self) -> None:
        while True:
            await self._database.run(self._sweeper.purge)
            await asyncio.sleep(self._times.sweep.purge)

    async def _post(self) -> None:
        async with webhooks.client() as client:
            poster = webhooks.Poster(client, allow_private=self._settings.allow_private)
            await webhooks.WebhookLoop(
                database=self._database,
                subscriptions=self._subscriptions,
                feed=self._feed,
                poster=poster,
                schedule=self._times.webhook_waits,
            ).run()

    def _loop(self, name: str, body: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Keep a loop going: an error is logged and the loop begun again, as its state is in rows."""

        async def forever() -> None:
            while True:
                try:
                    await body()
                except Exception:
                    log.exception("%s: begun again in %g s", name, _RESTART_S)
                    await asyncio.sleep(_RESTART_S)

        return asyncio.create_task(forever(), name=name)

    async def _set_health(self, status: int) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)

    def _build(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            options=server_options(self._times.link), maximum_concurrent_rpcs=self._settings.max_calls
        )
        tokens = self._settings.tokens
        analysis_service_pb2_grpc.add_AnalysisServiceServicer_to_server(AnalysisServicer(self._service, tokens), server)
        subscription_service_pb2_grpc.add_SubscriptionServiceServicer_to_server(
            SubscriptionServicer(self._service, tokens), server
        )
        device_service_pb2_grpc.add_DeviceServiceServicer_to_server(DeviceServicer(self._service, tokens), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if self._settings.reflection:
            from grpc_reflection.v1alpha import reflection  # type: ignore[import-untyped]

            reflection.enable_server_reflection((*SERVICES, reflection.SERVICE_NAME), server)
        return server

    def _bind(self, server: grpc.aio.Server) -> str:
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        address = f"{host}:{self._settings.port}"
        credentials = _credentials(self._settings)
        if credentials is None and not is_loopback(self._settings.host):
            log.warning("tokens are taken without TLS: put a TLS proxy in front, or set tls.certificate")
        try:
            if credentials is None:
                port = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise ConfigurationError(
                f"{address} cannot be bound: {error}",
                remedy="is another service running there? set listen.host and listen.port",
            ) from error
        return f"{host}:{port}"


def _credentials(settings: CloudSettings) -> grpc.ServerCredentials | None:
    if settings.certificate is None or settings.key is None:
        return None
    try:
        pair = (settings.key.read_bytes(), settings.certificate.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"{error.filename}: cannot be read: {error.strerror}", remedy="set tls.certificate and tls.key"
        ) from error
    return grpc.ssl_server_credentials([pair])
