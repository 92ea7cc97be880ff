"""What goes wrong with one thing is that thing's alone: a submission's neighbours, a store that is away, a clock."""

import asyncio
import itertools
import threading
from dataclasses import replace

import pytest

from docferry.errors import InputError, NotFound
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry_cloud import database
from docferry_cloud.analysis_rows import MAX_CONTENT_BYTES
from docferry_cloud.blob_list import BlobList
from docferry_cloud.blobs import StoreAway
from docferry_cloud.database import Database
from docferry_cloud.event_log import EventLog
from docferry_cloud.interpreter import Interpreter
from docferry_cloud.metrics import cloud_metrics
from docferry_cloud.rows import NewVersion, Taken
from docferry_cloud.schema import State
from docferry_cloud.together import Together
from docferry_cloud.work import WorkList


async def test_a_submission_that_cannot_be_stored_takes_no_neighbour_along(world):
    good, bad = world.submission(), replace(world.submission(), file_name="a\0b")
    together = Together(world.database, world.store)
    outcomes = await asyncio.gather(*map(together.take, (good, bad, world.submission())), return_exceptions=True)
    assert [type(outcomes[0]), type(outcomes[2])] == [Taken, Taken]
    assert world.state(outcomes[0].analysis_id) is State.PENDING
    # SQLite holds such a text; PostgreSQL cannot.
    assert isinstance(outcomes[1], Taken | InputError)


class Away:
    """A store that can be switched off."""

    def __init__(self, store):
        self.store, self.off = store, False

    def __getattr__(self, name):
        if self.off:
            raise StoreAway("the object store is away", remedy="wait")
        return getattr(self.store, name)


def test_work_that_finds_the_object_store_away_waits_and_counts_no_attempt(world, supply_whole, echo_engine):
    store = world.blobs = Away(world.blobs)
    world.store._blobs = store
    envelope = envelope_pb2.Envelope(parts=[envelope_pb2.Part(part_id="p1", kind=envelope_pb2.PART_KIND_ORIGINAL)])
    world.body = envelope.SerializeToString()
    analysis_id = supply_whole(b"x" * 70_000)
    assert BlobList(world.database, store, world.clock).move() == 1
    work = world.work("one")
    interpreter = Interpreter(
        world.store, work, echo_engine(), threading.Event(), metrics=cloud_metrics(world.database)
    )
    store.off = True
    for _ in range(5):
        interpreter.run(analysis_id)
        assert world.state(analysis_id) is State.PENDING
    store.off = False
    claim = work.claim(analysis_id)
    assert claim.attempt == 1
    work.release(analysis_id, counts=False)
    interpreter.run(analysis_id)
    assert world.state(analysis_id) is State.SUCCEEDED


def test_leases_mean_the_same_to_machines_whose_clocks_differ(postgres, monkeypatch):
    url = postgres()
    clocks = itertools.cycle((0, 3_600_000_000))
    monkeypatch.setattr(database, "wall_clock", lambda: next(clocks))
    here, there = Database(url), Database(url)
    try:
        here.create()
        assert abs(here.now() - there.now()) < 1_000_000
        one, other = (WorkList(each, EventLog(each), name) for each, name in ((here, "one"), (there, "other")))
        one.announce_alive(10)
        assert other.living() == {"one"}
        assert other.take_over() == 0
    finally:
        here.close()
        there.close()


def test_an_answer_holds_the_newest_versions_that_go_into_it_and_each_can_be_had(world):
    analysis_id = world.take()
    work = world.work("one")
    for number in range(1, 5):
        work.claim(analysis_id)
        interpretation = analysis_pb2.Interpretation(markdown=str(number) * (MAX_CONTENT_BYTES * 2 // 5))
        version = NewVersion("engine", interpretation.SerializeToString())
        assert work.ask(analysis_id, version, [], 60)
        with world.database.write() as connection:
            connection.exec_driver_sql("UPDATE analyses SET state = 'PENDING'")
    versions = world.store.get("tenant", analysis_id=analysis_id).versions
    assert [(each.version, bool(each.interpretation)) for each in versions] == [
        (1, False),
        (2, False),
        (3, True),
        (4, True),
    ]
    (oldest,) = world.store.get("tenant", analysis_id=analysis_id, version=1).versions
    assert analysis_pb2.Interpretation.FromString(oldest.interpretation).markdown[:3] == "111"
    with pytest.raises(NotFound, match="version 9"):
        world.store.get("tenant", analysis_id=analysis_id, version=9)
