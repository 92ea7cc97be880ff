"""The worker of a front end, in a process of its own: engines leak, hang and crash, and acknowledgements must not.

It is begun again when it ends, and killed when its event loop or its sweeper stands still: both renew its lease. An
engine that hangs on its thread is not noticed here. When it has grown old or large it begins anew by itself
(`worker.work`). What it held is in rows, so nothing is lost with it: its successor or any other worker goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from docferry.errors import DocferryError, EngineError
from docferry_cloud.core import Core, Times
from docferry_cloud.parent_link import failure

log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_WELL_S = 60.0
"""A process that has lived so long is begun again at once."""
_STDERR = 2
_SHOWN = 200
"""Bytes of a line that is not understood that the log shows."""


class WorkerProcess:
    """Keeps one worker process alive.

    Args:
        command: Starts the worker; it gets `--attached FD` with the socket for its `ParentLink`.
        working: Told the engine's name when the first process works.
    """

    def __init__(
        self, core: Core, command: Sequence[str], times: Times, working: Callable[[str], None] | None = None
    ) -> None:
        self._core = core
        self._command = tuple(command)
        self._times = times
        self._told_working = working
        self._process: asyncio.subprocess.Process | None = None
        self._owner = ""
        self._missed = 0
        self._stopping = asyncio.Event()
        self._failure: DocferryError | None = None
        self._first = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def come_up(self) -> None:
        """Start it and wait until it works.

        Raises:
            DocferryError: What kept it from working at its first start.
        """
        if self._stopping.is_set():
            return
        self._keeping = asyncio.create_task(self._keep(), name="worker process")
        first = asyncio.create_task(self._first.wait())
        await asyncio.wait((self._keeping, first), return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        if not self._first.is_set():
            await self._keeping

    @property
    def pid(self) -> int:
        """Of the process that runs now; 0 if none does."""
        return 0 if self._process is None or self._process.returncode is not None else self._process.pid

    def halt(self) -> None:
        """Let it take up nothing more and end."""
        self._stopping.set()
        self._send(signal.SIGTERM)

    async def stop(self) -> None:
        """Wait for its end; one that does not come to it is killed."""
        self.halt()
        if self._keeping is None:
            return
        done, _ = await asyncio.wait((self._keeping,), timeout=2 * self._times.drain)
        if not done:
            log.warning("the worker process does not end: killed")
            self._send(signal.SIGKILL)
        await asyncio.gather(self._keeping, return_exceptions=True)

    async def healthy(self) -> bool:
        """Whether it works: engine loaded, lease held. One whose lease is over for long has come to a stand: killed."""
        try:
            living = await self._core.database.run(self._core.work.living)
        except DocferryError:
            self._missed = 0  # it cannot hold its lease either
            raise
        alive = self._owner in living
        self._missed = 0 if alive or not self._owner else self._missed + 1
        if self._missed * self._times.health > self._times.hang:
            log.error("the worker process has come to a stand: killed")
            self._missed = 0
            self._send(signal.SIGKILL)
        return alive

    def _send(self, number: signal.Signals) -> None:
        """Signal the process that runs now; nothing happens if none does."""
        if self._process is not None and self._process.returncode is None:
            # It may have ended without the event loop having heard of it.
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                status = await self._run()
            except Exception:
                # Whatever it is: without this task no worker would ever run again.
                log.exception("the worker process cannot be heard or started: killed if it runs")
                status = -1
                self._send(signal.SIGKILL)
                if self._process is not None:
                    await self._process.wait()
            self._owner, self._missed = "", 0
            if self._stopping.is_set():
                return
            if not self._first.is_set():
                raise self._failure or EngineError(
                    f"the worker process ended with status {status} before it worked", remedy="see the log above"
                )
            if time.monotonic() - began > _WELL_S:
                pause = _FIRST_PAUSE_S
            why = self._failure or f"status {status}"
            log.error("the worker process ended (%s): begun again in %g s", why, pause)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _run(self) -> int:
        """One process from its start to its end; gives its exit status."""
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(*self._command, "--attached", str(number)),
                    pass_fds=(number,),
                    stdin=asyncio.subprocess.DEVNULL,
                    # What libraries print is not for those who read the addresses on our standard output.
                    stdout=_STDERR,
                )
            except BaseException:
                ours.close()
                raise
        self._core.metrics.count("docferry_worker_starts_total")
        self._failure = None
        if self._stopping.is_set():
            self._send(signal.SIGTERM)
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            # What does not end in a newline is what it said when it died.
            while (line := await reader.readline()).endswith(b"\n"):
                try:
                    self._hear(json.loads(line))
                except Exception:
                    log.exception("the worker process said what is not understood: %r", line[:_SHOWN])
        except ConnectionError:
            pass  # it died with something of ours unread
        finally:
            writer.close()
        return await self._process.wait()

    def _hear(self, told: Mapping[str, Any]) -> None:
        match told["status"]:
            case "working":
                self._owner = told["owner"]
                log.info("the worker process works with engine %s", told["engine"])
                if not self._first.is_set():
                    self._first.set()
                    if self._told_working is not None:
                        self._told_working(told["engine"])
            case "recycling":
                self._owner = ""
                self._core.metrics.count("docferry_worker_starts_total")
            case "failed":
                self._failure = failure(told["error"])
            case "grown":
                self._core.log.announce()
            case "measured":
                self._core.metrics.heard(told["kind"], told["name"], told["value"], told["labels"])
            case unknown:
                log.error("the worker process said %r", unknown)
