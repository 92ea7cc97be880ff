"""Serves the gateway with uvicorn, inside the process of the service or beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import shutil
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import grpc.aio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from docferry.channel import LinkTimes, client_options
from docferry.errors import ConfigurationError
from docferry_cloud.gateway.app import application
from docferry_cloud.gateway.guard import Knock
from docferry_cloud.gateway.link import Link
from docferry_cloud.settings import CloudSettings

log = logging.getLogger(__name__)

HEADERS_S = 10.0
"""How long the head of a request may take to come."""
_HEAD_BYTES = 32 << 10
_IDLE_S = 15
_MOST_ANSWER = 16 << 20


class Gateway:
    """The HTTP side of one process.

    Args:
        drain: Seconds that answers have to come to their end when it stops.
        knock: See `guard.Guard`.
    """

    def __init__(self, settings: CloudSettings, *, times: LinkTimes | None, drain: float, knock: Knock) -> None:
        self._settings = settings
        self._times = times
        self._drain = drain
        self._knock = knock
        self._folder = ""
        self._channel: grpc.aio.Channel | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.address = ""

    def join(self, server: grpc.aio.Server) -> None:
        """Give a gRPC server that has not started yet the socket that only this gateway calls it by.

        A socket in a folder of our own: it needs no certificate, and whoever else is on this machine cannot reach it.

        Raises:
            ConfigurationError: It cannot be made.
        """
        self._folder = tempfile.mkdtemp(prefix="docferry-")
        target = f"unix:{Path(self._folder) / 'grpc'}"
        try:
            server.add_insecure_port(target)
        except RuntimeError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise ConfigurationError(
                f"{target} cannot be bound: {error}", remedy="set TMPDIR to a short path"
            ) from None
        self._channel = grpc.aio.insecure_channel(target, options=client_options(self._times))

    async def start(self) -> str:
        """Take requests; gives the URL.

        Raises:
            ConfigurationError: The address or the TLS files cannot be used.
        """
        if self._channel is None:
            raise RuntimeError("join a gRPC server first")
        listener = _listener(self._settings.http_host, self._settings.http_port)
        try:
            self._server = _Server(self._config(Link(self._channel)))
        except OSError as error:
            listener.close()
            raise ConfigurationError(
                f"the TLS files cannot be used: {error}", remedy="set tls.certificate and tls.key"
            ) from None
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        await self._server.up.wait()
        host, port = self._settings.http_host, listener.getsockname()[1]
        scheme = "http" if self._settings.certificate is None else "https"
        self.address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        log.info("listening on %s", self.address)
        return self.address

    def announce_end(self) -> None:
        """Whoever waits for an analysis is told where to go on; call before the rpcs are ended."""
        self._closing.set()

    async def stop(self) -> None:
        """Let answers end, up to the drain's time, then close."""
        self._closing.set()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        if self._channel is not None:
            await self._channel.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _config(self, link: Link) -> uvicorn.Config:
        settings = self._settings
        tls: dict[str, Any] = {}
        if settings.certificate is not None and settings.key is not None:
            tls = {"ssl_certfile": str(settings.certificate), "ssl_keyfile": str(settings.key)}
        config = uvicorn.Config(
            application(link, settings, self._closing, self._knock),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            http=_Protocol,
            loop="asyncio",
            # Whoever calls is known by a key, never by a header that anybody can write.
            proxy_headers=False,
            server_header=False,
            limit_concurrency=settings.max_calls,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=max(1, math.ceil(self._drain)),
            h11_max_incomplete_event_size=_HEAD_BYTES,
            **tls,
        )
        config.load()
        return config


class _Server(uvicorn.Server):
    """Says when it is up, and leaves signals to the program."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class _Protocol(H11Protocol):
    """HTTP/1.1 whose request heads must come in time: a connection that trickles holds nothing for long."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(HEADERS_S, transport.close)

    def data_received(self, data: bytes) -> None:
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._late = self.loop.call_later(HEADERS_S, self.transport.close)
        super().data_received(data)
        if self._late is not None and self.cycle is not None and not self.cycle.response_complete:
            self._forgive()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def _forgive(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its protocol asyncio knows that it is TCP, and switches Nagle's algorithm off for what comes in: with it an
    # answer in two writes, head and body, waits 40 ms for the caller's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"{host}:{port} cannot be bound: {error.strerror}", remedy="set http.host and http.port"
        ) from None
    return listener
