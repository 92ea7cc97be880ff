"""The rows themselves: claims, takeover, retention, the log's end; with a clock of the test's own."""

import hashlib
import itertools

import pytest
from google.rpc import status_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docferry.errors import EngineError, EnvelopeError, NotFound
from docferry.status import error_of
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry_cloud.deliveries import Deliveries, Due
from docferry_cloud.rows import Caller, NewPart, NewVersion
from docferry_cloud.schema import EventType, State
from docferry_cloud.subscriptions import Subscriptions, Wish
from docferry_cloud.supply import MIN_CHUNK_BYTES, Chunk, supply
from docferry_cloud.work import MAX_ATTEMPTS

DAY = 86_400_000_000
CALLER = Caller("tenant", "kiosk")


def test_an_analysis_is_claimed_once(world):
    analysis_id = world.take()
    one, other = world.work("one"), world.work("other")
    assert one.claim(analysis_id).attempt == 1
    assert one.claim(analysis_id) is None
    assert other.claim(analysis_id) is None
    assert world.state(analysis_id) is State.RUNNING


def test_what_a_dead_process_held_is_taken_over_and_its_late_outcome_counts_for_nothing(world):
    analysis_id = world.take()
    dead, living = world.work("dead"), world.work("living")
    dead.claim(analysis_id)
    assert living.take_over() == 0
    world.now += 11_000_000
    living.announce_alive(10)
    assert living.take_over() == 1
    assert living.lease_waiting(5) == [analysis_id]
    assert living.claim(analysis_id) is None
    assert living.claim(analysis_id, alone=True).attempt == 2
    assert not dead.finish(analysis_id, NewVersion("dead", b""))
    assert not dead.fail(analysis_id, status_pb2.Status(code=13))
    assert living.finish(analysis_id, NewVersion("living", b""))
    assert not living.finish(analysis_id, NewVersion("living", b""))
    row = world.store.get("tenant", analysis_id=analysis_id)
    assert [version.engine for version in row.versions] == ["living"]
    assert world.events(analysis_id) == ["ACCEPTED", "SUCCEEDED"]


def test_a_document_that_keeps_killing_the_service_fails_after_some_attempts(world):
    analysis_id = world.take()
    for number in range(MAX_ATTEMPTS + 1):
        assert world.work(f"process-{number}").claim(analysis_id, alone=True).attempt == number + 1
        world.now += 11_000_000
        world.work("sweeper").take_over()
    assert world.work("last").claim(analysis_id, alone=True) is None
    row = world.store.get("tenant", analysis_id=analysis_id)
    assert row.state is State.FAILED
    assert isinstance(error_of(status_pb2.Status.FromString(row.error)), EngineError)
    assert world.events(analysis_id) == ["ACCEPTED", "FAILED"]


def test_work_given_back_at_shutdown_does_not_count_as_an_attempt(world):
    analysis_id = world.take()
    work = world.work("one")
    for _ in range(MAX_ATTEMPTS + 2):
        assert work.claim(analysis_id).attempt == 1
        work.release(analysis_id, counts=False)
    assert world.state(analysis_id) is State.PENDING


def test_a_waiting_row_is_leased_to_one_sweeper_at_a_time(world):
    analysis_id = world.take()
    one, other = world.work("one"), world.work("other")
    assert one.lease_waiting(10) == []
    world.now += 6_000_000
    assert one.lease_waiting(10) == [analysis_id]
    assert other.lease_waiting(10) == []
    assert other.lease_waiting(10, leased_too=True) == [analysis_id]


def test_an_outcome_that_got_lost_is_noticed_while_its_process_lives(world):
    held, lost = world.take(), world.take()
    work = world.work("one")
    work.claim(lost)
    with work.claimed(held) as claim:
        assert claim is not None
        with work.claimed(held) as again:
            assert again is None
        assert work.recover() == 1
    assert (world.state(held), world.state(lost)) == (State.RUNNING, State.PENDING)


def test_results_are_deleted_when_their_time_is_over(world):
    old, unfinished = world.take(), world.take()
    world.store.cancel("tenant", old)
    world.now += 20 * DAY
    young = world.take()
    world.store.cancel("tenant", young)
    world.now += 10 * DAY
    assert world.retention.expire() == [old]
    assert world.events(old) == ["ACCEPTED", "CANCELLED", "DELETED"]
    assert world.state(young) is State.CANCELLED
    assert world.state(unfinished) is State.PENDING


def test_what_is_deleted_unfinished_ends_in_a_final_state(world):
    analysis_id = world.take()
    world.store.delete("tenant", analysis_id)
    last = world.log.read("tenant", 0, world.log.latest(), 100, analysis_id)[-1]
    assert (last.type, last.state) == (EventType.DELETED, State.CANCELLED)


def test_a_deleted_request_is_remembered_as_long_as_results_are_kept(world):
    analysis_id = world.take()
    world.store.delete("tenant", analysis_id)
    for days in (29, 1):
        world.counter = itertools.count()
        world.retention.expire()
        with pytest.raises(NotFound):
            world.take()
        world.now += days * DAY
    world.retention.expire()
    world.counter = itertools.count()
    assert world.state(world.take()) is State.PENDING


