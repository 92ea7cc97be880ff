"""How long the operator's pages take over many analyses: inbox, filters, search, deep pages and the review queue.

python -m benchmarks.console [--store sqlite|postgres|both] [--analyses 10000] [--repeat 40]

The analyses are stored by the service's own store with made-up readings of receipts; the pages are asked for over HTTP
from a running service, one after the other, as a browser does. Milliseconds until the whole page is there.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from benchmarks.postgres_server import postgres_server
from docferry.v1 import analysis_pb2, document_pb2, envelope_pb2
from docferry_cloud.blobs import memory_blobs
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog
from docferry_cloud.rows import Caller, Limits, NewVersion, Submission
from docferry_cloud.schema import State, analyses
from docferry_cloud.server import CloudServer
from docferry_cloud.settings import LOCAL_TENANT, CloudSettings
from docferry_cloud.store import Store

_BATCH = 200
_LINES = 40
_MERCHANTS = ("Corner Shop", "Green Grocer", "Old Mill Bakery", "Harbour Café", "Station Kiosk")
_DEEP = 40
"""Pages that are turned over until one counts as deep."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--analyses", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("--data", help="not needed: documents are made up")
    parser.add_argument("--json", type=Path, help="write the last line there too")
    arguments = parser.parse_args()
    stores = ("sqlite", "postgres") if arguments.store == "both" else (arguments.store,)
    result: dict[str, Any] = {"analyses": arguments.analyses}
    for kind in stores:
        with _place(kind) as (folder, database):
            fill(folder, database, arguments.analyses)
            result[kind] = asyncio.run(measure(folder, database, arguments.repeat))
        for name, times in result[kind].items():
            print(f"{kind:>9}  {name:<20} p50 {times['p50_ms']:7.1f} ms   p95 {times['p95_ms']:7.1f} ms")
    line = json.dumps(result)
    print(line)
    if arguments.json:
        arguments.json.write_text(f"{line}\n", encoding="utf-8")


def fill(folder: Path, url: str, count: int) -> None:
    """Store analyses that have been read: one in a hundred failed, one in eight holds a doubt."""
    luck = random.Random(1)
    database = Database(url or folder / "store.sqlite")
    database.create()
    log = EventLog(database)
    log.open()
    limits = Limits(queue=count + 1, tenant=count + 1)
    store = Store(database, log, memory_blobs(), limits)
    for begin in range(0, count, _BATCH):
        store.take_many([_submission(number, luck) for number in range(begin, min(count, begin + _BATCH))])
        with database.write() as connection:
            # At once: what waits is counted with every submission.
            waiting = analyses.update().where(analyses.c.state == State.PENDING)
            connection.execute(waiting.where(analyses.c.file_name.like("%13.jpg")).values(state=State.FAILED))
            connection.execute(waiting.values(state=State.SUCCEEDED))
    database.close()


async def measure(folder: Path, url: str, repeat: int) -> dict[str, dict[str, float]]:
    """The pages' times on a running service over what was stored."""
    settings = CloudSettings(folder, database=url, port=0, http_port=0)
    server = CloudServer(settings)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.http_address, timeout=60, trust_env=False) as client:
            pages = {
                "inbox": "/console/inbox",
                "failed": "/console/inbox?state=STATE_FAILED",
                "by_route": "/console/inbox?route=ROUTE_DECISION_PAGE",
                "search_common": "/console/inbox?q=bakery",
                "search_rare": "/console/inbox?q=receipt-17.jpg",
                "search_two_words": "/console/inbox?q=harbour+77.7",
                "search_nothing": "/console/inbox?q=no+such+thing+anywhere",
                "deep_page": await _deep(client),
                "review": "/console/review",
                "routing": "/console/routing",
            }
            return {name: await _times(client, path, repeat) for name, path in pages.items()}
    finally:
        await server.stop()


async def _times(client: httpx.AsyncClient, path: str, repeat: int) -> dict[str, float]:
    took = []
    for _ in range(repeat):
        begun = time.perf_counter()
        answer = await client.get(path)
        took.append((time.perf_counter() - begun) * 1000)
        answer.raise_for_status()
    quantiles = statistics.quantiles(took, n=100, method="inclusive")
    return {"p50_ms": round(quantiles[49], 1), "p95_ms": round(quantiles[94], 1)}


async def _deep(client: httpx.AsyncClient) -> str:
    path = "/console/inbox"
    for _ in range(_DEEP):
        found = re.search(r'rel="next" href="([^"]+)"', (await client.get(path)).text)
        if found is None:
            break
        path = f"/console/inbox{unescape(found[1])}"
    return path


def _submission(number: int, luck: random.Random) -> Submission:
    document_id = str(uuid.UUID(int=luck.getrandbits(128), version=4))
    body = luck.randbytes(600)
    page = luck.random() < 0.3
    decision = envelope_pb2.ROUTE_DECISION_PAGE if page else envelope_pb2.ROUTE_DECISION_STRUCTURE
    route = envelope_pb2.Route(decision=decision, risk=luck.random() * 0.1, target_risk=0.05)
    traffic = analysis_pb2.Traffic(original_bytes=400_000, sent_bytes=200_000 if page else 3_000)
    return Submission(
        caller=Caller(LOCAL_TENANT, f"kiosk-{number % 20}"),
        request_id=str(uuid.UUID(int=number)),
        document_id=document_id,
        body=body,
        body_sha256=hashlib.sha256(body).digest(),
        file_name=f"receipt-{number}.jpg",
        effort=0,
        route=route.SerializeToString(),
        traffic=traffic.SerializeToString(),
        announced=(),
        edge=NewVersion("edge", _interpretation(luck).SerializeToString()),
    )


def _interpretation(luck: random.Random) -> analysis_pb2.Interpretation:
    merchant, total = luck.choice(_MERCHANTS), f"{luck.uniform(1, 500):.2f}"
    content = analysis_pb2.Interpretation(summary=f"Receipt from {merchant}, 2026-01-02, total {total}.")
    doubt = luck.random() < 0.125
    for name, value in (("merchant", merchant), ("date", "2026-01-02"), ("total", total), ("address", "1 Long Road")):
        content.document.fields.add(
            name=name, value=value, normalized=value, confidence=0.6 if doubt and name == "total" else 0.99
        )
    page = content.document.pages.add(width=900, height=1600)
    region = page.regions.add(region_id="r1", type=document_pb2.REGION_TYPE_TEXT)
    for number in range(_LINES):
        polygon = [0.1, 0.1, 0.9, 0.1, 0.9, 0.12, 0.1, 0.12]
        text = f"item {number} {luck.uniform(1, 90):.2f}"
        region.lines.add(line_id=f"r1.l{number}", text=text, polygon=polygon, score=0.99, confidence=0.98)
    return content


@contextmanager
def _place(kind: str) -> Iterator[tuple[Path, str]]:
    with tempfile.TemporaryDirectory(prefix="docferry-console-") as folder:
        if kind == "sqlite":
            yield Path(folder), ""
        else:
            with postgres_server() as new_database:
                yield Path(folder), new_database()


if __name__ == "__main__":
    main()
