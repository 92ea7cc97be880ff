"""A service that kills itself at one point: `python killable_server.py FOLDER FAULT PATIENCE PORT [DATABASE [ROLE]]`.

ROLE is `all`, `front` (it only takes in) or `worker` (it only works). Prints its address, or `working`.

The faults stand between two durable steps, one after the other on a document's way. Its engine asks
for a crop of every page of which a risk is stated, and waits PATIENCE seconds for it.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from docferry.channel import LinkTimes
from docferry.document import Page
from docferry_cloud import service
from docferry_cloud.core import Times
from docferry_cloud.engine import Task, Want
from docferry_cloud.server import serve
from docferry_cloud.settings import CloudSettings
from docferry_cloud.store import Store
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.want_list import WantList
from docferry_cloud.watch import WatchTimes
from docferry_cloud.work import WorkList
from docferry_cloud.worker import work
from docferry_cloud.workflow import Workflows


def die(*_args, **_named):
    os.kill(os.getpid(), signal.SIGKILL)


class Echo:
    name = "echo"
    tasks = frozenset({Task.TEXT})

    def read(self, page, effort, cancelled):
        return page.reading or Page(width=10, height=10)

    def wants(self, page, read):
        return (Want((0.1, 0.1, 0.5, 0.2), 1.0, "a line stays in doubt"),) if page.target_risk else ()


def dying_after(function, when=lambda _result: True):
    def wrapped(*args, **kwargs):
        result = function(*args, **kwargs)
        if when(result):
            die()
        return result

    return wrapped


LINK = LinkTimes(ping=0.4, pong=0.4, connect=1.0, first_pause=0.05, longest_pause=0.2)
FAULTS = {
    "none": lambda: None,
    "row stored, not acknowledged": lambda: setattr(Store, "take_many", dying_after(Store.take_many)),
    "acknowledged, not enqueued": lambda: setattr(Workflows, "enqueue", die),
    "enqueued, not claimed": lambda: setattr(WorkList, "claim", die),
    "claimed, not read": lambda: setattr(WorkList, "claim", dying_after(WorkList.claim)),
    "read, not stored": lambda: setattr(WorkList, "finish", die),
    "stored, workflow still open": lambda: setattr(WorkList, "finish", dying_after(WorkList.finish)),
    "read, not asked": lambda: setattr(WorkList, "ask", die),
    "asked, workflow still open": lambda: setattr(WorkList, "ask", dying_after(WorkList.ask)),
    "begun, not acknowledged": lambda: setattr(
        service, "supply", dying_after(service.supply, lambda progress: not progress.completed)
    ),
    "supplied, not acknowledged": lambda: setattr(
        service, "supply", dying_after(service.supply, lambda progress: progress.completed)
    ),
    "supplied, not enqueued again": lambda: setattr(Workflows, "again", die),
    "refused, not acknowledged": lambda: setattr(WantList, "refuse", dying_after(WantList.refuse)),
    "given up, not enqueued again": lambda: setattr(WantList, "lapse", dying_after(WantList.lapse, bool)),
}


def tell(address):
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


def main():
    folder, fault, patience, port, *more = sys.argv[1:]
    database = more[0] if more else ""
    role = more[1] if more[1:] else "all"
    FAULTS[fault]()
    sweep = SweepTimes(sweep=0.1, lease=1.0, look_after=0.5)
    times = Times(sweep=sweep, watch=WatchTimes(heartbeat=0.5), link=LINK, drain=3.0, health=0.2)
    settings = CloudSettings(
        directory=Path(folder),
        port=int(port),
        patience_s=float(patience),
        database=database,
        remember=False,
        workers=0 if role == "front" else 2,
    )
    if role == "worker":
        asyncio.run(work(settings, engine_factory=Echo, ready=lambda: tell("working"), times=times))
    else:
        asyncio.run(serve(settings, engine_factory=Echo, ready=tell, times=times))


if __name__ == "__main__":
    main()
