"""Webhooks: signed by the Standard Webhooks scheme, retried, in order, and never into a private network by default."""

import asyncio
import base64
import contextlib
import json

import grpc
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook

from docferry.v1 import subscription_service_pb2 as pb
from docferry_cloud.sinks.port import ATTEMPT_S
from docferry_cloud.sinks.webhook import WebhookSink
from tests.cloud.service.receiver import Received

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


async def _dead(caller) -> list[pb.Delivery]:
    request = pb.SubscriptionServiceListDeliveriesRequest(dead_only=True)
    return list((await caller("ListDeliveries", request)).deliveries)


async def _refused(reason_of, caller, name, request):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller(name, request)
    return reason_of(failure.value)


def _verifies(public: str, one: Received) -> bool:
    """By the scheme's own words: ed25519 over `id.timestamp.body`, any of the signatures that stand there."""
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public.removeprefix("whpk_")))
    signed = f"{one.headers['webhook-id']}.{one.headers['webhook-timestamp']}.".encode() + one.body
    for each in one.headers["webhook-signature"].split():
        version, _, signature = each.partition(",")
        if version == "v1a":
            with contextlib.suppress(InvalidSignature):
                key.verify(base64.b64decode(signature), signed)
                return True
    return False


async def test_an_ed25519_webhook_is_verified_by_its_public_key(caller, receiver, make_envelope):
    request = pb.SubscriptionServiceCreateRequest(
        subscription=pb.Subscription(url=receiver.url), signature_method=pb.SIGNATURE_METHOD_ED25519
    )
    made = await caller("Create", request)
    assert made.secret == ""
    assert (await _listed(caller))[0].public_key == made.subscription.public_key
    await caller.submit(make_envelope())
    one = await receiver.next()
    assert _verifies(made.subscription.public_key, one)
    one.body += b" "
    assert not _verifies(made.subscription.public_key, one)


async def test_while_keys_are_exchanged_both_sign(caller, receiver, make_envelope):
    made = await _subscribe(caller, receiver)
    request = pb.SubscriptionServiceRotateRequest(
        subscription_id=made.subscription_id, signature_method=pb.SIGNATURE_METHOD_ED25519
    )
    turned = (await caller("Rotate", request)).subscription
    await caller.submit(make_envelope())
    one = await receiver.next()
    assert len(one.headers["webhook-signature"].split()) == 2
    assert Webhook(receiver.secret).verify(one.body, one.headers)
    assert _verifies(turned.public_key, one)


async def test_after_the_overlap_only_the_new_key_signs(caller, receiver, make_envelope):
    made = await _subscribe(caller, receiver)
    request = pb.SubscriptionServiceRotateRequest(subscription_id=made.subscription_id)
    request.overlap.FromSeconds(0)
    secret = (await caller("Rotate", request)).secret
    await caller.submit(make_envelope())
    one = await receiver.next()
    assert len(one.headers["webhook-signature"].split()) == 1
    assert Webhook(secret).verify(one.body, one.headers)


async def test_what_was_given_up_is_kept_with_its_reason_and_replayed(caller, receiver, make_envelope, until):
    made = await _subscribe(caller, receiver)
    receiver.answer(410)
    taken = await caller.submit(make_envelope())
    await caller.finished(taken.analysis_id)
    lost = (await receiver.next()).headers["webhook-id"]
    await until(lambda: _dead(caller))
    dead = await _dead(caller)
    assert dead[-1].event_id == lost
    assert "410" in dead[-1].failure
    assert dead[-1].attempts == 1
    assert dead[-1].HasField("dead_time")
    request = pb.SubscriptionServiceReplayRequest(subscription_id=made.subscription_id)
    assert (await caller("Replay", request)).replayed == len(dead)
    again = [await receiver.next() for _ in dead]
    assert [one.headers["webhook-id"] for one in again] == [row.event_id for row in reversed(dead)]
    assert (await _listed(caller))[0].disabled_reason == ""
    await until(lambda: _none_left(caller))


async def _none_left(caller) -> bool:
    return not (await caller("ListDeliveries", pb.SubscriptionServiceListDeliveriesRequest())).deliveries


