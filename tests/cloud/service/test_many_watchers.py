"""Many watch: the log is read once for all of them, each is told its own, and who is slow loses nothing."""

import asyncio
import random
import uuid
from contextlib import asynccontextmanager, suppress

import pytest

from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog, Happening
from docferry_cloud.event_tail import TAIL, EventTail, Watcher
from docferry_cloud.loops import end, keep_going
from docferry_cloud.metrics import cloud_metrics
from docferry_cloud.schema import EventType, State
from docferry_cloud.watch import EventFeed, Told


class CountingLog(EventLog):
    """How often a stream looked into the database."""

    reads = 0

    def read(self, *args, **kwargs):
        self.reads += 1
        return super().read(*args, **kwargs)


@pytest.fixture
def database(tmp_path, database_url):
    made = Database(database_url() or tmp_path / "store.sqlite")
    made.create()
    yield made
    made.close()


@pytest.fixture
def log(database):
    return CountingLog(database)


def append(database, log, tenants, *, progress_every=0) -> list[str]:
    """An event for each of these tenants, in one transaction; gives the analyses' ids."""
    ids = [str(uuid.uuid4()) for _ in tenants]
    with database.write() as connection:
        for number, (tenant, name) in enumerate(zip(tenants, ids, strict=True)):
            progress = progress_every and number % progress_every == 0
            kind = EventType.PROGRESS if progress else EventType.SUCCEEDED
            log.append(connection, Happening(kind, tenant, name, str(uuid.uuid4()), State.SUCCEEDED, 1))
    log.announce()
    return ids


@asynccontextmanager
async def following(database, log):
    feed = EventFeed(database, log, metrics=cloud_metrics(database))
    await feed.open()
    loops = [keep_going("feed", feed.run)]
    try:
        yield feed
    finally:
        await feed.close()
        await end(loops)


async def heard(feed, tenant, count, **options):
    """The first `count` events that a stream of this tenant is told."""
    rows = []
    async for item in feed.watch(tenant, **options):
        if isinstance(item, Told):
            rows.append(item.row)
        if len(rows) == count:
            break
    return rows


async def test_500_watchers_are_told_all_of_their_own_in_order_from_one_reading(database, log, until):
    luck = random.Random(6)
    tenants = [f"tenant-{number}" for number in range(10)]
    events = [luck.choice(tenants) for _ in range(400)]
    async with asyncio.timeout(60), following(database, log) as feed:
        watching = [
            asyncio.create_task(heard(feed, tenants[n % 10], events.count(tenants[n % 10]))) for n in range(500)
        ]
        await until(lambda: feed._watching == 500)
        written = []
        for start in range(0, 400, 40):
            written += await asyncio.to_thread(append, database, log, events[start : start + 40])
        told = await asyncio.gather(*watching)
    for number, rows in enumerate(told):
        mine = [name for name, tenant in zip(written, events, strict=True) if tenant == tenants[number % 10]]
        assert [row.analysis_id for row in rows] == mine
    assert log.reads == 0


async def test_others_events_and_progress_that_was_not_asked_for_wake_nobody(database, log, until):
    async with asyncio.timeout(30), following(database, log) as feed:
        rung = []

        class Bell(Watcher):
            def ring(self):
                rung.append(self.tenant)
                super().ring()

        feed._watchers = {"mine": {Bell("mine", "", progress=False)}, "other": {Bell("other", "", progress=True)}}
        append(database, log, ["other"] * 4, progress_every=1)
        await until(lambda: rung)
        append(database, log, ["mine"] * 4, progress_every=1)
        seen = feed.latest
        await until(lambda: feed.latest > seen)
        assert set(rung) == {"other"}
        append(database, log, ["mine"])
        await until(lambda: "mine" in rung)
        feed._watchers = {}


async def test_one_that_is_slow_goes_on_from_the_database_and_loses_nothing(database, log, until):
    total = 2 * TAIL + 300
    async with asyncio.timeout(60), following(database, log) as feed:
        stream = feed.watch("mine")
        assert not isinstance(await anext(stream), Told)
        written = []
        for start in range(0, total, 100):
            written += await asyncio.to_thread(append, database, log, ["mine"] * min(100, total - start))
        await until(lambda: feed.latest >= total)
        told = []
        while len(told) < total:
            item = await anext(stream)
            if isinstance(item, Told):
                told.append(item.row.analysis_id)
        assert told == written
        assert log.reads > 0
        assert len(feed._tail._events) <= 2 * TAIL
        await stream.aclose()
    with suppress(StopAsyncIteration):
        await anext(stream)


def test_the_tail_says_what_the_log_says_wherever_one_begins(database, log):
    luck = random.Random(1)
    tail, after = EventTail(0), 0
    for size in (1, 7, 300, TAIL, 900):
        append(database, log, [luck.choice(("a", "b")) for _ in range(size)], progress_every=3)
        latest = log.latest()
        tail.extend(log.newest(after, latest, TAIL), gap=False)
        after = latest
        for _ in range(40):
            progress, begin, upto = luck.random() < 0.5, luck.randrange(latest), luck.randrange(1, latest + 1)
            rows = tail.read(Watcher("a", progress=progress), begin, upto, 50)
            if rows is not None:
                assert rows == log.read("a", begin, upto, 50, progress=progress)
    assert tail.read(Watcher("a"), 0, after, 50) is None


async def test_more_than_the_tail_holds_at_once_is_told_whole(database, log, until):
    total = TAIL + 500
    async with asyncio.timeout(60), following(database, log) as feed:
        watching = asyncio.create_task(heard(feed, "mine", total))
        await until(lambda: feed._watching == 1)
        written = await asyncio.to_thread(append, database, log, ["mine"] * total)
        assert [row.analysis_id for row in await watching] == written
