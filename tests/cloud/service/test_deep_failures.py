"""A full model that fails: the fast answer stands, and neither it nor its neighbours are lost."""

import threading
from dataclasses import replace

import pytest

from docferry.document import Page, Quality
from docferry.errors import EngineError, ImageTooLarge
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry_cloud.deepen_list import DeepenList
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