async def test_one_event_can_be_replayed_alone(caller, receiver, make_envelope, until):
    made = await _subscribe(caller, receiver)
    receiver.answer(410)
    await caller.finished((await caller.submit(make_envelope())).analysis_id)
    event_id = (await receiver.next()).headers["webhook-id"]
    await until(lambda: _dead(caller))
    request = pb.SubscriptionServiceReplayRequest(subscription_id=made.subscription_id, event_id=event_id)
    assert (await caller("Replay", request)).replayed == 1
    assert (await receiver.next()).headers["webhook-id"] == event_id


async def test_retry_after_is_waited_for(caller, receiver, make_envelope, until):
    await _subscribe(caller, receiver)
    receiver.answer(429, 429, header="retry-after: 3600")
    await caller.finished((await caller.submit(make_envelope())).analysis_id)
    await receiver.next()
    await receiver.next()

    async def postponed():
        rows = (await caller("ListDeliveries", pb.SubscriptionServiceListDeliveriesRequest())).deliveries
        return [row for row in rows if row.attempts == 1]

    await until(postponed)
    row = (await postponed())[0]
    assert row.failure == "HTTP 429"
    assert row.due_time.seconds - row.create_time.seconds >= 3600


async def test_a_receiver_that_hangs_does_not_hold_up_the_others(caller, receiver, make_envelope):
    async def hang(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        for number in range(6):
            silent = pb.Subscription(url=f"{url}{number}")
            made = await caller("Create", pb.SubscriptionServiceCreateRequest(subscription=silent))
            assert made.subscription.subscription_id
        await _subscribe(caller, receiver)
        began = asyncio.get_running_loop().time()
        await caller.submit(make_envelope())
        assert b"accepted" in (await receiver.next()).body
        assert b"succeeded" in (await receiver.next()).body
        assert asyncio.get_running_loop().time() - began < ATTEMPT_S
        for row in await _listed(caller):
            await caller("Delete", pb.SubscriptionServiceDeleteRequest(subscription_id=row.subscription_id))


async def test_another_tenants_webhook_can_be_neither_seen_nor_touched(service, caller, receiver, reason_of):
    made = await _subscribe(caller, receiver)
    other = service.caller()
    assert not await _listed(other)
    name = made.subscription_id
    for rpc, request in (
        ("Rotate", pb.SubscriptionServiceRotateRequest(subscription_id=name)),
        ("Replay", pb.SubscriptionServiceReplayRequest(subscription_id=name)),
        ("Delete", pb.SubscriptionServiceDeleteRequest(subscription_id=name)),
    ):
        assert await _refused(reason_of, other, rpc, request) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
    listed = await other("ListDeliveries", pb.SubscriptionServiceListDeliveriesRequest(subscription_id=name))
    assert not listed.deliveries


async def test_a_webhook_of_one_document_hears_of_no_other(caller, receiver, make_envelope):
    mine = make_envelope()
    wanted = pb.Subscription(url=receiver.url, document_id=mine.document_id)
    await caller("Create", pb.SubscriptionServiceCreateRequest(subscription=wanted))
    await caller.finished((await caller.submit(make_envelope())).analysis_id)
    await caller.submit(mine)
    got = [json.loads((await receiver.next()).body)["data"]["document_id"] for _ in range(2)]
    assert got == [mine.document_id] * 2


@pytest.mark.parametrize(
    "changes",
    [{"language": "tlh"}, {"analysis_id": "a" * 37}, {"kind": 99}, {"kind": pb.Subscription.KIND_WEB_PUSH}],
)
async def test_a_subscription_that_means_nothing_is_refused(caller, reason_of, changes):
    asked = pb.Subscription(url="https://host/", **changes)
    code, _ = await _refused(reason_of, caller, "Create", pb.SubscriptionServiceCreateRequest(subscription=asked))
    assert code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}


@pytest.mark.parametrize("secret", ["whsk_", "whsk_AAAA", "whsk_" + base64.b64encode(bytes(64)).decode(), "whpk_AAAA"])
async def test_a_malformed_ed25519_key_is_refused(caller, reason_of, secret):
    asked = pb.SubscriptionServiceCreateRequest(subscription=pb.Subscription(url="https://host/"), secret=secret)
    assert await _refused(reason_of, caller, "Create", asked) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
