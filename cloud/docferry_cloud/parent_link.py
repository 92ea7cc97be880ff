"""What a worker process says to the front end that started it: lines of JSON over a socket that both hold.

A worker that hears the front end's end of it close ends too, so that a killed front end leaves none behind.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
from typing import Any

from google.rpc import status_pb2

from docferry.errors import DocferryError
from docferry.status import error_of, status_of

_BACKLOG = 256 * 1024
"""Bytes that wait for a front end that does not read; what it can do without is dropped from there on."""


class ParentLink:
    """The worker's end.

    Args:
        number: The socket's file descriptor. It stays open when the process begins anew: what is used is a copy.
            -1: nobody started this process but the operator, and nobody is told anything.
    """

    def __init__(self, number: int = -1) -> None:
        self._number = number
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def attached(self) -> bool:
        """Whether there is a front end at the other end."""
        return self._number >= 0

    async def open(self) -> None:
        """Take the socket up; within the event loop that it is used in."""
        if not self.attached:
            return
        self._loop = asyncio.get_running_loop()
        copy = socket.socket(fileno=os.dup(self._number))
        self._reader, self._writer = await asyncio.open_connection(sock=copy)

    async def gone(self) -> None:
        """Wait until the front end is gone; for ever where there is none."""
        if self._reader is None:
            await asyncio.Event().wait()
        else:
            # Instead of an end there is an error where it died with something of ours unread.
            with contextlib.suppress(ConnectionError):
                await self._reader.read()

    async def close(self) -> None:
        """Send what was said, and let go of the copy."""
        if self._writer is not None:
            self._writer.close()
            # Where nobody hears it any more.
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()

    def working(self, owner: str, engine: str) -> None:
        """Work has been taken up under this name."""
        self._say("working", owner=owner, engine=engine)

    def recycling(self) -> None:
        """This process gives back what it does and begins anew."""
        self._say("recycling")

    def failed(self, error: DocferryError) -> None:
        """Work cannot be taken up."""
        self._say("failed", error=base64.b64encode(status_of(error).SerializeToString()).decode("ascii"))

    def grown(self) -> None:
        """The event log has grown; a front end that misses it looks by itself before long."""
        self._say("grown", spare=True)

    def measured(self, kind: str, name: str, value: float, labels: tuple[str, ...]) -> None:
        """Something was counted or observed, see `docferry.metrics.Metrics.relay`."""
        self._say("measured", spare=True, kind=kind, name=name, value=value, labels=labels)

    def _say(self, status: str, *, spare: bool = False, **values: Any) -> None:
        """Say something, from whatever thread; without anybody to hear it nothing happens.

        Args:
            spare: The front end can do without it: dropped where too much waits for it already.
        """
        line = json.dumps({"status": status, **values}).encode() + b"\n"
        if self._loop is not None and self._writer is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._write, self._writer, line, spare)

    @staticmethod
    def _write(writer: asyncio.StreamWriter, line: bytes, spare: bool) -> None:
        if not spare or writer.transport.get_write_buffer_size() < _BACKLOG:
            writer.write(line)


def failure(told: str) -> DocferryError:
    """The error that `ParentLink.failed` told of."""
    return error_of(status_pb2.Status.FromString(base64.b64decode(told)))