def test_an_analysis_whose_parts_stop_coming_fails_after_a_day(world):
    part = NewPart("p", b"", 9000, bytes(32))
    idle, slow = world.take(part), world.take(part)
    world.now += DAY // 2
    supply(world.database, world.log, Chunk(slow, "p", 0, 9000, bytes(32), bytes(4096), 4200), CALLER, world.clock)
    assert world.retention.give_up() == []
    world.now += DAY // 2
    assert world.retention.give_up() == [idle]
    assert world.events(idle) == ["ACCEPTED", "FAILED"]
    row = world.store.get("tenant", analysis_id=idle)
    error = error_of(status_pb2.Status.FromString(row.error))
    assert isinstance(error, EnvelopeError)
    assert "24 hours" in error.reason
    assert world.state(slow) is State.AWAITING_PARTS


def test_leases_of_a_clock_that_was_ahead_do_not_strand_the_work(world):
    world.now += DAY
    waiting, running = world.take(), world.take()
    dead = world.work("dead")
    dead.claim(running)
    world.now -= DAY
    living = world.work("living")
    assert living.living() == {"living"}
    assert living.take_over() == 1
    assert set(living.lease_waiting(10)) == {waiting, running}
    assert living.lease_waiting(10) == []


def test_deliveries_and_leases_of_a_clock_that_was_ahead_are_due(world):
    row, _ = Subscriptions(world.database, world.clock).create("tenant", Wish("https://example.org/"))
    hooks = Deliveries(world.database, clock=world.clock)
    world.now += 3 * DAY
    world.take()
    assert hooks.lease(row.subscription_id, 60)
    world.now -= 3 * DAY
    assert hooks.next_wait() == 0
    assert hooks.due() == [Due(row.subscription_id, "tenant")]
    assert hooks.lease(row.subscription_id, 60)
    assert not hooks.lease(row.subscription_id, 60)
    delivery = hooks.next_delivery(row.subscription_id)
    world.now += 3 * DAY
    hooks.postpone(delivery, 300, "HTTP 500")
    assert hooks.next_delivery(row.subscription_id) is None
    assert hooks.next_wait() == 300
    world.now -= 3 * DAY
    assert hooks.next_delivery(row.subscription_id).attempts == 1


def test_neighbours_of_a_document_that_kills_the_service_all_succeed(world):
    poison, *innocent = [world.take() for _ in range(4)]
    first = world.work("process-0")
    for analysis_id in (poison, *innocent):
        first.claim(analysis_id)
    for number in range(1, MAX_ATTEMPTS + 1):
        world.now += 11_000_000
        work = world.work(f"process-{number}")
        work.take_over()
        with work.claimed(poison) as claim:
            assert claim is not None
        # The process dies here, with nothing else begun beside the poison.
    world.now += 11_000_000
    last = world.work("last")
    last.take_over()
    for analysis_id in (poison, *innocent):
        with last.claimed(analysis_id) as claim:
            if claim is not None:
                last.finish(analysis_id, NewVersion("echo", b""))
    assert world.state(poison) is State.FAILED
    assert {world.state(analysis_id) for analysis_id in innocent} == {State.SUCCEEDED}


def test_the_log_remembers_up_to_where_it_was_purged(world):
    for _ in range(3):
        world.take()
    world.now += 31 * DAY
    last = world.take()
    assert world.log.purged() == 0
    world.log.purge(world.now - 30 * DAY)
    assert world.log.purged() == 3
    (row,) = world.log.read("tenant", 0, world.log.latest(), 100)
    assert row.analysis_id == last
    world.log.purge(world.now + 1)
    assert world.log.latest() == world.log.purged() == 4
    world.take()
    assert world.log.latest() == 5


def test_a_clock_that_was_set_back_tears_no_hole_into_the_log(world):
    world.take()
    world.now -= 60 * DAY
    world.take()
    world.now += 61 * DAY
    world.log.purge(world.now - 30 * DAY)
    assert len(world.log.read("tenant", 0, world.log.latest(), 100)) == 2


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=200), cuts=st.lists(st.tuples(st.integers(0, 200), st.integers(40, 120))))
def test_however_a_part_is_cut_and_resent_the_stored_bytes_are_the_sent_ones(world, data, cuts):
    announcement = envelope_pb2.Part(part_id="p", kind=envelope_pb2.PART_KIND_ORIGINAL).SerializeToString()
    # Scaled, so that some pieces are below the smallest chunk, and some overlap by less than one.
    data = data * 100
    analysis_id = world.take(NewPart("p", announcement, len(data), hashlib.sha256(data).digest()))
    sent = 0
    for hundreds, length in [*cuts, (0, len(data))]:
        start = hundreds * 100
        piece = data[start : start + length * 100]
        ends = start + len(piece)
        if not piece or start > sent or (len(piece) < MIN_CHUNK_BYTES and ends < len(data)):
            continue
        chunk = Chunk(analysis_id, "p", start, len(data), hashlib.sha256(data).digest(), piece, len(piece) + 60)
        progress = supply(world.database, world.log, chunk, CALLER, world.clock)
        if ends == len(data) or ends - sent >= MIN_CHUNK_BYTES:
            sent = max(sent, ends)
        assert progress.received == sent
    assert world.state(analysis_id) is State.PENDING
    assert world.store.envelope(analysis_id) == (b"body", {"p": data})
    traffic = analysis_pb2.Traffic.FromString(world.store.get("tenant", analysis_id=analysis_id).traffic)
    assert traffic.sent_bytes == sum(part.bytes for part in traffic.parts) > len(data)
