"""How many watchers one front end holds, and whether its memory stays flat while they are told of thousands of events.

python -m benchmarks.service_watchers --watchers 500 --events 10000 [--store sqlite|postgres] [--tenants 10]

Every event goes to all watchers of its tenant, over gRPC. Another process's hand is played by this one: it writes the
events into the database, some at a time, and waits until the slowest watcher has them, so that none queues here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio

from benchmarks.service import store_of
from benchmarks.service_fleet import fleet
from docferry.channel import call_metadata, open_channel
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import analysis_service_pb2_grpc as grpc_api
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.schema import EventType, State

_CHANNELS = 10
_AT_A_TIME = 50
_MARKS = 5


@dataclass(slots=True)
class Heard:
    """What all watchers of one tenant were told."""

    told: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    disorder: int = 0
    bell: asyncio.Event = field(default_factory=asyncio.Event)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--tenants", type=int, default=10)
    parser.add_argument("--data", help="not needed: events are made up")
    parser.add_argument("--json", type=Path, help="write the last line there too")
    arguments = parser.parse_args()
    with store_of(arguments.store) as (folder, database):
        result = asyncio.run(measure(folder, database, arguments.watchers, arguments.events, arguments.tenants))
    line = json.dumps({"store": arguments.store, **result})
    for name, value in result.items():
        print(f"{name:>20}  {value}")
    print(line)
    if arguments.json:
        arguments.json.write_text(f"{line}\n", encoding="utf-8")


async def measure(folder: Path, database: str, watchers: int, events: int, tenants: int) -> dict[str, Any]:
    """Connect all watchers, then write events and see what arrives, when, and what the front end's memory does."""
    names = [f"tenant-{number}" for number in range(tenants)]
    async with fleet(folder, ["front"], database=database, tokens=names) as running:
        store = Database(database or folder / "store.sqlite")
        log = EventLog(store)
        heard = {name: Heard() for name in names}
        channels = [open_channel(running.addresses[0]) for _ in range(_CHANNELS)]
        connected, lags = asyncio.Semaphore(0), list[float]()
        watching = [
            asyncio.create_task(_watch(channels[n % _CHANNELS], names[n % tenants], heard, connected, lags))
            for n in range(watchers)
        ]
        for _ in range(watchers):
            await connected.acquire()
        pid = running.pid(0)
        marks, luck = [_resident_mb(pid)], random.Random(0)
        began, cpu_s = time.perf_counter(), running.cpu_s()
        for start in range(0, events, _AT_A_TIME):
            concerned = [luck.choice(names) for _ in range(min(_AT_A_TIME, events - start))]
            last = await asyncio.to_thread(_append, store, log, concerned)
            await _all_have(heard, last)
            if (start + _AT_A_TIME) % max(_AT_A_TIME, events // _MARKS) == 0:
                marks.append(_resident_mb(pid))
        seconds, cpu_s = time.perf_counter() - began, running.cpu_s() - cpu_s
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        for channel in channels:
            await channel.close()
        store.close()
    told = sum(sum(each.told) for each in heard.values())
    return {
        "watchers": watchers,
        "events": events,
        "tenants": tenants,
        "messages": told,
        "messages_per_s": round(told / seconds),
        "lag_p50_ms": round(statistics.median(lags), 1),
        "lag_p95_ms": round(statistics.quantiles(lags, n=20)[-1], 1),
        "cpu_us_per_message": round(cpu_s / told * 1e6),
        "resident_mb": marks,
        "out_of_order": sum(each.disorder for each in heard.values()),
    }


async def _watch(
    channel: grpc.aio.Channel, tenant: str, heard: dict[str, Heard], connected: asyncio.Semaphore, lags: list[float]
) -> None:
    mine = heard[tenant]
    place = len(mine.told)
    mine.told.append(0)
    mine.last.append(0)
    call = grpc_api.AnalysisServiceStub(channel).Watch(pb.AnalysisServiceWatchRequest(), metadata=call_metadata(tenant))
    async for answer in call:
        if not answer.HasField("event"):
            if not mine.told[place]:
                connected.release()
            continue
        event = answer.event
        mine.told[place] += 1
        mine.disorder += event.sequence <= mine.last[place]
        mine.last[place] = event.sequence
        mine.bell.set()
        # One in a hundred is enough for the quantiles.
        if event.sequence % 100 == 0:
            lags.append(time.time() * 1000 - event.create_time.ToMilliseconds())


async def _all_have(heard: dict[str, Heard], last: dict[str, int]) -> None:
    for tenant, sequence in last.items():
        mine = heard[tenant]
        while min(mine.last, default=sequence) < sequence:
            mine.bell.clear()
            await mine.bell.wait()


def _append(store: Database, log: EventLog, concerned: list[str]) -> dict[str, int]:
    """Write an event for each of these tenants; gives the newest sequence of each."""
    last: dict[str, int] = {}
    with store.write() as connection:
        for tenant in concerned:
            name = str(uuid.uuid4())
            log.append(connection, Happening(EventType.SUCCEEDED, tenant, name, name, State.SUCCEEDED, 1))
    newest = log.latest()
    for back, tenant in enumerate(reversed(concerned)):
        last.setdefault(tenant, newest - back)
    return last


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * 4096 / 2**20, 1)


if __name__ == "__main__":
    main()
