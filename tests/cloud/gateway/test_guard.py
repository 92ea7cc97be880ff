"""What holds for every request: bounds, browsers of other sites, names of this machine, the end of the service."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from docferry_cloud.gateway import server as gateway_server
from docferry_cloud.gateway.guard import Guard, Limits

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def known(_metadata) -> None:
    """Everyone is let in."""


@asynccontextmanager
async def connection(url):
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def raw(url, request: bytes) -> bytes:
    """The first bytes of the answer to bytes sent as they are."""
    async with asyncio.timeout(20), connection(url) as (reader, writer):
        writer.write(request)
        return await reader.read(4096)


async def test_a_body_that_is_said_to_be_too_large_is_refused_unread(http):
    head = b"POST /v1/read HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n"
    assert (await raw(http.url, head)).startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_does_not_say_its_size_is_counted_as_it_comes():
    taken = []

    async def app(scope, receive, send):
        while (message := await receive()).get("more_body"):
            taken.append(len(message["body"]))

    async def endless():
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    guard = Guard(app, limits=Limits(body_bytes=10_000), knock=known, origins=(), own_machine=False)
    scope = {"type": "http", "method": "POST", "headers": [], "scheme": "http"}
    with pytest.raises(Exception, match="exceeds 10000 bytes"):
        await guard(scope, endless, None)
    assert sum(taken) == 10_000


async def test_a_page_that_may_call_is_bounded_like_everyone_else():
    sent = []

    async def send(message):
        sent.append(message)

    origin = "https://app.example.com"
    guard = Guard(None, limits=Limits(body_bytes=10), knock=known, origins=(origin,), own_machine=False)
    headers = [(b"origin", origin.encode()), (b"content-length", b"11")]
    await guard({"type": "http", "method": "POST", "headers": headers, "scheme": "http"}, None, send)
    assert sent[0]["status"] == 413


async def test_a_body_that_stays_out_is_given_up():
    async def app(scope, receive, send):
        await receive()

    async def silent():
        await asyncio.Event().wait()

    guard = Guard(app, limits=Limits(body_s=0.01), knock=known, origins=(), own_machine=False)
    scope = {"type": "http", "method": "POST", "headers": [], "scheme": "http"}
    with pytest.raises(Exception, match=r"did not come within 0\.01 s"):
        await guard(scope, silent, None)


async def test_large_bodies_are_held_a_few_at_a_time():
    inside, leave = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        await receive()
        inside.set()
        await leave.wait()

    async def large():
        return {"type": "http.request", "body": b"x" * (2 << 20), "more_body": False}

    guard = Guard(app, limits=Limits(large_bodies=1), knock=known, origins=(), own_machine=False)
    scope = {"type": "http", "method": "POST", "headers": [], "scheme": "http"}
    first = asyncio.ensure_future(guard(scope, large, None))
    await inside.wait()
    with pytest.raises(Exception, match="large bodies are being taken in"):
        await guard(scope, large, None)
    leave.set()
    await first
    await guard(scope, large, None)


async def test_a_request_whose_head_trickles_is_cut_off(http, monkeypatch):
    monkeypatch.setattr(gateway_server, "HEADERS_S", 0.05)
    assert await raw(http.url, b"GET /v1/analyses HTTP/1.1\r\nhost:") == b""
    assert await raw(http.url, b"") == b""
    # Also the second one on a connection.
    async with asyncio.timeout(20), connection(http.url) as (reader, writer):
        writer.write(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(b"GET /v1/analyses HTTP/1.1\r\nhost:")
        assert await reader.read() == b""


@pytest.mark.parametrize(
    "request_bytes",
    [b"\x16\x03\x01\x02\x00\x01", b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n"],
)
async def test_what_is_no_http_is_a_bad_request(http, request_bytes):
    assert (await raw(http.url, request_bytes)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_without_an_end_is_refused(http):
    answer = await raw(http.url, b"GET / HTTP/1.1\r\nx: " + b"y" * 200_000)
    assert answer.startswith(b"HTTP/1.1 4") or answer == b""


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
async def test_pages_of_other_sites_may_not_call(http, headers):
    answer = await http.client.get("/v1/analyses", headers=headers)
    assert answer.status_code == 403
    sent = await http.client.post("/v1/read", json={"image": "AAAA"}, headers=headers | {"sec-fetch-mode": "navigate"})
    assert sent.status_code == 403


async def test_a_link_on_another_site_may_be_followed(http):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await http.client.get("/v1/analyses", headers=headers)).status_code == 200


@pytest.mark.parametrize("head", ["content-length: 30000000", "transfer-encoding: chunked"])
@pytest.mark.parametrize("key", ["", "authorization: Bearer nobody's\r\n"])
async def test_a_strangers_body_is_refused_before_any_of_it_is_taken_in(http, head, key):
    request = f"POST /v1/analyses HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{key}{head}\r\n\r\n"
    answer = await raw(http.url, request.encode())
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer.lower()


async def test_a_request_message_as_json_is_bounded_by_what_the_message_may_have(http):
    answer = await http.client.post("/v1/analyses", json={"envelope": {"file_name": "x" * (3 << 20)}})
    assert answer.status_code == 413
