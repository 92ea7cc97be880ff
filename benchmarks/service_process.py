"""One process of the service with a stub for an engine: `python -m benchmarks.service_process JSON`.

The JSON object: folder, database, port, role (`all`, `front`, `worker`), engine_ms, workers, quick, tokens (tenants
whose token is their name). Prints its address, or `working`, once it takes calls or work up. `all` has a worker process
of its own, as `docferry cloud serve` does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from docferry.document import Line, Page, Region, RegionType
from docferry_cloud.core import Times
from docferry_cloud.engine import Cancelled, Effort, PageInput, Task, check
from docferry_cloud.parent_link import ParentLink
from docferry_cloud.server import serve
from docferry_cloud.settings import CloudSettings
from docferry_cloud.settings_rows import Token
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.worker import work

_CORNERS = ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2))
_SLICE_S = 0.02


class StampEngine:
    """Takes as long as it is told, then "reads" the time at which it was done, in nanoseconds since 1970."""

    name = "stamp"
    tasks = frozenset({Task.TEXT})

    def __init__(self, engine_ms: float) -> None:
        self._seconds = engine_ms / 1000

    def read(self, page: PageInput, effort: Effort, cancelled: Cancelled) -> Page:  # noqa: ARG002 - the contract's
        """A page with one line."""
        ends = time.monotonic() + self._seconds
        while (left := ends - time.monotonic()) > 0:
            check(cancelled)
            time.sleep(min(left, _SLICE_S))
        line = Line("r1.l1", str(time.time_ns()), _CORNERS, 1.0)
        return Page(100, 200, (Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(line,)),))


def main() -> None:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    told: dict[str, Any] = json.loads(sys.argv[1])
    role = told["role"]
    settings = CloudSettings(
        directory=Path(told["folder"]),
        database=told["database"],
        port=told["port"],
        queue_limit=100_000,
        tenant_limit=100_000,
        workers=0 if role == "front" else told["workers"],
        patience_s=0.0,
        remember=False,
        tokens=tuple(Token(hashlib.sha256(name.encode()).digest(), name, "kiosk") for name in told["tokens"]),
        allow_private=True,
    )
    # The service's own rhythm, unless a test has less time than a sweeper.
    times = Times(sweep=SweepTimes(sweep=0.2, lease=2.0, look_after=1.0), health=0.2) if told["quick"] else Times()
    if role == "worker":
        parent = ParentLink(int(sys.argv[3])) if sys.argv[2:] else None
        engine = StampEngine(told["engine_ms"])
        asyncio.run(
            work(settings, engine_factory=lambda: engine, ready=lambda: _say("working"), times=times, parent=parent)
        )
    else:
        own = json.dumps(told | {"role": "worker"})
        command = (sys.executable, "-m", "benchmarks.service_process", own)
        asyncio.run(serve(settings, worker_command=command, ready=_say, times=times))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
