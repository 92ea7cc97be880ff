"""What the service promises, measured: acknowledgements, event lag, and what is lost or doubled when processes die.

python -m benchmarks.service --store sqlite|postgres --documents N [--chaos|--fairness] [--engine-ms 200]
    [--processes 3]

A stub stands in for the engine. The pace of one device gives the latencies; a flood gives the rate. With --chaos
processes are killed and database connections cut at random while documents come in, and everything is counted after.
With --fairness one tenant floods the queue with N documents, and another one's waiting is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.postgres_server import postgres_server
from benchmarks.service_fleet import Fleet, fleet
from benchmarks.service_load import Clients, Tally, opened

_AT_ONCE = 16
_PACED = 200
_PACE_S = 0.02
_SETTLE_S = 180.0
_WAITS = 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--documents", type=int, default=1000)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--chaos", action="store_true", help="kill processes and cut connections meanwhile")
    instead.add_argument("--fairness", action="store_true", help="one tenant floods, another one waits")
    parser.add_argument("--engine-ms", type=float, default=0.0)
    parser.add_argument("--processes", type=int, default=1, help="front ends with workers; chaos has its own number")
    parser.add_argument("--seed", type=int, default=0, help="of the killing")
    parser.add_argument("--data", help="not needed: documents are made up")
    parser.add_argument("--json", type=Path, help="write the last line there too")
    arguments = parser.parse_args()
    with store_of(arguments.store) as (folder, database):
        if arguments.chaos:
            result = asyncio.run(chaos(folder, database, arguments.documents, arguments.engine_ms, arguments.seed))
        else:
            asked = fairness if arguments.fairness else measure
            result = asyncio.run(asked(folder, database, arguments.documents, arguments.engine_ms, arguments.processes))
    line = json.dumps({"store": arguments.store, **result})
    for name, value in result.items():
        print(f"{name:>20}  {value}")
    print(line)
    if arguments.json:
        arguments.json.write_text(f"{line}\n", encoding="utf-8")


async def measure(folder: Path, database: str, documents: int, engine_ms: float, processes: int) -> dict[str, Any]:
    """Latencies at the pace of one device, then the rate of a flood."""
    paced, flooded = Tally(), Tally()
    async with fleet(folder, ["all"] * processes, database=database, engine_ms=engine_ms) as running:
        async with _clients(running, paced) as clients:
            await clients.pace(min(_PACED, documents), _PACE_S)
            told = await clients.all_told(_SETTLE_S)
            lags = [await clients.lag_ms(analysis_id) for analysis_id in paced.told_at]
        async with _clients(running, flooded) as clients:
            before = running.cpu_s()
            seconds = await clients.flood(documents, _AT_ONCE)
            told = await clients.all_told(_SETTLE_S) and told
            cpu_s = running.cpu_s() - before
            counted = await _counted(clients, flooded, earlier=len(paced.acked))
    return {
        "acks_per_s": round(documents / seconds, 1),
        "ack_p50_ms": _quantile(paced.ack_ms, 50),
        "ack_p99_ms": _quantile(paced.ack_ms, 99),
        "event_lag_p50_ms": _quantile(lags, 50),
        "event_lag_p95_ms": _quantile(lags, 95),
        "event_lag_p99_ms": _quantile(lags, 99),
        "flood_ack_p50_ms": _quantile(flooded.ack_ms, 50),
        "flood_ack_p99_ms": _quantile(flooded.ack_ms, 99),
        "cpu_ms_per_document": round(cpu_s / documents * 1000, 2),
        "processes": processes,
        "engine_ms": engine_ms,
        "all_told": told,
        **counted,
    }


async def fairness(folder: Path, database: str, documents: int, engine_ms: float, processes: int) -> dict[str, Any]:
    """How long one tenant waits for a document: alone, and behind another one's flood; engines read one at a time."""
    tenants = ("flooding", "waiting")
    roles = ["all"] * processes
    async with fleet(folder, roles, database=database, engine_ms=engine_ms, workers=1, tokens=tenants) as running:
        async with _clients(running, Tally(), "waiting") as clients:
            # The first one also waits for the worker to come up.
            await clients.waits(1, _SETTLE_S)
            alone = await clients.waits(_WAITS, _SETTLE_S)
        flooded = Tally()
        async with (
            _clients(running, flooded, "flooding") as flooding,
            _clients(running, Tally(), "waiting") as clients,
        ):
            await flooding.flood(documents, _AT_ONCE)
            behind = await clients.waits(_WAITS, _SETTLE_S)
            still_waiting = len(flooded.acked) - len(flooded.told)
    return {
        "engine_ms": engine_ms,
        "processes": processes,
        "flood": documents,
        "flood_still_waiting": still_waiting,
        "alone_p50_ms": _quantile(alone, 50),
        "alone_max_ms": round(max(alone), 2),
        "behind_flood_p50_ms": _quantile(behind, 50),
        "behind_flood_max_ms": round(max(behind), 2),
    }


