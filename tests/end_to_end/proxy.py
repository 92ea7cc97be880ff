"""A TCP proxy whose link can be cut, or go dark: packets vanish, and nobody is told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Forwards to a port on loopback.

    Attributes:
        dark: Everything is swallowed, both ways; connections are still taken, and never closed. What was swallowed
            never comes, so a connection that lived through the dark is dead.
        cut_after: After so many more bytes from the client the connection is torn down, once.
        taken, ended: Connections taken, and those that the client's side has closed.
        sent: Bytes that have come from clients.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.dark = False
        self.cut_after: int | None = None
        self.taken = 0
        self.ended = 0
        self.sent = 0
        self._dead: set[asyncio.StreamWriter] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    def go_dark(self) -> None:
        self.dark = True
        self._dead |= self._writers

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        self._writers.add(writer)
        if self.dark:
            self._dead.add(writer)
        upstream: asyncio.StreamWriter | None = None
        try:
            back, upstream = await asyncio.open_connection("127.0.0.1", self.target)
            down = asyncio.create_task(self._pump(back, writer, writer))
            await self._pump(reader, upstream, writer, up=True)
            self.ended += 1
            down.cancel()
        finally:
            self._writers.discard(writer)
            for side in (writer, upstream):
                if side is not None:
                    side.close()

    async def _pump(self, reader, writer, key, *, up: bool = False) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if up:
                    self.sent += len(data)
                    if self.cut_after is not None:
                        self.cut_after -= len(data)
                        if self.cut_after < 0:
                            self.cut_after = None
                            key.transport.abort()
                            return
                if key not in self._dead:
                    writer.write(data)
                    await writer.drain()


@asynccontextmanager
async def proxied(target: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for writer in list(proxy._writers):
            writer.transport.abort()
