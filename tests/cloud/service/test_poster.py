"""One webhook attempt: where it may go, how it is secured, and what counts as received."""

import asyncio
import ssl

import httpx
import pytest

from docferry_cloud import webhooks
from docferry_cloud.subscriptions import Delivery

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def delivery(receiver):
    def make(url: str = "") -> Delivery:
        return Delivery("subscription", 1, "event", 0, b"{}", url or receiver.url, receiver.secret)

    return make


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"])
async def test_a_private_address_is_never_connected_to(receiver, delivery, host):
    port = receiver.url.rsplit(":", 1)[1]
    async with webhooks.client() as client:
        attempt = await webhooks.Poster(client, allow_private=False).post(delivery(f"http://{host}:{port}"))
    assert not attempt.received
    assert "no public address" in attempt.failure
    assert receiver.requests.empty()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("::ffff:93.184.216.34", True),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("64:ff9b::a01:203", False),
        ("2002:a01:203::1", False),
        ("224.0.0.1", False),
    ],
)
async def test_public_means_reachable_by_everyone(address, public):
    assert webhooks._is_public(address) is public


@pytest.mark.parametrize(("status", "received"), [(200, True), (204, True), (301, False), (404, False), (503, False)])
async def test_only_2xx_counts_as_received(receiver, delivery, status, received):
    receiver.answer(status, header="retry-after: 7")
    async with webhooks.client() as client:
        attempt = await webhooks.Poster(client, allow_private=True).post(delivery())
    assert (attempt.status, attempt.received, attempt.retry_after) == (status, received, 7)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "http://nowhere.invalid/", "https://a..b/", f"https://{'a' * 64}/", "https://xn--a/"],
)
async def test_a_receiver_that_is_not_there_is_a_failed_attempt(delivery, url):
    async with webhooks.client() as client:
        attempt = await webhooks.Poster(client, allow_private=True).post(delivery(url))
    assert attempt.status == 0
    assert attempt.failure


async def test_a_silent_receiver_is_given_up(delivery, monkeypatch):
    monkeypatch.setattr(webhooks, "_TIMEOUT_S", 0.2)

    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server, webhooks.client() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        attempt = await webhooks.Poster(client, allow_private=True).post(delivery(url))
    assert attempt.status == 0
    assert attempt.failure


async def test_the_certificate_is_checked_for_the_name_though_the_address_is_dialled(certificate, delivery):
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*certificate)
    hosts = []

    async def handle(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        hosts.append(head.decode().lower())
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 204 x\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=serving)
    port = server.sockets[0].getsockname()[1]
    async with server:
        trusting = ssl.create_default_context(cafile=certificate[0])
        async with httpx.AsyncClient(verify=trusting, trust_env=False) as client:
            poster = webhooks.Poster(client, allow_private=True)
            named = await poster.post(delivery(f"https://localhost:{port}/"))
            numbered = await poster.post(delivery(f"https://127.0.0.1:{port}/"))
    assert named.received
    assert f"host: localhost:{port}" in hosts[0]
    assert not numbered.received
    assert "certificate" in numbered.failure.lower()
