"""One webhook attempt: where it may go, how it is secured, and what counts as received."""

import asyncio
import ssl
import threading

import httpx
import pytest

from docferry_cloud.sinks import guard

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _post(url: str, *, allow_private=True, **settings) -> guard.Answer:
    async with guard.client() as client:
        return await guard.Poster(client, allow_private=allow_private, **settings).post(url, b"{}", {})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"])
async def test_a_private_address_is_never_connected_to(receiver, host):
    port = receiver.url.rsplit(":", 1)[1]
    attempt = await _post(f"http://{host}:{port}", allow_private=False)
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
        ("64:ff9b:1::a01:203", False),
        ("64:ff9b::5db8:d822", True),
        ("::7f00:1", False),
        ("::ffff:0:7f00:1", False),
        ("fec0::1", False),
        ("3fff::1", False),
        ("2001:0:7f00:1::", False),
        ("ff02::1", False),
    ],
)
async def test_public_means_reachable_by_everyone(address, public):
    assert guard.is_public(address) is public


@pytest.mark.parametrize(("status", "received"), [(200, True), (204, True), (301, False), (404, False), (503, False)])
async def test_only_2xx_counts_as_received(receiver, status, received):
    receiver.answer(status, header="retry-after: 7")
    attempt = await _post(receiver.url)
    assert (attempt.status, attempt.received, attempt.retry_after) == (status, received, 7)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/", "http://nowhere.invalid/", "https://a..b/", f"https://{'a' * 64}/", "https://xn--a/"],
)
async def test_a_receiver_that_is_not_there_is_a_failed_attempt(url):
    attempt = await _post(url)
    assert attempt.status == 0
    assert attempt.failure


async def test_a_silent_receiver_is_given_up():
    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server:
        attempt = await _post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", timeout_s=0.2)
    assert attempt.status == 0
    assert attempt.failure


async def test_the_certificate_is_checked_for_the_name_though_the_address_is_dialled(certificate):
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
            poster = guard.Poster(client, allow_private=True)
            named = await poster.post(f"https://localhost:{port}/", b"{}", {})
            numbered = await poster.post(f"https://127.0.0.1:{port}/", b"{}", {})
    assert named.received
    assert f"host: localhost:{port}" in hosts[0]
    assert not numbered.received
    assert "certificate" in numbered.failure.lower()


async def test_a_name_is_looked_up_once_and_the_checked_address_is_dialled(receiver, monkeypatch):
    asked = []

    def rebinding(host, port, **_):
        asked.append(host)
        # The first answer is public and the second is not: a second look-up would lead into this machine.
        address = "203.0.113.1" if len(asked) == 1 else "127.0.0.1"
        return [(0, 0, 0, "", (address, port))]

    monkeypatch.setattr(guard.socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(guard, "is_public", lambda address: address == "203.0.113.1")
    port = receiver.url.split(":")[2].split("/")[0]
    attempt = await _post(f"http://rebinding.example:{port}/", allow_private=False, timeout_s=0.3)
    assert asked == ["rebinding.example"]
    assert not attempt.received
    assert receiver.requests.empty()


async def test_of_several_addresses_the_next_is_dialled_when_one_is_silent(receiver, monkeypatch):
    def two(host, port, **_):
        return [(0, 0, 0, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

    port = receiver.url.split(":")[2].split("/")[0]
    monkeypatch.setattr(guard.socket, "getaddrinfo", two)
    assert (await _post(f"http://two.example:{port}/hook")).received


async def test_no_connection_is_used_for_a_second_post(receiver):
    peers = []

    async def handle(reader, writer):
        peers.append(writer.get_extra_info("peername"))
        while await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(2)
            writer.write(b"HTTP/1.1 200 x\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()

    async def quietly(reader, writer):
        try:
            await handle(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, guard.client() as client:
        poster = guard.Poster(client, allow_private=True)
        assert (await poster.post(url, b"{}", {})).received
        assert (await poster.post(url, b"{}", {})).received
    assert len(set(peers)) == 2


async def test_names_are_looked_up_on_threads_of_their_own(monkeypatch):
    looked_up = []

    def resolve(host, *_args, **_options):
        looked_up.append((host, threading.current_thread().name))
        raise OSError("no such name")

    monkeypatch.setattr(guard.socket, "getaddrinfo", resolve)
    async with guard.client() as client:
        answer = await guard.Poster(client, allow_private=True).post("http://hook.example/", b"{}", {})
    assert answer.failure == "no such name"
    ((host, thread),) = looked_up
    assert host == "hook.example"
    assert thread.startswith("docferry-names")
