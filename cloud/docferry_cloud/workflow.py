"""The durable queue: the only module that touches DBOS.

What DBOS is held to here, each for a reason seen in practice:

- its process-wide singleton lives from `start` to `stop`, its registry too, so that a second start finds nothing old;
- `executor_id` is unique to the process: two processes under one id run each other's live workflows twice;
- `application_version` is fixed: with the default, a hash of the source, an upgrade strands what was queued;
- on SQLite it has a file of its own, and WAL is switched on before DBOS opens it: with a rollback journal readers and
  the queue block one another; on PostgreSQL it has a schema of its own in our database;
- inputs and outputs are analysis ids; the truth is the analysis's row, so a workflow may be dropped and made anew.
"""

from __future__ import annotations

import enum
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID, WorkflowHandle, _dbos

from docferry.errors import Conflict
from docferry_cloud.dialects import postgres_url

log = logging.getLogger(__name__)

_QUEUE = "interpret"
_POLL_S = 0.05
_APPLICATION_VERSION = "docferry-1"


class Stage(enum.Enum):
    """Where a workflow stands, as far as the sweeper must know."""

    QUEUED = enum.auto()
    RUNNING = enum.auto()
    OVER = enum.auto()


_STAGES: Mapping[str, Stage] = {"ENQUEUED": Stage.QUEUED, "DELAYED": Stage.QUEUED, "PENDING": Stage.RUNNING}


class Workflows:
    """One workflow an analysis, under the analysis's id.

    Args:
        place: DBOS's own SQLite file, beside the store; or the PostgreSQL URL of the store.
        executor_id: Unique to this process.
        concurrency: Workflows that run at once in this process; 0 only enqueues.
        body: Does the work of one analysis; its errors are its own affair.
        turn: Gives an analysis's place in the queue, from 1: the lower the sooner. Without it all come as they come.
    """

    def __init__(
        self,
        place: Path | str,
        *,
        executor_id: str,
        concurrency: int,
        body: Callable[[str], None],
        turn: Callable[[str], int] = lambda _: 1,
    ) -> None:
        self._place = place
        self._turn = turn
        self._executor_id = executor_id
        self._concurrency = concurrency
        self._body = body
        self._workflow: Callable[[str], str] | None = None
        self._idle = threading.Condition()
        self._running = 0

    def start(self) -> None:
        """Open DBOS's database and begin to take workflows from the queue; blocks for some 100 ms.

        Raises:
            Conflict: DBOS runs in this process already.
        """
        # `DBOS(...)` would hand back the running instance without a word, on the other database.
        if _dbos._dbos_global_instance is not None:
            raise Conflict("a worker runs in this process already", remedy="stop it first, or use another process")
        if isinstance(self._place, Path):
            with closing(sqlite3.connect(self._place)) as connection:
                connection.execute("PRAGMA journal_mode=WAL").close()
        # DBOS adds a console handler of its own to a logger that has none, and cuts it off from ours.
        logger = logging.getLogger("dbos")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        config: DBOSConfig = {
            "name": "docferry",
            "system_database_url": _url(self._place),
            "executor_id": self._executor_id,
            "application_version": _APPLICATION_VERSION,
            "log_level": "WARNING",
            # One for each body, the store's threads that enqueue, and DBOS's own loops: a server has few to give.
            "sys_db_pool_size": self._concurrency + 6,
            # Nothing of ours waits on DBOS: the event log tells what is done.
            "use_listen_notify": False,
        }
        DBOS(config=config)
        if not self._concurrency:
            DBOS.listen_queues([])

        def interpret(analysis_id: str) -> str:
            return self._run(analysis_id)

        # Here and not at import: the registry goes with `stop`. Attempts are counted in our own row.
        workflow = DBOS.workflow(name="docferry.interpret", max_recovery_attempts=None)(interpret)
        DBOS.launch()
        if self._concurrency:
            DBOS.register_queue(
                _QUEUE, worker_concurrency=self._concurrency, polling_interval_sec=_POLL_S, on_conflict="always_update"
            )
        self._workflow = workflow

    def enqueue(self, analysis_id: str, place: int = 0) -> None:
        """Put an analysis into the queue, at its place there if that is known; one that is there already stays."""
        if self._workflow is None:
            return
        with SetWorkflowID(analysis_id), SetEnqueueOptions(priority=place or self._turn(analysis_id)):
            handle: WorkflowHandle[str] = DBOS.enqueue_workflow(_QUEUE, self._workflow, analysis_id)
        log.debug("enqueued %s", handle.workflow_id)

    def again(self, analysis_id: str) -> bool:
        """Give an analysis to the queue once more after an earlier workflow of it; False while that one still runs."""
        if self._workflow is None:
            return True
        stage, _ = self.stages([analysis_id]).get(analysis_id, (None, ""))
        if stage is None:
            self.enqueue(analysis_id)
        elif stage is Stage.OVER:
            self.renew(analysis_id)
        return stage is not Stage.RUNNING

    def stages(self, analysis_ids: Sequence[str]) -> dict[str, tuple[Stage, str]]:
        """Stage and executor id of the workflows that exist."""
        found = DBOS.list_workflows(workflow_ids=list(analysis_ids), load_input=False, load_output=False)
        return {
            status.workflow_id: (_STAGES.get(status.status, Stage.OVER), status.executor_id or "") for status in found
        }

    def resume(self, analysis_id: str) -> None:
        """Put a workflow that a dead process was running back into the queue."""
        DBOS.resume_workflow(analysis_id, queue_name=_QUEUE)

    def renew(self, analysis_id: str) -> None:
        """Replace a workflow that is over by a new one, because its analysis is not."""
        DBOS.delete_workflows([analysis_id])
        self.enqueue(analysis_id)

    def trim(self, before: datetime, limit: int = 500) -> int:
        """Drop workflows that were over before a time, at most `limit`; gives how many. Nothing asks for them again."""
        found = DBOS.list_workflows(
            completed_before=before.isoformat(), load_input=False, load_output=False, limit=limit
        )
        if found:
            DBOS.delete_workflows([status.workflow_id for status in found])
        return len(found)

    def stop(self, patience_s: float) -> None:
        """Take nothing new, wait up to `patience_s` for running bodies, and take DBOS down."""
        launched, self._workflow = self._workflow is not None, None
        deadline = time.monotonic() + patience_s
        with self._idle:
            self._idle.wait_for(lambda: self._running == 0, timeout=patience_s)
        # One that never came up has its own error to tell, and asking it for anything would hide that.
        if launched:
            self._wait_for_outcomes(deadline)
        DBOS.destroy(destroy_registry=True)

    def _run(self, analysis_id: str) -> str:
        with self._idle:
            self._running += 1
        try:
            self._body(analysis_id)
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()
        return analysis_id

    def _wait_for_outcomes(self, deadline: float) -> None:
        """DBOS stores a body's outcome after the body has returned; without its database that would fail loudly."""
        while time.monotonic() < deadline:
            pending = DBOS.list_workflows(
                status="PENDING", executor_id=self._executor_id, load_input=False, load_output=False, limit=1
            )
            if not pending:
                return
            time.sleep(0.02)


def _url(place: Path | str) -> str:
    if isinstance(place, Path):
        return f"sqlite:///{place}"
    return postgres_url(place).render_as_string(hide_password=False)
