"""Web Push before and after it is set up, the key that all processes share, and where it may not post to."""

import asyncio
from dataclasses import replace

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from docferry.errors import ConfigurationError
from docferry.v1 import subscription_service_pb2 as pb
from docferry_cloud.sinks.vapid import open_vapid
from tests.cloud.service.browser import Browser


def _request(url: str) -> pb.SubscriptionServiceCreateRequest:
    browser = Browser()
    return pb.SubscriptionServiceCreateRequest(
        subscription=pb.Subscription(url=url, kind=pb.Subscription.KIND_WEB_PUSH),
        push_keys=pb.PushKeys(p256dh=browser.p256dh, auth=browser.auth),
    )


async def test_without_a_contact_web_push_is_refused_by_name(running, tmp_path, reason_of):
    async with running(tmp_path) as service:
        caller = service.caller()
        for name, request in (
            ("Create", _request("https://push.example/x")),
            ("GetPushKey", pb.SubscriptionServiceGetPushKeyRequest()),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await caller(name, request)
            assert reason_of(failure.value) == (grpc.StatusCode.FAILED_PRECONDITION, "CONFIGURATION")


async def test_a_private_endpoint_is_never_posted_to(running, quick_times, tmp_path, make_envelope, until):
    hits = []

    async def handle(reader, writer):
        hits.append(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://localhost:{server.sockets[0].getsockname()[1]}/"
    settings = {"push_contact": "mailto:ops@example.com", "allow_private": False}
    async with server, running(tmp_path, times=replace(quick_times, webhook_waits=()), **settings) as service:
        caller = service.caller()
        await caller("Create", _request(url))
        await caller.submit(make_envelope())

        async def dead():
            request = pb.SubscriptionServiceListDeliveriesRequest(dead_only=True)
            return (await caller("ListDeliveries", request)).deliveries

        await until(dead)
        assert "no public address" in (await dead())[0].failure
    assert not hits


def test_all_processes_of_one_database_share_a_key(world):
    first, second = (open_vapid(world.database, None, "") for _ in range(2))
    assert first.public == second.public


def test_a_pem_file_goes_before_the_databases_own(world, tmp_path):
    key, file = ec.generate_private_key(ec.SECP256R1()), tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert open_vapid(world.database, file, "").key.private_numbers() == key.private_numbers()


def test_a_file_without_such_a_key_is_refused_by_name(world, tmp_path):
    file = tmp_path / "key.pem"
    with pytest.raises(ConfigurationError, match="cannot be read"):
        open_vapid(world.database, file, "")
    other = ed25519.Ed25519PrivateKey.generate()
    for content in (b"nonsense", other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())):
        file.write_bytes(content)
        with pytest.raises(ConfigurationError, match="P-256"):
            open_vapid(world.database, file, "")
