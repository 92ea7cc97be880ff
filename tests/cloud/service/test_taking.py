"""Submissions that share a transaction come out as if each had come by itself."""

import hashlib
import itertools
from dataclasses import replace

import pytest
import sqlalchemy as sa

from docferry.errors import Conflict, NotFound, Overloaded
from docferry.v1 import analysis_pb2, document_pb2
from docferry_cloud.database import Database
from docferry_cloud.places import BACKGROUND, INTERACTIVE
from docferry_cloud.rows import Caller, Limits, NewPart, NewVersion, Taken
from docferry_cloud.schema import State, analyses, deliveries, digests
from docferry_cloud.store import Store
from docferry_cloud.subscriptions import Subscriptions, Wish
from tests.cloud.service.world import World

FLOOD, OTHER = Caller("flood", "kiosk"), Caller("other", "kiosk")
PART = NewPart("p1", b"", 9, hashlib.sha256(b"123456789").digest())
READ = analysis_pb2.Interpretation(document=document_pb2.Document(pages=[document_pb2.Page(width=100, height=200)]))
VERSION = NewVersion("edge", READ.SerializeToString())


def a_mixture(world):
    """All that can happen to a submission, several times in a row."""
    new = [replace(world.submission(), caller=FLOOD) for _ in range(3)]
    other = replace(world.submission(), caller=OTHER, edge=VERSION)
    return [
        *new,
        other,
        new[0],
        replace(new[1], body_sha256=bytes(32)),
        replace(world.submission(), caller=FLOOD, lane=BACKGROUND),
        replace(world.submission(PART), caller=OTHER),
        replace(world.submission(), caller=OTHER, lane=BACKGROUND),
        replace(world.submission(), caller=OTHER, within_s=60.0),
    ]


def told(world, outcomes):
    """What became of them, without what is drawn at random."""
    with world.database.read() as connection:
        turns = sa.select(analyses.c.request_id, analyses.c.lane, analyses.c.turn, analyses.c.state)
        rows = connection.execute(turns.order_by(analyses.c.request_id)).all()
        kept = connection.execute(sa.select(digests.c.tenant, digests.c.pages).order_by(digests.c.create_time)).all()
    events = [(row.type, row.state, row.version) for row in world.log.read("flood", 0, world.log.latest(), 100)]
    said = [(type(each), each.state if isinstance(each, Taken) else str(each).split()[0]) for each in outcomes]
    return [tuple(row) for row in rows], sorted(map(tuple, kept)), events, said


@pytest.fixture
def twins(tmp_path, database_url):
    """Two stores that are alike."""
    made = [World(Database(database_url() or tmp_path / f"{number}.sqlite")) for number in range(2)]
    yield made
    for world in made:
        world.database.close()


@pytest.mark.parametrize("size", [2, 3, 10])
def test_together_or_one_after_the_other_they_come_out_alike(twins, size):
    one, many = twins
    alone = [outcome for new in a_mixture(one) for outcome in one.store.take_many([new])]
    news = a_mixture(many)
    batches = [news[start : start + size] for start in range(0, len(news), size)]
    together = [outcome for batch in batches for outcome in many.store.take_many(batch)]
    assert told(many, together) == told(one, alone)
    kinds = [type(outcome) for outcome in together]
    assert kinds == [Taken] * 5 + [Conflict] + [Taken] * 4
    assert together[4].analysis_id == together[0].analysis_id
    assert not together[4].new


def test_what_the_taker_is_given_is_what_is_stored(world):
    for new in a_mixture(world):
        (taken,) = world.store.take_many([new])
        if isinstance(taken, Taken) and taken.row is not None:
            assert world.store.get(new.caller.tenant, analysis_id=taken.analysis_id) == taken.row


def test_a_batch_counts_what_it_takes_itself(world):
    store = Store(world.database, world.log, world.blobs, Limits(queue=4, tenant=2), world.clock)
    callers = itertools.chain([FLOOD] * 3, [OTHER] * 3)
    outcomes = store.take_many([replace(world.submission(), caller=caller) for caller in callers])
    full = [isinstance(outcome, Overloaded) for outcome in outcomes]
    assert full == [False, False, True, False, False, True]
    # Those that wait for their parts are counted apart.
    (waiting,) = store.take_many([replace(world.submission(PART), caller=FLOOD)])
    assert waiting.state is State.AWAITING_PARTS
    (more,) = store.take_many([replace(world.submission(), caller=Caller("third", "kiosk"))])
    assert isinstance(more, Overloaded)


def test_a_deleted_request_stays_deleted_within_a_batch(world):
    new = world.submission()
    world.store.delete("tenant", world.store.take(new).analysis_id)
    gone, fresh = world.store.take_many([new, world.submission()])
    assert isinstance(gone, NotFound)
    assert fresh.row.state is State.PENDING


def test_a_lane_has_turns_of_its_own_within_a_batch(world):
    lanes = [INTERACTIVE, BACKGROUND, INTERACTIVE, BACKGROUND]
    outcomes = world.store.take_many([replace(world.submission(), lane=lane) for lane in lanes])
    places = [outcome.place for outcome in outcomes]
    assert places[0] < places[2] < places[1] < places[3]
    assert [world.work("one").place(outcome.analysis_id) for outcome in outcomes] == places


@pytest.mark.parametrize("subscribed", ["tenant", "another"])
def test_a_subscriber_is_told_of_each_in_a_batch_and_of_no_other_tenants(world, subscribed):
    subscriptions = Subscriptions(world.database)
    subscriptions.create(subscribed, Wish("http://127.0.0.1:9/hook"))
    taken = world.store.take_many([world.submission() for _ in range(3)])
    with world.database.read() as connection:
        count = connection.execute(sa.select(sa.func.count()).select_from(deliveries)).scalar_one()
    assert count == (3 if subscribed == "tenant" else 0)
    assert [world.events(each.analysis_id) for each in taken] == [["ACCEPTED"]] * 3
