"""Apprise addresses from the settings: real posts to a real receiver, retried and kept like webhooks, never shown."""

import asyncio
import io
import json
import logging
import sys

import grpc
import pytest

from docferry import logs
from docferry.errors import ConfigurationError
from docferry.v1 import subscription_service_pb2 as pb
from docferry_cloud.doctor import examine
from docferry_cloud.schema import SinkKind
from docferry_cloud.server import CloudServer
from docferry_cloud.settings import CloudSettings
from docferry_cloud.settings_rows import AppriseAddress
from docferry_cloud.sinks.apprise import AppriseSink, apprise_threads
from docferry_cloud.sinks.message import Message
from docferry_cloud.sinks.port import Delivery, Verdict
from docferry_cloud.subscriptions import Subscriptions

SECRET = "token-4711"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def address(receiver):
    """The receiver as an Apprise address of `scheme`, for the first tenant."""

    def made(scheme="json", language="en") -> AppriseAddress:
        place = receiver.url.removeprefix("http://").removesuffix("/hook")
        return AppriseAddress(f"{scheme}://{place}/{SECRET}", "tenant-0", language)

    return made


@pytest.fixture
def captured():
    """Everything that is logged at DEBUG, and the old handlers again afterwards."""
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    logs.configure("json", "debug", stream)
    yield stream.getvalue
    root.handlers[:] = handlers
    root.setLevel(level)


async def _dead(caller) -> list[pb.Delivery]:
    request = pb.SubscriptionServiceListDeliveriesRequest(dead_only=True)
    return list((await caller("ListDeliveries", request)).deliveries)


async def _listed(caller) -> list[pb.Subscription]:
    return list((await caller("List", pb.SubscriptionServiceListRequest())).subscriptions)


async def test_people_are_told_in_their_language_by_any_service_of_apprise(
    tmp_path, running, receiver, address, make_envelope
):
    people = (address("json"), address("ntfy", "zh"))
    async with running(tmp_path, apprise=people, public_url="https://docs.example.org") as service:
        caller = service.caller(0)
        taken = await caller.submit(make_envelope())
        got = [await receiver.next(), await receiver.next()]
    by_path = {one.path: json.loads(one.body) for one in got}
    english, chinese = by_path[f"/{SECRET}"], by_path["/"]
    assert english["title"] == "Document recognised"
    assert english["type"] == "success"
    link = f"https://docs.example.org/r/{taken.analysis_id}"
    assert english["message"] == f"{link}\nAnalysis {taken.analysis_id}, version 2"
    assert (chinese["topic"], chinese["title"]) == (SECRET, "文档已识别")
    assert chinese["message"] == f"{link}\n分析 {taken.analysis_id}，版本 2"
    assert receiver.requests.empty()


async def test_a_failed_attempt_is_repeated(tmp_path, running, receiver, address, make_envelope):
    receiver.answer(500)
    async with running(tmp_path, apprise=(address(),)) as service:
        await service.caller(0).submit(make_envelope())
        first, second = await receiver.next(), await receiver.next()
    assert first.body == second.body


async def test_what_was_given_up_is_listed_and_replayed(tmp_path, running, receiver, address, make_envelope, until):
    receiver.answer(*[503] * 4)
    async with running(tmp_path, apprise=(address(),)) as service:
        caller = service.caller(0)
        await caller.submit(make_envelope())

        async def buried():
            return await _dead(caller)

        await until(buried)
        (dead,) = await _dead(caller)
        assert dead.failure == "gave up after 4 attempts: json://: HTTP 503"
        (listed,) = await _listed(caller)
        assert (listed.kind, listed.url) == (pb.Subscription.KIND_APPRISE, "json://")
        for _ in range(4):
            await receiver.next()
        request = pb.SubscriptionServiceReplayRequest(subscription_id=listed.subscription_id)
        assert (await caller("Replay", request)).replayed == 1
        assert json.loads((await receiver.next()).body)["title"] == "Document recognised"


async def test_an_address_is_in_no_log_no_list_and_no_failure(
    tmp_path, running, receiver, address, make_envelope, until, captured
):
    receiver.answer(500, 302)
    people = (address(), AppriseAddress(f"ntfy://user:{SECRET}@127.0.0.1:1/{SECRET}", "tenant-0"))
    async with running(tmp_path, apprise=people) as service:
        caller = service.caller(0)
        await caller.submit(make_envelope())

        async def buried():
            return await _dead(caller)

        await until(buried)
        told = str(await _listed(caller)) + str(await _dead(caller))
    assert "ntfy://: not taken" in told
    assert "json://: HTTP 500" in captured()
    assert SECRET not in told + captured() + repr(people)