async def chaos(
    folder: Path,
    database: str,
    documents: int,
    engine_ms: float,
    seed: int,
    *,
    quick: bool = False,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Documents come in while processes are killed (and, on PostgreSQL, connections cut) at random.

    Args:
        quick: Whether dead processes are noticed in 2 s and not in 10.
        seconds: How long things are killed, at least; without it as long as documents come in at some 20 a second.
    """
    luck, tally = random.Random(seed), Tally()
    roles = ["front", "front", "worker", "worker"] if database else ["all", "all"]
    lasts = seconds if seconds is not None else documents / 20
    async with (
        fleet(folder, roles, database=database, engine_ms=engine_ms, quick=quick) as running,
        _clients(running, tally) as clients,
    ):
        rampage = asyncio.create_task(running.rampage(luck, lasts, pause=2.0))
        cutting = asyncio.create_task(_cut(database, luck))
        await _spread(clients, documents, lasts)
        kills = await rampage
        cutting.cancel()
        cuts = (await asyncio.gather(cutting, return_exceptions=True))[0]
        told = await clients.all_told(_SETTLE_S)
        counted = await _counted(clients, tally, earlier=0)
    return {
        "acks_per_s": round(documents / lasts, 1),
        "ack_p50_ms": _quantile(tally.ack_ms, 50),
        "ack_p99_ms": _quantile(tally.ack_ms, 99),
        "event_lag_p95_ms": None,
        "documents": documents,
        "kills": kills,
        "connections_cut": cuts if isinstance(cuts, int) else 0,
        "calls_sent_again": tally.refused,
        "out_of_order": tally.disorder,
        "failed": tally.failed,
        "all_told": told,
        **counted,
    }


async def _counted(clients: Clients, tally: Tally, *, earlier: int) -> dict[str, int]:
    """Lost: acknowledged, and not stored or never told of. Duplicates: told of twice, or two analyses of a request."""
    stored = await clients.stored()
    lost = sum(stored[request_id] == 0 or not tally.told[name] for request_id, name in tally.acked.items())
    doubled = sum(count - 1 for count in stored.values()) + sum(tally.told[name] > 1 for name in tally.acked.values())
    stray = len(stored) - earlier - len(tally.acked)
    return {"lost": lost, "duplicates": doubled + max(0, stray)}


async def _spread(clients: Clients, documents: int, seconds: float) -> None:
    """Submit evenly over a time, each in a task of its own, so that one that waits delays no other."""
    async with asyncio.TaskGroup() as group:
        for _ in range(documents):
            group.create_task(clients.submit())
            await asyncio.sleep(seconds / documents)


async def _cut(database: str, luck: random.Random) -> int:
    """Cut a random connection of the service every now and then, until cancelled; gives how many."""
    cuts = 0
    if not database:
        return 0
    import psycopg

    victim = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
    )
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        try:
            while True:
                await asyncio.sleep(luck.uniform(0.2, 0.8))
                await connection.execute(victim)
                cuts += 1
        except asyncio.CancelledError:
            return cuts


@asynccontextmanager
async def _clients(running: Fleet, tally: Tally, token: str = "") -> AsyncIterator[Clients]:
    channels = opened(running.addresses)
    clients = Clients(channels, tally, token)
    watching = asyncio.create_task(clients.watch())
    try:
        yield clients
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for channel in channels:
            await channel.close()


@contextmanager
def store_of(kind: str) -> Iterator[tuple[Path, str]]:
    """An empty store: a folder, and the URL of a PostgreSQL if it is to be one."""
    with tempfile.TemporaryDirectory(prefix="docferry-service-") as folder:
        if kind == "sqlite":
            yield Path(folder), ""
        else:
            with postgres_server() as new_database:
                yield Path(folder), new_database()


def _quantile(values: Sequence[float], percent: int) -> float | None:
    if len(values) < 2:
        return round(values[0], 2) if values else None
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)


if __name__ == "__main__":
    main()
