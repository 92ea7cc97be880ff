"""A service that kills itself at one point, for test_kill.py: `python killable_server.py FOLDER FAULT`.

Prints its address. The faults stand between two durable steps, one after the other on a document's way.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from docferry.document import Page
from docferry_cloud.engine import Task
from docferry_cloud.server import Times, serve
from docferry_cloud.settings import CloudSettings
from docferry_cloud.store import Store
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.work import WorkList
from docferry_cloud.workflow import Workflows


def die(*_args):
    os.kill(os.getpid(), signal.SIGKILL)


class Echo:
    name = "echo"
    tasks = frozenset({Task.TEXT})

    def read(self, page, effort, cancelled):
        return page.reading or Page(width=10, height=10)


def dying_after(function):
    def wrapped(*args, **kwargs):
        function(*args, **kwargs)
        die()

    return wrapped


FAULTS = {
    "none": lambda: None,
    "row stored, not acknowledged": lambda: setattr(Store, "take", dying_after(Store.take)),
    "acknowledged, not enqueued": lambda: setattr(Workflows, "enqueue", die),
    "enqueued, not claimed": lambda: setattr(WorkList, "claim", die),
    "claimed, not read": lambda: setattr(WorkList, "claim", dying_after(WorkList.claim)),
    "read, not stored": lambda: setattr(WorkList, "finish", die),
    "stored, workflow still open": lambda: setattr(WorkList, "finish", dying_after(WorkList.finish)),
}


def tell(address):
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


def main():
    folder, fault = sys.argv[1:]
    FAULTS[fault]()
    times = Times(sweep=SweepTimes(sweep=0.1, lease=1.0, look_after=0.5), drain=3.0)
    settings = CloudSettings(directory=Path(folder), port=0)
    asyncio.run(serve(settings, engine_factory=Echo, ready=tell, times=times))


if __name__ == "__main__":
    main()
