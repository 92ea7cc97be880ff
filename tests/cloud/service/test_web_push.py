"""Web Push against a real push endpoint over HTTP: decrypted by other code, and by RFC 8291's vector."""

import json
import time

import grpc
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from docferry.v1 import subscription_service_pb2 as pb
from docferry_cloud.sinks import web_push
from docferry_cloud.sinks.message import MAX_THIN_BYTES
from docferry_cloud.sinks.web_push import PushKeys, encrypted, topic
from tests.cloud.service.browser import Browser, bytes_of
from tests.cloud.service.running import running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

PUBLIC_URL = "https://docferry.example"
# RFC 8291, section 5 and appendix A.
PLAIN = b"When I grow up, I want to be a watermelon"
UA_PRIVATE = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
UA_PUBLIC = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
AS_PRIVATE = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def _private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(bytes_of(text), "big"), ec.SECP256R1())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory, database_url):
    folder = tmp_path_factory.mktemp("push")
    settings = {"push_contact": "mailto:ops@example.com", "public_url": PUBLIC_URL}
    async with running_server(folder, database=database_url(), **settings) as server:
        yield server


async def _subscribe(caller, receiver, browser: Browser, **fields) -> pb.Subscription:
    request = pb.SubscriptionServiceCreateRequest(
        subscription=pb.Subscription(url=receiver.url, kind=pb.Subscription.KIND_WEB_PUSH, **fields),
        push_keys=pb.PushKeys(p256dh=browser.p256dh, auth=browser.auth),
    )
    answer = await caller("Create", request)
    assert answer.secret == ""
    return answer.subscription


async def _listed(caller) -> list[pb.Subscription]:
    return list((await caller("List", pb.SubscriptionServiceListRequest())).subscriptions)


async def test_a_finished_document_reaches_the_browser_encrypted_and_thin(caller, receiver, make_envelope):
    browser = Browser()
    await _subscribe(caller, receiver, browser, language="zh")
    taken = await caller.submit(make_envelope())
    got = await receiver.next()
    assert got.headers["content-encoding"] == "aes128gcm"
    assert got.headers["ttl"] == "259200"
    assert got.headers["urgency"] == "normal"
    assert got.headers["topic"] == topic(taken.document_id)
    message = json.loads(await browser.read(got.body))
    event = (await caller.events(lambda event: event.event_id == message["event_id"]))[-1]
    assert (event.analysis_id, event.version) == (taken.analysis_id, 2)
    assert message["link"] == f"{PUBLIC_URL}/r/{taken.analysis_id}"
    assert message["title"].startswith("文档已识别")
    names = {"event_id", "type", "analysis_id", "document_id", "version", "language", "title", "link"}
    assert set(message) == names
    assert len(got.body) < MAX_THIN_BYTES
    assert receiver.requests.empty()


