"""The half of the service that works: the engine, the queue, and the sweeper that keeps both in line with the rows."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from docferry.errors import ConfigurationError, DocferryError
from docferry.metrics import Metrics, MetricsPage, serve_metrics
from docferry_cloud import places
from docferry_cloud.core import Core, Times, make_core
from docferry_cloud.deep_work import DeepWork
from docferry_cloud.deepen_list import MARK
from docferry_cloud.engine import Engine, TwoStepEngine
from docferry_cloud.interpreter import Interpreter
from docferry_cloud.loops import end, keep_going
from docferry_cloud.parent_link import ParentLink
from docferry_cloud.settings import CloudSettings
from docferry_cloud.sweeper import Sweeper
from docferry_cloud.workflow import Workflows

log = logging.getLogger(__name__)

_POLITE = 5
"""Niceness of a worker beside its front end on one machine."""


class Worker:
    """What works on documents in one process. DBOS allows one at a time in a process.

    With `settings.workers` 0 it only gives documents to the queue, for other processes to work on: no engine is loaded.
    """

    def __init__(
        self, core: Core, settings: CloudSettings, *, engine_factory: Callable[[], Engine] | None, times: Times
    ) -> None:
        self._core = core
        self._settings = settings
        self._engine_factory = engine_factory
        self._times = times
        self._stopping = threading.Event()
        self._engine: Engine | None = None
        self._started = False
        self._working = False
        self.workflows = Workflows(
            settings.database or settings.directory / "workflows.sqlite",
            executor_id=core.owner,
            concurrency=settings.workers,
            body=self._interpret,
            turn=self._turn,
        )
        self._sweeper = Sweeper(
            retention=core.retention,
            events=core.log,
            work=core.work,
            deepenings=core.deepenings,
            wants=core.wants,
            workflows=self.workflows,
            blobs=core.blob_list,
            retention_days=settings.retention_days,
            times=times.sweep,
        )
        self._loops: list[asyncio.Task[None]] = []
        self._numbers = itertools.count(1)
        self.documents = 0

    @property
    def engine(self) -> str:
        """The engine's name once it is loaded."""
        return "" if self._engine is None else self._engine.name

    async def come_up(self) -> None:
        """Load the engine and begin to work.

        Raises:
            DocferryError: Whatever `engine_factory` raised.
        """
        if self._settings.workers and self._engine_factory is not None:
            engine = await asyncio.to_thread(self._engine_factory)
            if self._stopping.is_set():
                return
            self._engine = engine
            self._sweeper.deepens = isinstance(engine, TwoStepEngine)
            # Before anything is taken from the queue: what runs without a lease is another worker's to set back.
            await self._core.database.run(self._core.work.announce_alive, self._times.sweep.lease)
        self._started = True
        await asyncio.to_thread(self.workflows.start)
        if self._engine is None:
            self._working = True
            return
        await self._core.database.run(lambda: self._sweeper.sweep(first=True))
        # The lease is held since before: only now is there anybody who works.
        self._working = True
        rounds = (("sweeper", self._sweep), ("blobs", self._move), ("purge", self._purge))
        self._loops = [keep_going(name, body) for name, body in rounds]
        log.info("engine %s is loaded", self._engine.name)

    def halt(self) -> None:
        """Take up nothing more; what runs is given back as soon as its engine looks up."""
        self._stopping.set()

    async def stop(self) -> None:
        """Give back what runs, take DBOS down, and tell the others that this process is gone. `come_up` has ended."""
        self.halt()
        await end(self._loops)
        if self._started:
            await asyncio.to_thread(self.workflows.stop, self._times.drain)
        if self._engine is not None:
            await self._core.database.run(self._core.work.announce_gone)

    async def healthy(self) -> bool:
        """Whether work gets done: the database answers, the engine is loaded here and this process's lease holds.

        Without an engine of its own some other process must be alive.
        """
        living = await self._core.database.run(self._core.work.living)
        return self._working and (self._core.owner in living if self._engine is not None else bool(living))

    def _turn(self, workflow_id: str) -> int:
        """Fast answers come before deep ones: nobody has the first yet."""
        return places.LAST if workflow_id.startswith(MARK) else self._core.work.place(workflow_id)

    def _interpret(self, workflow_id: str) -> None:
        if self._engine is None or self._stopping.is_set():
            return
        core, settings = self._core, self._settings
        if not workflow_id.startswith(MARK):
            Interpreter(
                core.store,
                core.work,
                self._engine,
                self._stopping,
                settings.patience_s,
                remember=settings.remember,
                metrics=core.metrics,
                tell=core.tell,
                progress_s=self._times.progress,
                deep_retry_s=self._times.deep_retry,
            ).run(workflow_id)
            self.documents = next(self._numbers)
        elif isinstance(self._engine, TwoStepEngine):
            deep = DeepWork(core.store, core.deepenings, self._engine.deep, self._stopping, core.work.turns)
            deep.run(workflow_id.removeprefix(MARK))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._times.sweep.sweep)
            await self._core.database.run(self._sweeper.sweep)

    async def _move(self) -> None:
        while True:
            # Not on the store's threads: an object store may keep one waiting for long.
            await asyncio.to_thread(self._sweeper.move_blobs)
            await asyncio.sleep(self._times.sweep.sweep)

    async def _purge(self) -> None:
        while True:
            await self._core.database.run(self._sweeper.purge)
            await asyncio.sleep(self._times.sweep.purge)


