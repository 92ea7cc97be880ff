"""Brings workflows into line with the rows: what was lost between row and queue, and what a dead process held.

The lease: a process renews its row in `workers` every sweep. When the lease has run out, any other process sets its
RUNNING analyses back to PENDING; a PENDING analysis is looked after by one process at a time.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from docferry_cloud.analysis_rows import MICROSECONDS
from docferry_cloud.blob_list import BlobList
from docferry_cloud.database import Clock, wall_clock
from docferry_cloud.deepen_list import MARK, DeepenList
from docferry_cloud.event_log import EventLog
from docferry_cloud.retention import Retention
from docferry_cloud.want_list import WantList
from docferry_cloud.work import WorkList
from docferry_cloud.workflow import Stage, Workflows

log = logging.getLogger(__name__)

_KEEP_WORKFLOWS = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class SweepTimes:
    """Seconds. A dead process's work goes on within `lease` + `sweep` (+ `look_after` if its row was still PENDING)."""

    sweep: float = 2.0
    lease: float = 10.0
    look_after: float = 10.0
    purge: float = 60.0


class Sweeper:
    """One process's sweeper. Every method blocks."""

    def __init__(
        self,
        *,
        retention: Retention,
        events: EventLog,
        work: WorkList,
        deepenings: DeepenList,
        wants: WantList,
        workflows: Workflows,
        blobs: BlobList,
        retention_days: int,
        times: SweepTimes | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self._ends = retention
        self._events = events
        self._work = work
        self._deepenings = deepenings
        # Whether this process can do deep work; known once its engine is loaded.
        self.deepens = False
        self._wants = wants
        self._workflows = workflows
        self._blobs = blobs
        self._retention = retention_days * 86400 * MICROSECONDS
        self.times = times or SweepTimes()
        self._clock = clock

    def sweep(self, *, first: bool = False) -> None:
        """Renew this process's lease, take over from dead ones, and see that every PENDING row has its workflow.

        Analyses whose device has not supplied in time become PENDING first.
        """
        self._work.announce_alive(self.times.lease)
        self._wants.lapse()
        while self._ends.lapse():
            pass
        taken, lost = self._work.take_over(), self._work.recover()
        if taken or lost:
            log.warning("set back %d analyses of processes that are gone, %d of our own", taken, lost)
        ids = list(self._work.lease_waiting(self.times.look_after, leased_too=first))
        if self.deepens:
            ids += [f"{MARK}{name}" for name in self._deepenings.lease(self.times.look_after)]
        if not ids:
            return
        stages = self._workflows.stages(ids)
        living = self._work.living()
        for analysis_id in ids:
            stage, executor = stages.get(analysis_id, (None, ""))
            if stage is None:
                self._workflows.enqueue(analysis_id)
            elif stage is Stage.OVER:
                self._workflows.renew(analysis_id)
            elif stage is Stage.RUNNING and executor not in living:
                self._workflows.resume(analysis_id)

    def move_blobs(self) -> None:
        """Move large parts out of the database, and delete objects that nobody holds."""
        while self._blobs.move():
            pass
        while self._blobs.clear():
            pass

    def purge(self) -> None:
        """Fail what waits for its parts in vain; delete results and events past the retention, and workflows over."""
        while self._ends.give_up():
            pass
        while self._ends.expire():
            pass
        self._events.purge(self._clock() - self._retention)
        while self._workflows.trim(datetime.now(UTC) - _KEEP_WORKFLOWS):
            pass
