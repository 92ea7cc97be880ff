"""The program: puts the parts together, serves, and takes everything down in order."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from docferry.channel import is_loopback, server_options
from docferry.errors import ConfigurationError, DocferryError
from docferry.metrics import Metrics, MetricsPage, serve_metrics
from docferry.v1 import (
    analysis_service_pb2,
    analysis_service_pb2_grpc,
    claim_service_pb2,
    claim_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    operator_service_pb2,
    operator_service_pb2_grpc,
    subscription_service_pb2,
    subscription_service_pb2_grpc,
)
from docferry_cloud.access.audit import Trail
from docferry_cloud.access.claims import Claims
from docferry_cloud.access.gate import Gate
from docferry_cloud.access.keys import Keys
from docferry_cloud.access.limits import CallLimits
from docferry_cloud.access.strangers import Strangers
from docferry_cloud.claim_services import ClaimServicer
from docferry_cloud.core import Times, make_core
from docferry_cloud.deliveries import Deliveries
from docferry_cloud.device_watch import WantFeed
from docferry_cloud.engine import Engine
from docferry_cloud.health import Health
from docferry_cloud.loops import end, keep_going
from docferry_cloud.operator_services import OperatorServicer
from docferry_cloud.service import Service
from docferry_cloud.services import AnalysisServicer, DeviceServicer
from docferry_cloud.settings import CloudSettings
from docferry_cloud.sinks.observed import Observed
from docferry_cloud.sinks.push import Push
from docferry_cloud.subscription_services import SubscriptionServicer
from docferry_cloud.subscriptions import Subscriptions
from docferry_cloud.watch import EventFeed
from docferry_cloud.worker import Worker
from docferry_cloud.worker_process import WorkerProcess

if TYPE_CHECKING:
    from docferry_cloud.gateway.server import Gateway

log = logging.getLogger(__name__)

SERVICES = (
    analysis_service_pb2.DESCRIPTOR.services_by_name["AnalysisService"].full_name,
    claim_service_pb2.DESCRIPTOR.services_by_name["ClaimService"].full_name,
    device_service_pb2.DESCRIPTOR.services_by_name["DeviceService"].full_name,
    operator_service_pb2.DESCRIPTOR.services_by_name["OperatorService"].full_name,
    subscription_service_pb2.DESCRIPTOR.services_by_name["SubscriptionService"].full_name,
)


async def serve(
    settings: CloudSettings,
    *,
    engine_factory: Callable[[], Engine] | None = None,
    worker_command: Sequence[str] = (),
    ready: Callable[..., None] | None = None,
    working: Callable[[str], None] | None = None,
    times: Times | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        engine_factory: Loads the engine; called once, in a thread, while intake already accepts.
        worker_command: Starts a worker process of ours instead, see `WorkerProcess`.
        working: Told the name of the worker process's engine once it works.
        ready: Told the address, and where HTTP is served its URL as `http`, as soon as calls are taken; health says
            when the engine is there too.

    Raises:
        ConfigurationError: The address, the TLS files or the data folder cannot be used.
        DocferryError: Whatever `engine_factory` raised, or what kept the worker process from working.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = CloudServer(
        settings, engine_factory=engine_factory, worker_command=worker_command, working=working, times=times
    )
    try:
        address = await server.start()
        if ready is not None:
            ready(address, **({"http": server.http_address} if server.http_address else {}))
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
    """A front end and, unless `settings.workers` is 0, a worker: in this process, or in one that it keeps alive.

    Without `engine_factory` and `worker_command` it only takes in.
    """

    def __init__(
        self,
        settings: CloudSettings,
        *,
        engine_factory: Callable[[], Engine] | None = None,
        worker_command: Sequence[str] = (),
        working: Callable[[str], None] | None = None,
        times: Times | None = None,
    ) -> None:
        self._settings = settings
        self._times = times or Times()
        self._core = core = make_core(settings)
        # Without an engine of its own it still gives documents to the queue.
        here = settings if engine_factory is not None else replace(settings, workers=0)
        self._worker = Worker(core, here, engine_factory=engine_factory, times=self._times)
        self._process: WorkerProcess | None = None
        if worker_command and settings.workers:
            self._process = WorkerProcess(core, worker_command, self._times, working)
        self._subscriptions = Subscriptions(core.database)
        self._deliveries = Deliveries(core.database, settings.retention_days)
        watch, most = self._times.watch, settings.max_watchers
        self._feed = EventFeed(core.database, core.log, watch, most, metrics=core.metrics)
        self._want_feed = WantFeed(core.database, core.wants, self._feed, self._times.watch)
        observed = Observed(core.metrics, None if core.traces is None else core.tell)
        self._push = Push(core.database, self._deliveries, self._feed, settings, self._times.webhook_waits, observed)
        self._service = Service(
            core,
            subscriptions=self._subscriptions,
            deliveries=self._deliveries,
            push=self._push,
            feed=self._feed,
            want_feed=self._want_feed,
            enqueue=self._worker.workflows.enqueue,
            again=self._worker.workflows.again,
        )
        self._keys = Keys(core.database)
        self._trail = Trail(core.database, settings.audit_days)
        limits = CallLimits(settings.calls_per_minute, settings.burst)
        tries = settings.tries_per_minute
        strangers = Strangers(CallLimits(tries, tries, told="from one address keys that are not valid may be tried"))
        self._gate = Gate(core.database, self._keys, settings.tokens, limits, strangers, self._trail)
        self._health = Health()
        self._server: grpc.aio.Server | None = None
        self._gateway: Gateway | None = None
        self._up: asyncio.Task[None] | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._page: MetricsPage | None = None

    @property
    def metrics(self) -> Metrics:
        """What this process measures of itself."""
        return self._core.metrics

    async def start(self) -> str:
        """Take calls; gives the address. The engine and the worker come up afterwards, health says when.

        Raises:
            ConfigurationError: The address, the TLS files, the database or the data folder cannot be used.
        """
        database = self._core.database
        await database.run(database.create)
        await database.run(self._check_open)
        await database.run(self._subscriptions.configure, self._settings.webhooks, self._settings.overlap_s)
        await database.run(self._subscriptions.configure_apprise, self._settings.apprise)
        await self._push.open()
        if self._core.traces is not None:
            await asyncio.to_thread(self._core.traces.open)
        await self._feed.open()
        await self._set_health(serving=False)
        if self._settings.metrics_port:
            self._page = serve_metrics(self._core.metrics, self._settings.metrics_port)
        self._server = self._build()
        address = self._bind(self._server)
        self._gateway = _gateway(self._settings, self._times, self._server, self._gate)
        await self._server.start()
        if self._gateway is not None:
            await self._gateway.start()
        bodies = (
            ("event feed", self._feed.run),
            ("want feed", self._want_feed.run),
            ("deliveries", self._push.run),
            ("health", self._watch_health),
            ("audit log", self._trail.run),
        )
        self._loops = [keep_going(name, body) for name, body in bodies]
        self._up = asyncio.create_task(self._come_up())
        log.info("listening on %s", address)
        return address

    @property
    def worker_process(self) -> WorkerProcess | None:
        """The worker in a process of its own, where there is one."""
        return self._process

    @property
    def http_address(self) -> str:
        """The URL that HTTP is served at; empty where it is not."""
        return "" if self._gateway is None else self._gateway.address

    def _reached_at(self) -> str:
        """Where people reach the service; on this machine that is its own address, elsewhere somebody has to say."""
        return self._settings.public_url or ("" if self._settings.public else self.http_address)

    async def failure(self) -> None:
        """Wait for ever, or raise what kept the engine or the worker from coming up."""
        if self._up is not None:
            await self._up
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Drain calls, stop the work, take DBOS down, close the database."""
        await self._health.enter_graceful_shutdown()
        if self._gateway is not None:
            self._gateway.announce_end()
        await self._feed.close()
        if self._gateway is not None:
            # Before what it calls: its answers come to their end, and nobody new gets in.
            await self._gateway.stop()
        if self._server is not None:
            await self._server.stop(self._times.drain)
        await self._service.settle()
        self._worker.halt()
        if self._process is not None:
            await self._process.stop()
        if self._up is not None:
            # The engine's load cannot be interrupted, and DBOS must not come up after it was taken down.
            await asyncio.wait((self._up,))
        await end(self._loops)
        self._push.close()
        await self._trail.close()
        await self._worker.stop()
        if self._page is not None:
            await asyncio.to_thread(self._page.close)
        if self._core.traces is not None:
            await asyncio.to_thread(self._core.traces.close)
        await asyncio.to_thread(self._core.database.close)
        log.info("stopped")

    def _check_open(self) -> None:
        """What others reach is not served to everyone."""
        settings = self._settings
        if settings.public and not settings.tokens and not self._keys.exist():
            raise ConfigurationError(
                "others reach listen.host or http.host, but there are no keys: anyone could call",
                remedy="make one with `docferry cloud keys create`, or bind a loopback address such as 127.0.0.1",
                setting="listen.host",
            )

    async def _come_up(self) -> None:
        # First here: two processes that make the queue's tables at once would wait for one another.
        await self._worker.come_up()
        if self._process is not None:
            await self._process.come_up()
        await self._look_at_health()

    async def _watch_health(self) -> None:
        while True:
            await asyncio.sleep(self._times.health)
            await self._look_at_health()

    async def _look_at_health(self) -> None:
        """Serving means that what is taken in gets done: model loaded, a worker alive, the database there."""
        try:
            serving = await (self._worker if self._process is None else self._process).healthy()
        except DocferryError as error:
            log.warning("not healthy: %s", error)
            serving = False
        await self._set_health(serving=serving)

    async def _set_health(self, *, serving: bool) -> None:
        self._core.metrics.set("docferry_healthy", serving)
        answer = health_pb2.HealthCheckResponse
        for name in ("", *SERVICES):
            await self._health.set(name, answer.SERVING if serving else answer.NOT_SERVING)

    def _build(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            options=server_options(self._times.link), maximum_concurrent_rpcs=self._settings.max_calls
        )
        gate = self._gate
        analysis_service_pb2_grpc.add_AnalysisServiceServicer_to_server(AnalysisServicer(self._service, gate), server)
        subscription_service_pb2_grpc.add_SubscriptionServiceServicer_to_server(
            SubscriptionServicer(self._service, gate), server
        )
        claims = ClaimServicer(self._service, gate, self._core.database, Claims(self._core.database), self._reached_at)
        claim_service_pb2_grpc.add_ClaimServiceServicer_to_server(claims, server)
        device_service_pb2_grpc.add_DeviceServiceServicer_to_server(DeviceServicer(self._service, gate), server)
        operator_service_pb2_grpc.add_OperatorServiceServicer_to_server(
            OperatorServicer(self._service, gate, self._core.database, self._keys), server
        )
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
            log.warning("keys are taken without TLS, as listen.behind_proxy says that a proxy speaks it")
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


def _gateway(settings: CloudSettings, times: Times, server: grpc.aio.Server, gate: Gate) -> Gateway | None:
    """HTTP for a server that has not started yet, if the settings want it."""
    if settings.http_port < 0:
        return None
    from docferry_cloud.gateway.server import Gateway

    gateway = Gateway(settings, times=times.link, drain=times.drain, knock=gate.knock)
    gateway.join(server)
    return gateway


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