def _give_way() -> None:
    """Once: a worker that begins anew stays the same process, and would give way more and more."""
    if os.getpriority(os.PRIO_PROCESS, 0) < _POLITE:
        os.setpriority(os.PRIO_PROCESS, 0, _POLITE)


async def work(
    settings: CloudSettings,
    *,
    engine_factory: Callable[[], Engine],
    ready: Callable[[], None] | None = None,
    times: Times | None = None,
    parent: ParentLink | None = None,
) -> bool:
    """Work on what the front ends of the same database take in, until SIGTERM or SIGINT, or until it is outgrown.

    Args:
        ready: Called once work is taken up.
        parent: To the front end that started this process; with it gone the work ends too. Its page shows the metrics.

    Returns:
        Whether the process is older or has grown more than the settings allow: it has given back what it had not
        finished, and is to be begun anew.

    Raises:
        ConfigurationError: The database or the object store cannot be used.
        DocferryError: Whatever `engine_factory` raised.
    """
    times = times or Times()
    core = make_core(settings)
    worker = Worker(core, settings, engine_factory=engine_factory, times=times)
    parent = parent or ParentLink()
    page = None if parent.attached else _metrics_page(core, settings)
    if parent.attached:
        # Who waits for an acknowledgement goes before who waits for an answer that takes seconds anyway.
        _give_way()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks: list[asyncio.Task[None]] = []
    try:
        await _attach(parent, core)
        tasks.append(asyncio.create_task(_orphaned(parent, stop)))
        await core.database.run(core.database.create)
        await core.database.run(core.log.open)
        await _come_up(worker, stop)
        if not stop.is_set():
            if ready is not None:
                ready()
            parent.working(core.owner, worker.engine)
        tasks.append(keep_going("health", partial(_watch_health, worker, core.metrics, times.health)))
        outgrown = asyncio.create_task(_outgrown(worker, settings, times.health))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((stopped, outgrown), return_when=asyncio.FIRST_COMPLETED)
        if outgrown.done():
            outgrown.result()
        outgrown.cancel()
        stopped.cancel()
        if not stop.is_set():
            parent.recycling()
    except DocferryError as error:
        parent.failed(error)
        raise
    finally:
        await end(tasks)
        await worker.stop()
        await asyncio.to_thread(core.blob_threads.close)
        if page is not None:
            await asyncio.to_thread(page.close)
        if core.traces is not None:
            await asyncio.to_thread(core.traces.close)
        await asyncio.to_thread(core.database.close)
        await parent.close()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    # Only now: a signal may have come while the work was given back.
    return not stop.is_set()


def begin_anew() -> NoReturn:
    """Put a new process in this one's place: the same to whoever watches it, and none of its memory."""
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the command that started us, word for word


async def _attach(parent: ParentLink, core: Core) -> None:
    await parent.open()
    if not parent.attached:
        return
    core.metrics.relay(parent.measured)
    core.log.listen(parent.grown)


async def _orphaned(parent: ParentLink, stop: asyncio.Event) -> None:
    await parent.gone()
    log.warning("the front end that started this worker is gone")
    stop.set()


async def _come_up(worker: Worker, stop: asyncio.Event) -> None:
    up = asyncio.create_task(worker.come_up())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((up, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if stop.is_set():
        worker.halt()
    # The engine's load cannot be interrupted, and DBOS must not come up after it was taken down.
    await up


def _metrics_page(core: Core, settings: CloudSettings) -> MetricsPage | None:
    """The metrics' page. A front end of this machine may have its port by the same file: work goes on without."""
    if not settings.metrics_port:
        return None
    try:
        return serve_metrics(core.metrics, settings.metrics_port)
    except ConfigurationError as error:
        log.error("no metrics are served: %s", error)  # noqa: TRY400 - it names its reason
        return None


async def _watch_health(worker: Worker, metrics: Metrics, pause_s: float) -> None:
    while True:
        try:
            healthy = await worker.healthy()
        except DocferryError as error:
            log.warning("not healthy: %s", error)
            healthy = False
        metrics.set("docferry_healthy", healthy)
        await asyncio.sleep(pause_s)


async def _outgrown(worker: Worker, settings: CloudSettings, pause_s: float) -> None:
    """Wait until this process is older, has grown or has read more than allowed; for ever if nothing bounds it.

    It is with its engine loaded, whose weights are not what it grew by: a large model must not begin anew for ever.
    """
    began, loaded_mb = time.monotonic(), own_memory_mb()
    while True:
        await asyncio.sleep(pause_s)
        age_s, grown_mb = time.monotonic() - began, own_memory_mb() - loaded_mb
        worn = 0 < settings.recycle_documents <= worker.documents
        if worn or 0 < settings.recycle_s < age_s or 0 < settings.recycle_mb < grown_mb:
            read, hours = worker.documents, age_s / 3600
            log.warning("to be begun anew after %.1f h and %d documents, grown by %d MB", hours, read, grown_mb)
            return


def own_memory_mb() -> int:
    """Memory of this process that is in RAM now and that no file backs: mapped weights can be had from their file."""
    resident, of_files = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split()[1:3])
    return (resident - of_files) * os.sysconf("SC_PAGE_SIZE") >> 20
