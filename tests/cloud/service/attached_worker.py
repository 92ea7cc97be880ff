"""A worker process with a stub for an engine: `attached_worker.py FOLDER DATABASE DOCUMENTS FAULT --attached FD`.

It begins anew after so many DOCUMENTS. The stub's answer holds the process's id and how long it has lived: a process
that began anew keeps its id. FAULT is `none`, `hang` (it stops itself at the first page, once), `die` (killed there,
once) or `missing` (its engine cannot be loaded).
"""

import asyncio
import os
import signal
import sys
import uuid
from pathlib import Path

from docferry.document import Line, Page, Region, RegionType
from docferry.errors import ModelError
from docferry_cloud.core import Times
from docferry_cloud.engine import Task
from docferry_cloud.parent_link import ParentLink
from docferry_cloud.settings import CloudSettings
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.worker import begin_anew, work

LIFE = uuid.uuid4().hex
CORNERS = ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2))


class Signing:
    name = "signing"
    tasks = frozenset({Task.TEXT})

    def __init__(self, folder, fault):
        self.mark, self.fault = folder / "fault-was", fault

    def read(self, page, effort, cancelled):
        if self.fault != "none" and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGSTOP if self.fault == "hang" else signal.SIGKILL)
        line = Line("r1.l1", f"{os.getpid()} {LIFE}", CORNERS, 1.0)
        return Page(100, 200, (Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(line,)),))


def main():
    folder, database, documents, fault, _, number = sys.argv[1:]
    settings = CloudSettings(
        directory=Path(folder), database=database, workers=1, remember=False, recycle_documents=int(documents)
    )

    def engine():
        if fault == "missing":
            raise ModelError("the model is missing", remedy="pull it")
        return Signing(Path(folder), fault)

    times = Times(sweep=SweepTimes(sweep=0.1, lease=1.0, look_after=0.5), drain=3.0, health=0.1)
    if asyncio.run(work(settings, engine_factory=engine, times=times, parent=ParentLink(int(number)))):
        begin_anew()


if __name__ == "__main__":
    main()
