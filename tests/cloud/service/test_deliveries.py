"""Delivery rows on either database: what becomes of a delivery that fails, and what is tidied away."""

import json

import pytest
from typer.testing import CliRunner

from docferry.errors import NotFound, Overloaded
from docferry.v1 import analysis_pb2, document_pb2
from docferry_cloud.commands import cloud_app
from docferry_cloud.database import Database
from docferry_cloud.deliveries import Deliveries
from docferry_cloud.rows import NewVersion
from docferry_cloud.schema import SinkKind
from docferry_cloud.sinks.titles import Facts
from docferry_cloud.subscriptions import MAX_BROWSERS_OF_ONE, Subscriptions, Wish
from tests.cloud.service.browser import Browser
from tests.cloud.service.world import World

DAY = 86_400_000_000


@pytest.fixture
def rows(world):
    return Deliveries(world.database, 30, world.clock)


@pytest.fixture
def subscribe(world):
    subscriptions = Subscriptions(world.database, world.clock)

    def make(kind=SinkKind.WEBHOOK, url="https://example.org/", **fields) -> str:
        if kind is SinkKind.WEB_PUSH:
            browser = Browser()
            fields |= {"p256dh": browser.p256dh, "auth": browser.auth}
        return subscriptions.create("tenant", Wish(url, kind, **fields))[0].subscription_id

    return make


def _page(rows, name, *, dead=False):
    return rows.page("tenant", name, dead=dead, limit=100)


def test_an_event_that_is_never_taken_is_buried_alone_where_others_are_taken(world, rows, subscribe):
    name = subscribe()
    world.take()
    poison = rows.next_delivery(name)
    rows.postpone(poison, 60, "HTTP 500")
    world.now += 1
    world.take()
    rows.settle(rows.next_delivery(name))
    world.now += 60_000_000
    rows.give_up(rows.next_delivery(name), "gave up after 2 attempts: HTTP 500")
    (dead,) = _page(rows, name, dead=True)
    assert (dead.event_id, dead.failure) == (poison.event_id, "gave up after 2 attempts: HTTP 500")
    world.take()
    assert rows.next_delivery(name) is not None


def test_what_is_due_at_a_subscriber_that_is_being_served_waits_for_the_end_of_its_lease(world, rows, subscribe):
    name = subscribe()
    world.take()
    assert rows.next_wait() == 0
    assert rows.lease(name, 60)
    assert rows.next_wait() == 60
    world.now += 20_000_000
    assert rows.next_wait() == 40
    rows.free(name)
    assert rows.next_wait() == 0


def test_a_subscriber_that_takes_nothing_is_switched_off_and_nothing_is_lost(world, rows, subscribe):
    name = subscribe()
    for _ in range(3):
        world.take()
    rows.give_up(rows.next_delivery(name), "gave up")
    assert rows.next_delivery(name) is None
    assert rows.next_wait() is None
    assert len(_page(rows, name, dead=True)) == 3
    world.take()
    assert len(_page(rows, name)) == 3
    assert rows.replay("tenant", name) == 3
    assert not _page(rows, name, dead=True)
    assert rows.next_delivery(name).attempts == 0


def test_dead_letters_go_when_their_time_is_over_and_waiting_ones_stay(world, rows, subscribe):
    name = subscribe()
    world.take()
    rows.bury(rows.next_delivery(name), "HTTP 413")
    world.now += 29 * DAY
    world.take()
    rows.tidy()
    assert len(_page(rows, name)) == 2
    world.now += 2 * DAY
    rows.tidy()
    assert [row.dead_time for row in _page(rows, name)] == [0]


def test_a_browser_that_waits_for_a_deleted_document_goes_and_the_others_stay(world, rows, subscribe):
    kept, gone = world.take(), world.take()
    names = [subscribe(SinkKind.WEB_PUSH, analysis_id=each) for each in (kept, gone)]
    everything = subscribe(SinkKind.WEB_PUSH)
    world.store.delete("tenant", gone)
    world.now += 2 * DAY
    rows.tidy()
    listed = [row.subscription_id for row in Subscriptions(world.database).page("tenant", 10, None)]
    assert set(listed) == {names[0], everything}


