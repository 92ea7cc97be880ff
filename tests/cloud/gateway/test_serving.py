"""Servers with other settings, and the end of one: each test starts its own."""

import asyncio
import base64
import json
import socket
import ssl
import threading

import httpx

from docferry_cloud.core import Times
from docferry_cloud.gateway.server import _listener
from docferry_cloud.server import CloudServer
from docferry_cloud.settings import CloudSettings
from tests.cloud.gateway.conftest import client_of
from tests.cloud.service.running import QUICK, EchoEngine, running_server


async def test_a_chunked_body_beyond_the_limit_is_answered_with_413(tmp_path):
    async with running_server(tmp_path, EchoEngine, http_port=0, http_body_bytes=1 << 20) as service:

        async def pieces():
            for _ in range(17):
                yield b"x" * 65536

        async with client_of(service.server.http_address, service.caller().token) as client:
            headers = {"content-type": "application/json"}
            answer = await client.post("/v1/read", content=pieces(), headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, 413)


async def test_answers_do_not_wait_for_a_callers_acknowledgement():
    delays = asyncio.Queue()

    async def note(_reader, writer):
        await delays.put(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = _listener("127.0.0.1", 0)
    async with await asyncio.start_server(note, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await delays.get()
        writer.close()


async def test_only_a_named_origin_is_told_that_it_may(tmp_path):
    origin = "https://app.example.com"
    async with (
        running_server(tmp_path, EchoEngine, http_port=0, http_origins=(origin,)) as service,
        client_of(service.server.http_address, service.caller().token) as client,
    ):
        head = {"origin": origin, "sec-fetch-site": "cross-site"}
        asked = head | {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        preflight = await client.options("/v1/analyses", headers=asked)
        assert preflight.headers["access-control-allow-origin"] == origin
        assert (await client.get("/v1/analyses", headers=head)).headers["access-control-allow-origin"] == origin
        other = await client.get("/v1/analyses", headers={"origin": "https://evil.example"})
        assert other.status_code == 403
        assert "access-control-allow-origin" not in other.headers


async def test_without_keys_only_names_of_this_machine_are_answered_to(tmp_path):
    async with (
        running_server(tmp_path, EchoEngine, http_port=0, tokens=()) as service,
        client_of(service.server.http_address) as client,
    ):
        assert (await client.get("/v1/analyses")).status_code == 200
        for name in ("evil.example", "evil.example:8080", "10.0.0.1", "127.0.0.1.evil.example", ""):
            answer = await client.get("/v1/analyses", headers={"host": name})
            assert answer.status_code in {400, 421}, name


async def test_when_the_service_stops_streams_end_and_who_waits_is_told_where_to_go_on(tmp_path, small_png, until):
    hold = threading.Event()
    engine = EchoEngine(lambda page, cancelled: hold.wait(20))
    times = Times(sweep=QUICK.sweep, watch=QUICK.watch, webhook_waits=QUICK.webhook_waits, drain=10.0, health=0.1)
    server = CloudServer(CloudSettings(tmp_path, port=0, http_port=0), engine_factory=lambda: engine, times=times)
    await server.start()
    stopping = None
    try:
        watchers = server._feed._watchers
        async with client_of(server.http_address) as client:
            body = {"image": base64.b64encode(small_png).decode()}
            reading = asyncio.ensure_future(client.post("/v1/read", json=body))

            told = asyncio.Event()

            async def listen():
                async with client.stream("GET", "/v1/events") as events:
                    async for line in events.aiter_lines():
                        if line.startswith("data:"):
                            told.set()

            listening = asyncio.ensure_future(listen())
            await until(lambda: len(watchers.get("local", ())) == 2)
            await until(told.is_set)
            stopping = asyncio.ensure_future(server.stop())
            answer = await reading
            assert answer.status_code == 202
            assert answer.json()["next"]["events"]
            await listening
    finally:
        hold.set()
        await (stopping or server.stop())


async def test_tls_is_spoken_with_the_services_own_certificate(tmp_path, certificate):
    made, key = certificate
    async with running_server(tmp_path, EchoEngine, http_port=0, certificate=made, key=key) as service:
        url = service.server.http_address
        assert url.startswith("https://")
        context = ssl.create_default_context(cafile=made)
        headers = {"authorization": f"Bearer {service.caller().token}"}
        async with httpx.AsyncClient(verify=context, trust_env=False, headers=headers) as client:
            answer = await client.get(f"{url.replace('127.0.0.1', 'localhost')}/v1/analyses")
            assert answer.status_code == 200
            assert json.loads(answer.text) == {}