async def test_callers_cannot_give_an_address(tmp_path, running, reason_of, address):
    # A server of its own like all others here: two at once in one process are one too many for DBOS.
    async with running(tmp_path) as service:
        caller = service.caller()
        wish = pb.Subscription(url=address().url, kind=pb.Subscription.KIND_APPRISE)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller("Create", pb.SubscriptionServiceCreateRequest(subscription=wish))
        assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
        assert not await _listed(caller)


async def test_what_leaves_the_settings_leaves_the_store_and_what_stays_is_switched_on_again(world):
    subscriptions = Subscriptions(world.database, world.clock)
    one, other = (AppriseAddress(f"json://host/{name}", "tenant") for name in ("one", "other"))
    subscriptions.configure_apprise((one,))
    (first,) = subscriptions.page("tenant", 10, None)
    subscriptions.configure_apprise((AppriseAddress(one.url, "tenant", "zh"), other))
    rows = subscriptions.page("tenant", 10, None)
    assert {row.subscription_id: row.language for row in rows}[first.subscription_id] == "zh"
    assert len(rows) == 2
    # Webhooks are looked after apart.
    subscriptions.configure(())
    assert len(subscriptions.page("tenant", 10, None)) == 2
    subscriptions.configure_apprise(())
    assert not subscriptions.page("tenant", 10, None)


async def test_a_receiver_that_hangs_is_left_in_time():
    async def hang(_reader, writer):
        await done.wait()
        writer.close()

    done, threads = asyncio.Event(), apprise_threads()
    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        url = f"json://127.0.0.1:{server.sockets[0].getsockname()[1]}/{SECRET}"
        outcome = await AppriseSink(threads, timeout_s=0.2).send(_delivery(url), MESSAGE)
        done.set()
    threads.abandon()
    assert outcome.verdict is Verdict.RETRY
    assert outcome.failure == "json://: no answer within 0.2 s"


async def test_a_plugin_that_stumbles_is_told_without_its_words(monkeypatch):
    import apprise

    def stumble(*_args, **_values):
        raise ValueError(SECRET)

    monkeypatch.setattr(apprise.Apprise, "notify", stumble)
    threads = apprise_threads()
    outcome = await AppriseSink(threads).send(_delivery(f"json://host/{SECRET}"), MESSAGE)
    threads.abandon()
    assert (outcome.verdict, outcome.failure) == (Verdict.RETRY, "json://: failed inside: ValueError")


@pytest.mark.parametrize(("url", "word"), [(f"nope://{SECRET}", "does not take"), (f"slack://{SECRET}", "slack://")])
async def test_an_address_that_apprise_does_not_take_ends_the_start_and_is_found_by_the_doctor(
    tmp_path, captured, url, word
):
    logging.getLogger("apprise").propagate = True
    settings = CloudSettings(directory=tmp_path, port=0, apprise=(AppriseAddress(url, "tenant"),))
    server = CloudServer(settings)
    with pytest.raises(ConfigurationError) as failure:
        await server.start()
    await server.stop()
    told = f"{failure.value}"
    assert word in told
    assert "apprise[0]" in told
    assert _finding(settings).state == "failed"
    assert SECRET not in told + captured()


async def test_the_doctor_names_the_missing_extra(tmp_path, monkeypatch):
    settings = CloudSettings(directory=tmp_path, apprise=(AppriseAddress("json://host/", "tenant"),))
    assert _finding(settings).state == "ok"
    monkeypatch.setitem(sys.modules, "apprise", None)
    found = _finding(settings)
    assert (found.state, found.remedy) == ("failed", "pip install 'docferry[apprise]'")


def _finding(settings):
    from docferry.model_store import default_store

    return next(each for each in examine(settings, default_store()) if each.name == "Apprise")


MESSAGE = Message(
    "event", 1, "succeeded", "2026-01-01T00:00:00Z", "analysis", "document", "SUCCEEDED", 2, "T", "", "en"
)


def _delivery(url: str) -> Delivery:
    return Delivery("name", "tenant", SinkKind.APPRISE, url, "", "", "en", 1, "event", 0, 0, b"{}")