async def test_the_post_carries_a_vapid_token_for_its_push_service(caller, receiver, make_envelope):
    await _subscribe(caller, receiver, Browser())
    public = (await caller("GetPushKey", pb.SubscriptionServiceGetPushKeyRequest())).public_key
    await caller.submit(make_envelope())
    scheme, _, rest = (await receiver.next()).headers["authorization"].partition(" ")
    values = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert (scheme, values["k"]) == ("vapid", public)
    signed, _, signature = values["t"].rpartition(".")
    head, claims = (json.loads(bytes_of(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}
    assert claims["aud"] == receiver.url.removesuffix("/hook")
    assert claims["sub"] == "mailto:ops@example.com"
    assert time.time() < claims["exp"] <= time.time() + 86400
    raw = bytes_of(signature)
    numbers = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes_of(public))
    key.verify(utils.encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("status", [404, 410])
async def test_an_ended_subscription_is_removed(caller, receiver, make_envelope, until, status):
    await _subscribe(caller, receiver, Browser())
    receiver.answer(status)
    await caller.submit(make_envelope())
    await receiver.next()

    async def gone():
        return not await _listed(caller)

    await until(gone)


async def test_a_push_service_that_takes_less_gets_a_thinner_message(caller, receiver, make_envelope):
    browser = Browser()
    await _subscribe(caller, receiver, browser)
    receiver.answer(413)
    taken = await caller.submit(make_envelope())
    first, second = [json.loads(await browser.read((await receiver.next()).body)) for _ in range(2)]
    assert second == {"event_id": first["event_id"], "analysis_id": taken.analysis_id, "version": 2}


async def test_a_message_that_is_refused_is_a_dead_letter_and_the_next_goes_on(caller, receiver, make_envelope, until):
    browser = Browser()
    await _subscribe(caller, receiver, browser)
    receiver.answer(413, 413)
    await caller.finished((await caller.submit(make_envelope())).analysis_id)
    await receiver.next()
    await receiver.next()

    async def dead():
        request = pb.SubscriptionServiceListDeliveriesRequest(dead_only=True)
        return (await caller("ListDeliveries", request)).deliveries

    await until(dead)
    assert (await dead())[0].failure == "HTTP 413"
    taken = await caller.submit(make_envelope())
    assert json.loads(await browser.read((await receiver.next()).body))["analysis_id"] == taken.analysis_id


async def test_a_phone_hears_of_its_own_document_only(caller, receiver, make_envelope):
    browser, mine = Browser(), make_envelope()
    await _subscribe(caller, receiver, browser, document_id=mine.document_id)
    await caller.finished((await caller.submit(make_envelope())).analysis_id)
    taken = await caller.submit(mine)
    assert json.loads(await browser.read((await receiver.next()).body))["analysis_id"] == taken.analysis_id
    assert receiver.requests.empty()


async def test_a_browser_that_subscribes_again_keeps_its_subscription(caller, receiver, make_envelope):
    first = await _subscribe(caller, receiver, Browser())
    browser = Browser()
    again = await _subscribe(caller, receiver, browser, language="zh")
    assert again.subscription_id == first.subscription_id
    assert [row.language for row in await _listed(caller)] == ["zh"]
    await caller.submit(make_envelope())
    assert json.loads(await browser.read((await receiver.next()).body))["language"] == "zh"


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [("", ""), (UA_PUBLIC, ""), (UA_PUBLIC, "AAAA"), (UA_PUBLIC[:-4] + "AAAA", AUTH), ("\u20ac", AUTH), (AUTH, AUTH)],
)
async def test_malformed_browser_keys_are_refused(caller, receiver, reason_of, p256dh, auth):
    request = pb.SubscriptionServiceCreateRequest(
        subscription=pb.Subscription(url=receiver.url, kind=pb.Subscription.KIND_WEB_PUSH),
        push_keys=pb.PushKeys(p256dh=p256dh, auth=auth),
    )
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await caller("Create", request)
    assert reason_of(failure.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


async def test_rfc_8291s_vector_is_what_is_sent(monkeypatch):
    monkeypatch.setattr("pywebpush.ec.generate_private_key", lambda *_: _private(AS_PRIVATE))
    monkeypatch.setattr("http_ece.os.urandom", lambda _: bytes_of(SALT))
    assert encrypted(PLAIN, PushKeys(UA_PUBLIC, AUTH)) == bytes_of(BODY)


async def test_the_independent_decryption_reads_rfc_8291s_vector():
    assert await Browser(_private(UA_PRIVATE), bytes_of(AUTH)).read(bytes_of(BODY)) == PLAIN


async def test_topics_fit_the_header_and_differ_between_documents():
    topics = {topic(f"document-{number}") for number in range(100)}
    assert len(topics) == 100
    assert all(len(each) == 32 and each.replace("-", "").replace("_", "").isalnum() for each in topics)


async def test_wrong_clocks_are_waited_for_and_malformed_requests_are_not():
    verdicts = {status: web_push.outcome(web_push.Answer(status)).verdict.name for status in (201, 400, 403, 429, 503)}
    assert verdicts == {201: "DELIVERED", 400: "REFUSED", 403: "RETRY", 429: "RETRY", 503: "RETRY"}