def test_so_many_browsers_wait_for_one_document_and_leave_room_for_those_of_others(world, subscribe):
    one, other = world.take(), world.take()

    def browser(number, analysis_id):
        return subscribe(SinkKind.WEB_PUSH, f"https://push.example/{number}", analysis_id=analysis_id)

    names = [browser(number, one) for number in range(MAX_BROWSERS_OF_ONE)]
    with pytest.raises(Overloaded, match="wait for this document"):
        browser(MAX_BROWSERS_OF_ONE, one)
    # One that is known already only renews its keys.
    assert browser(0, one) == names[0]
    browser(0, other)
    for number in range(MAX_BROWSERS_OF_ONE + 1):
        browser(number, "")
    subscribe(url="https://example.org/hook", analysis_id=one)


def test_programs_are_told_everything_and_people_what_they_care_for(world, rows, subscribe):
    hook, browser = subscribe(), subscribe(SinkKind.WEB_PUSH)
    world.store.cancel("tenant", world.take())
    assert len(_page(rows, hook)) == 2
    assert not _page(rows, browser)


def test_the_operator_sees_every_tenants_and_a_tenant_its_own(world, rows, subscribe):
    name = subscribe()
    world.take()
    assert len(rows.page(None, "", dead=False, limit=10)) == 1
    assert not rows.page("other", "", dead=False, limit=10)
    with pytest.raises(NotFound):
        rows.replay("other", name)


def test_a_title_tells_what_the_version_holds(world, rows):
    analysis_id = world.take()
    made = analysis_pb2.Interpretation()
    made.document.pages.add().regions.add(type=document_pb2.REGION_TYPE_TABLE)
    made.document.fields.add(name="total", value="EUR 9,00", normalized="9.00")
    work = world.work("process")
    with work.claimed(analysis_id):
        work.finish(analysis_id, NewVersion("echo", made.SerializeToString()))
    version = world.store.get("tenant", analysis_id=analysis_id).version
    assert rows.facts("tenant", analysis_id, version) == Facts(True, {"total": "9.00"})
    assert rows.facts("other", analysis_id, version) == Facts()


def test_the_operator_lists_and_replays_by_command(tmp_path):
    folder = tmp_path / "cloud"
    world = World(Database(folder / "store.sqlite"))
    made = Subscriptions(world.database, world.clock).create("tenant", Wish("https://example.org/"))[0]
    rows = Deliveries(world.database, 30, world.clock)
    world.take()
    event_id = rows.next_delivery(made.subscription_id).event_id
    rows.bury(rows.next_delivery(made.subscription_id), "HTTP 413")
    world.database.close()
    config = tmp_path / "cloud.toml"
    config.write_text(f'[data]\ndirectory = "{folder}"\n')
    run = CliRunner().invoke
    listed = run(cloud_app, ["deliveries", "list", "--dead", "--json", "--config", str(config)])
    (row,) = (json.loads(line) for line in listed.stdout.splitlines())
    assert (row["event_id"], row["failure"], row["state"]) == (event_id, "HTTP 413", "dead")
    again = run(cloud_app, ["deliveries", "replay", made.subscription_id, "--event", event_id, "--config", str(config)])
    assert again.stdout.startswith("1 events")
    assert not run(cloud_app, ["deliveries", "list", "--dead", "--config", str(config)]).stdout
    assert "waiting" in run(cloud_app, ["deliveries", "list", "--config", str(config)]).stdout


def test_a_title_knows_nothing_of_another_tenants_document_or_of_a_deleted_one(world, rows):
    analysis_id = world.take()
    assert rows.facts("tenant", analysis_id, 1) == Facts()
    assert rows.facts("other", analysis_id, 1) == Facts()
