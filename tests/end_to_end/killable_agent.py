"""An agent that kills itself at one point of answering a want: `python killable_agent.py FOLDER PORT FAULT`.

Its reader is a double (one line, no networks); everything else is the agent's own: inbox, outbox, uplink, wants.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from docferry import async_client as client_module
from docferry.async_client import AsyncClient
from docferry.channel import LinkTimes
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry_edge.agent import Agent
from docferry_edge.assess import assess
from docferry_edge.capture import Inbox
from docferry_edge.entry import Entry
from docferry_edge.examine import Examined, default_calibration
from docferry_edge.originals import Originals
from docferry_edge.outbox import Outbox
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.prepare import Frame, prepare
from docferry_edge.route import Policy
from docferry_edge.uplink import Pace
from docferry_edge.wants import Wants
from docferry_edge.work import DirectDesk

CHUNK = 4096
LINK = LinkTimes(ping=0.4, pong=0.4, connect=1.0, first_pause=0.05, longest_pause=0.2)
PACE = Pace(first=0.05, longest=0.5, idle=0.1)


def examiner(frame: Frame, **_: object) -> Examined:
    page = prepare(frame)
    polygon = ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2))
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(Line("r1.l1", "hello", polygon, 1.0),))
    reading = Reading(Document((Page(page.width, page.height, (region,)),)), "double@00")
    return Examined(page, assess(reading, default_calibration()), {"hint": 1.0, "read": 2.0}, frame=frame)


@asynccontextmanager
async def agent(folder: Path, port: int, **options: object) -> AsyncIterator[tuple[Agent, Outbox]]:
    """An agent on a folder, not yet running."""
    (folder / "inbox").mkdir(exist_ok=True)
    outbox = Outbox(folder / "state")
    try:
        async with AsyncClient.connect(f"127.0.0.1:{port}", times=LINK) as client:
            yield (
                Agent(
                    outbox=outbox,
                    inbox=Inbox(folder / "inbox", 0.0),
                    desk=DirectDesk(lambda _: examiner, Policies(Policy(audit_share=0.0)), Pictures()),
                    client=client,
                    report=_told,
                    pace=PACE,
                    **options,  # type: ignore[arg-type]
                ),
                outbox,
            )
    finally:
        outbox.close()


def _told(_entry: Entry) -> None:
    pass


def die(*_args: object, **_named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_chunks(number: int) -> None:
    real, sent = AsyncClient._call, [0]

    async def call(self, method, *args, **kwargs):
        answer = await real(self, method, *args, **kwargs)
        sent[0] += method == "Supply"
        if sent[0] == number:
            die()
        return answer

    AsyncClient._call = call  # type: ignore[method-assign]


def die_once_stored() -> None:
    real = Originals.store_supply

    def store(*args):
        real(*args)
        die()

    Originals.store_supply = store  # type: ignore[method-assign]


FAULTS = {
    "none": lambda: None,
    "heard, not cut": lambda: setattr(Wants, "_answer", die),
    "cut, not stored": lambda: setattr(Originals, "store_supply", die),
    "stored, not sent": die_once_stored,
    "three chunks sent": lambda: die_after_chunks(3),
    "all sent, not noted": lambda: setattr(Originals, "drop_supply", die),
}


async def main() -> None:
    folder, port, fault = sys.argv[1:]
    client_module.MAX_CHUNK_BYTES = CHUNK
    FAULTS[fault]()
    async with agent(Path(folder), int(port)) as (running, _):
        await running.run()


if __name__ == "__main__":
    asyncio.run(main())
