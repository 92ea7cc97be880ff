"""A full model that fails: the fast answer stands, and neither it nor its neighbours are lost."""

import threading
import time
from dataclasses import replace

import pytest

from docferry.document import Page, Quality
from docferry.errors import EngineError, ImageTooLarge, Unavailable
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry_cloud.deep_work import DeepWork
from docferry_cloud.deepen_list import MOST_FAILURES, DeepenList
from docferry_cloud.dialects import DatabaseAway
from docferry_cloud.engine import Task
from docferry_cloud.interpreter import Interpreter
from docferry_cloud.metrics import cloud_metrics
from docferry_cloud.schema import State


class Failing:
    """An engine whose second step doubts everything and raises; the hook may do more."""

    name = "fast"
    tasks = frozenset({Task.TEXT})

    def __init__(self, error, hook=lambda: None):
        self.error, self.hook, self.deep = error, hook, self

    def read(self, page, effort, cancelled):
        return Page(400, 300, quality=Quality(orientation_score=1.0))

    def doubts(self, page, read, effort):
        return True

    def deepen(self, page, read, effort, cancelled):
        self.hook()
        raise self.error


@pytest.fixture
def deep(world, make_envelope, make_part, small_png):
    """An analysis that waits for its deep answer, worked on by an engine; gives its id."""
    part = make_part(small_png, kind=envelope_pb2.PART_KIND_ORIGINAL)
    envelope = make_envelope(structure=None, parts=[part], effort=envelope_pb2.EFFORT_DEEP)

    def run(engine, stopping=None):
        world.body = envelope.SerializeToString()
        submission = world.submission()
        analysis_id = world.store.take(replace(submission, effort=envelope_pb2.EFFORT_DEEP)).analysis_id
        stopping = stopping or threading.Event()
        metrics = cloud_metrics(world.database)
        Interpreter(world.store, world.work("one"), engine, stopping, metrics=metrics).run(analysis_id)
        return analysis_id

    return run


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (OverflowError("cannot convert float infinity to integer"), True),
        (EngineError("it fell over", remedy="wait"), True),
        (ImageTooLarge("more pixels than there may be", remedy="send less"), False),
    ],
)
def test_a_full_model_that_fails_in_whatever_way_leaves_the_fast_answer(world, deep, error, again):
    analysis_id = deep(Failing(error))
    assert world.state(analysis_id) is State.SUCCEEDED
    version = world.store.newest(analysis_id)
    (notice,) = analysis_pb2.Interpretation.FromString(version.interpretation).notices
    assert (version.engine, notice.code) == ("fast", "DEEP_UNAVAILABLE")
    assert ("as soon as it can be had" in notice.detail) is again
    world.now += 60_000_000
    owed = DeepenList(world.database, world.log, "one", world.clock)
    assert owed.lease(1.0) == ([analysis_id] if again else [])


def test_a_database_that_is_away_or_a_service_that_stops_is_no_failure_of_the_full_model(world, deep):
    away = deep(Failing(DatabaseAway("away", remedy="wait")))
    stopping = threading.Event()
    stopped = deep(Failing(OverflowError(), stopping.set), stopping)
    assert [world.state(each) for each in (away, stopped)] == [State.PENDING] * 2


class Patient(Failing):
    """Its second step reads until nobody wants it any more."""

    name = "deep"

    def deepen(self, page, read, effort, cancelled):
        self.hook()
        until = time.monotonic() + 20
        while not cancelled() and time.monotonic() < until:
            threading.Event().wait(0.01)
        self.stopped = cancelled()
        raise EngineError("stopped", remedy="none needed")


def test_a_deep_reading_of_what_was_deleted_meanwhile_stops(world, deep):
    analysis_id = deep(Failing(EngineError("not now", remedy="wait")))
    engine = Patient(None, lambda: world.store.delete("tenant", analysis_id))
    dies_over(world, engine, analysis_id, "lives")
    assert engine.stopped


class Killed(BaseException):
    """Nothing that a process does on its way out happens when this passes through."""


class Deadly(Failing):
    """Its second step takes the process along."""

    def __init__(self):
        super().__init__(Killed())
        self.name = "deep"


def dies_over(world, engine, analysis_id, owner):
    """A process leases and works on it and dies; the next one finds only what the rows say."""
    work, waiting = world.work(owner), DeepenList(world.database, world.log, owner, world.clock)
    world.now += 3_600_000_000
    work.announce_alive(10)
    if analysis_id in waiting.lease(10.0):
        try:
            DeepWork(world.store, waiting, engine, threading.Event(), work.turns).run(analysis_id)
        finally:
            work.announce_gone()


def test_a_document_that_kills_whoever_reads_it_deeply_does_so_three_times_at_most(world, deep):
    analysis_id = deep(Failing(EngineError("not now", remedy="wait")))
    for number in range(MOST_FAILURES):
        with pytest.raises(Killed):
            dies_over(world, Deadly(), analysis_id, f"dies {number}")
    dies_over(world, Deadly(), analysis_id, "lives")
    world.now += 3_600_000_000
    assert DeepenList(world.database, world.log, "next", world.clock).lease(1.0) == []
    assert world.state(analysis_id) is State.SUCCEEDED


def test_one_over_which_a_process_died_is_read_while_nothing_else_runs(world, deep):
    analysis_id = deep(Failing(EngineError("not now", remedy="wait")))
    work, waiting = world.work("lives"), DeepenList(world.database, world.log, "lives", world.clock)
    turns = []

    def look():
        with work.turns.alone(0.0) as free:
            turns.append("none" if free else "alone" if work.turns._taken else "beside")

    engine = Failing(Unavailable("away", remedy="wait"), look)
    engine.name = "deep"

    def read():
        world.now += 3_600_000_000
        work.announce_alive(10)
        assert waiting.lease(10.0) == [analysis_id]
        DeepWork(world.store, waiting, engine, threading.Event(), work.turns).run(analysis_id)

    read()
    with pytest.raises(Killed):
        dies_over(world, Deadly(), analysis_id, "dies")
    read()
    # It has ended without killing anyone: no suspect any more.
    read()
    assert turns == ["beside", "alone", "beside"]


def test_a_model_that_is_away_counts_no_failure_however_often(world, deep):
    analysis_id = deep(Failing(EngineError("not now", remedy="wait")))
    engine = Failing(Unavailable("away", remedy="wait"))
    engine.name = "deep"
    for _ in range(2 * MOST_FAILURES):
        dies_over(world, engine, analysis_id, "lives")
    world.now += 3_600_000_000
    assert DeepenList(world.database, world.log, "next", world.clock).lease(1.0) == [analysis_id]
