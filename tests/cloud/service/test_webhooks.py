"""Webhooks: signed by the Standard Webhooks scheme, retried, in order, and never into a private network by default."""

import json

import grpc
import pytest
from standardwebhooks import Webhook

from docferry.v1 import subscription_service_pb2 as pb
from docferry_cloud.sinks.webhook import WebhookSink

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _subscribe(caller, receiver) -> pb.Subscription:
    request = pb.SubscriptionServiceCreateRequest(
        subscription=pb.Subscription(url=receiver.url), secret=receiver.secret
    )
    return (await caller("Create", request)).subscription


async def _listed(caller) -> list[pb.Subscription]:
    return list((await caller("List", pb.SubscriptionServiceListRequest())).subscriptions)


async def test_a_finished_analysis_is_posted_signed_and_thin(caller, receiver, make_envelope):
    await _subscribe(caller, receiver)
    taken = await caller.submit(make_envelope())
    got = [await receiver.next(), await receiver.next()]
    for one in got:
        assert one.path == "/hook"
        assert Webhook(receiver.secret).verify(one.body, one.headers)
    bodies = [json.loads(one.body) for one in got]
    assert [body["type"] for body in bodies] == ["analysis.accepted", "analysis.succeeded"]
    assert bodies[1]["data"]["analysis_id"] == taken.analysis_id
    assert bodies[1]["data"]["state"] == "SUCCEEDED"
    assert bodies[1]["data"]["version"] == 2
    assert bodies[0]["data"]["sequence"] < bodies[1]["data"]["sequence"]
    events = await caller.events(lambda event: event.sequence == bodies[1]["data"]["sequence"])
    assert events[-1].event_id == got[1].headers["webhook-id"]


async def test_a_failed_attempt_is_repeated_under_the_same_id(caller, receiver, make_envelope):
    await _subscribe(caller, receiver)
    receiver.answer(500, 302)
    await caller.submit(make_envelope())
    got = [await receiver.next() for _ in range(4)]
    by_id: dict[str, list[bytes]] = {}
    for one in got:
        assert Webhook(receiver.secret).verify(one.body, one.headers)
        by_id.setdefault(one.headers["webhook-id"], []).append(one.body)
    assert sorted(len(bodies) for bodies in by_id.values()) in ([1, 3], [2, 2])
    assert all(len(set(bodies)) == 1 for bodies in by_id.values())


async def test_first_attempts_come_in_the_order_of_the_log(caller, receiver, make_envelope):
    await _subscribe(caller, receiver)
    receiver.answer(500)
    for _ in range(5):
        await caller.submit(make_envelope())
    firsts: dict[str, int] = {}
    while len(firsts) < 10:
        one = await receiver.next()
        firsts.setdefault(one.headers["webhook-id"], json.loads(one.body)["data"]["sequence"])
    assert list(firsts.values()) == sorted(firsts.values())


async def test_410_switches_the_webhook_off(caller, receiver, make_envelope, until):
    await _subscribe(caller, receiver)
    receiver.answer(410)
    await caller.submit(make_envelope())
    await receiver.next()

    async def disabled():
        return (await _listed(caller))[0].disabled_reason

    await until(disabled)
    assert "410" in (await _listed(caller))[0].disabled_reason
    taken = await caller.submit(make_envelope())
    await caller.finished(taken.analysis_id)
    assert receiver.requests.empty()


async def test_a_receiver_that_never_answers_well_is_given_up(caller, receiver, make_envelope, until):
    await _subscribe(caller, receiver)
    receiver.answer(*[500] * 20)
    await caller.submit(make_envelope())

    async def disabled():
        return (await _listed(caller))[0].disabled_reason

    await until(disabled)
    assert "gave up after 4 attempts" in (await _listed(caller))[0].disabled_reason


async def test_a_deleted_webhook_hears_nothing_more(caller, receiver, make_envelope):
    made = await _subscribe(caller, receiver)
    await caller("Delete", pb.SubscriptionServiceDeleteRequest(subscription_id=made.subscription_id))
    assert not await _listed(caller)
    taken = await caller.submit(make_envelope())
    await caller.finished(taken.analysis_id)
    assert receiver.requests.empty()


async def test_a_secret_is_made_where_none_is_given(caller, receiver, make_envelope):
    request = pb.SubscriptionServiceCreateRequest(subscription=pb.Subscription(url=receiver.url))
    secret = (await caller("Create", request)).secret
    await caller.submit(make_envelope())
    one = await receiver.next()
    assert Webhook(secret).verify(one.body, one.headers)


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("ftp://a/b", ""),
        ("http://", ""),
        ("http://user:pass@host/", ""),
        ("http://host/", "whsec_c2hvcnQ="),
        ("x", ""),
        ("https://a..b/", ""),
        (f"https://{'a' * 64}/", ""),
        ("https://xn--a/", ""),
    ],
)
async def test_a_webhook_that_cannot_work_is_refused(caller, reason_of, url, secret):
    request = pb.SubscriptionServiceCreateRequest(subscription=pb.Subscription(url=url), secret=secret)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller("Create", request)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_webhooks_are_listed_page_by_page(caller):
    for number in range(3):
        request = pb.SubscriptionServiceCreateRequest(subscription=pb.Subscription(url=f"http://host/{number}"))
        await caller("Create", request)
    first = await caller("List", pb.SubscriptionServiceListRequest(page_size=2))
    rest = await caller("List", pb.SubscriptionServiceListRequest(page_size=2, page_token=first.next_page_token))
    urls = [row.url for row in (*first.subscriptions, *rest.subscriptions)]
    assert urls == ["http://host/2", "http://host/1", "http://host/0"]
    assert not rest.next_page_token


async def test_a_webhook_that_breaks_the_poster_does_not_stop_the_others(caller, receiver, make_envelope, monkeypatch):
    real = WebhookSink.send

    async def send(self, delivery, message):
        if delivery.url.endswith("/broken"):
            raise RuntimeError("a bug")
        return await real(self, delivery, message)

    monkeypatch.setattr(WebhookSink, "send", send)
    broken = pb.Subscription(url=f"{receiver.url}/broken")
    await caller("Create", pb.SubscriptionServiceCreateRequest(subscription=broken))
    await _subscribe(caller, receiver)
    await caller.submit(make_envelope())
    got = [await receiver.next() for _ in range(2)]
    assert [json.loads(one.body)["type"] for one in got] == ["analysis.accepted", "analysis.succeeded"]
    assert {one.path for one in got} == {"/hook"}
