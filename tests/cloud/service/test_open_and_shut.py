"""When the service asks for keys at all, what it refuses to bind, and what a key may use up."""

import json
import sqlite3
from dataclasses import replace

import grpc
import pytest
from typer.testing import CliRunner

from docferry.channel import call_metadata, open_channel
from docferry.errors import ConfigurationError, InputError, Overloaded, Unauthenticated, Unavailable
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.access.audit import MOST_WAITING, STRANGERS, Entry, Trail
from docferry_cloud.access.gate import REMEMBERED_S, Gate
from docferry_cloud.access.keys import Keys, parsed
from docferry_cloud.access.limits import MOST_BUCKETS, CallLimits
from docferry_cloud.access.rules import Scope
from docferry_cloud.access.strangers import Strangers
from docferry_cloud.commands import cloud_app
from docferry_cloud.database import Database
from docferry_cloud.rows import Limits
from docferry_cloud.server import CloudServer
from docferry_cloud.settings import CloudSettings
from docferry_cloud.store import Store
from tests.cloud.service.running import Caller

DAY = 86_400_000_000


async def test_loopback_is_open_until_the_first_key_and_never_again(tmp_path, running, make_envelope, until):
    async with running(tmp_path, tokens=()) as service:
        caller = service.caller()
        caller.token = ""
        await caller.submit(make_envelope())
        keys = Keys(service.server._core.database)
        key, text = keys.create("shop", [Scope.SUBMIT, Scope.READ])

        async def shut():
            try:
                await caller("List", pb.AnalysisServiceListRequest())
            except grpc.aio.AioRpcError as failure:
                return failure.code() is grpc.StatusCode.UNAUTHENTICATED

        await until(shut)
        keys.revoke(key.key_id)
        assert await shut()
        with_key = service.caller()
        with_key.token = text

        async def refused():
            try:
                await with_key.submit(make_envelope())
            except grpc.aio.AioRpcError as failure:
                return failure.code() is grpc.StatusCode.UNAUTHENTICATED

        await until(refused)
        assert REMEMBERED_S <= 5


async def test_an_address_that_others_reach_is_not_served_without_keys(tmp_path, echo_engine, certificate):
    made, key = certificate
    settings = CloudSettings(directory=tmp_path, host="0.0.0.0", port=0, certificate=made, key=key)
    server = CloudServer(settings, engine_factory=echo_engine)
    with pytest.raises(ConfigurationError, match="keys create"):
        await server.start()
    server._core.database.close()


async def test_with_keys_and_tls_a_public_address_is_served(tmp_path, running, certificate, make_envelope):
    made, key = certificate
    database = Database(tmp_path / "store.sqlite")
    database.create()
    _, text = Keys(database).create("shop", [Scope.SUBMIT])
    database.close()
    async with running(tmp_path, tokens=(), host="0.0.0.0", certificate=made, key=key) as service:
        port = service.address.rpartition(":")[2]
        async with open_channel(f"localhost:{port}", ca=made) as channel:
            assert (await Caller(channel, text, "shop").submit(make_envelope())).analysis_id
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await Caller(channel, "", "shop").submit(make_envelope())
            assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED


def _gate(world, keys):
    unlimited = CallLimits(0, 1)
    return Gate(world.database, keys, (), unlimited, Strangers(unlimited), Trail(world.database, 90))


async def test_every_front_end_sees_a_revocation_by_itself(world, until):
    keys = Keys(world.database)
    gates = [_gate(world, keys) for _ in range(2)]
    key, text = keys.create("shop", [Scope.READ])

    async def admitted() -> list[bool]:
        found = []
        for gate in gates:
            try:
                await gate.visitor(call_metadata(text), "")
                found.append(True)
            except Unauthenticated:
                found.append(False)
        return found

    async def none() -> bool:
        return not any(await admitted())

    assert await admitted() == [True, True]
    keys.revoke(key.key_id)
    await until(none)


async def test_ids_that_nobody_issued_do_not_fill_the_memory(world):
    keys = Keys(world.database)
    keys.create("shop", [Scope.READ])
    gate = _gate(world, keys)
    for number in range(300):
        with pytest.raises(Unauthenticated):
            await gate.visitor(call_metadata(f"dfk_{number:012x}_{'x' * 43}"), "")
    assert not gate._remembered


async def test_a_key_may_not_call_more_often_than_it_is_allowed(tmp_path, running, reason_of):
    async with running(tmp_path, calls_per_minute=1, burst=3) as service:
        caller = service.caller()
        for _ in range(3):
            await caller("List", pb.AnalysisServiceListRequest())
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller("List", pb.AnalysisServiceListRequest())
        assert reason_of(failure.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        # Another's key has its own.
        await service.caller()("List", pb.AnalysisServiceListRequest())


def test_a_bucket_fills_at_its_rate_says_when_and_holds_no_more_than_its_burst():
    now = [0.0]
    limits = CallLimits(60, 2, lambda: now[0])
    limits.take("key")
    limits.take("key")
    with pytest.raises(Overloaded) as refused:
        limits.take("key")
    assert refused.value.retry_after == pytest.approx(1)
    now[0] += refused.value.retry_after
    limits.take("key")
    now[0] += 1000
    limits.take("key")
    limits.take("key")
    with pytest.raises(Overloaded):
        limits.take("key")


def test_buckets_are_bounded_and_the_longest_rested_goes():
    limits = CallLimits(60, 1, lambda: 0.0)
    for number in range(MOST_BUCKETS + 1):
        limits.take(str(number))
    assert len(limits._buckets) == MOST_BUCKETS
    assert "0" not in limits._buckets


def test_a_tenants_day_is_counted_with_its_documents_and_ends_at_midnight(world):
    store = Store(world.database, world.log, world.blobs, Limits(documents_per_day=2), world.clock)
    world.now = world.now // DAY * DAY + DAY - 10_000_000
    store.take(world.submission())
    again = world.submission()
    store.take(again)
    store.take(again)
    with pytest.raises(Overloaded) as refused:
        store.take(world.submission())
    assert refused.value.retry_after == pytest.approx(10)
    world.now += 10_000_000
    store.take(world.submission())


def test_bytes_count_with_those_that_are_only_announced(world):
    store = Store(world.database, world.log, world.blobs, Limits(mb_per_day=1), world.clock)
    world.body = bytes(600_000)
    store.take(world.submission())
    with pytest.raises(Overloaded, match="1 MB a day"):
        store.take(world.submission())


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"tenant": "a/b"}, "tenant"),
        ({"scopes": []}, "allows nothing"),
        ({"scopes": [Scope.DEVICE]}, "--device"),
        ({"device": "x" * 65}, "device"),
        ({"days": 0}, "expire"),
        ({"days": float("nan")}, "expire"),
    ],
)
def test_a_key_that_cannot_be_is_not_made(world, changes, named):
    wanted = {"tenant": "shop", "scopes": [Scope.READ]} | changes
    with pytest.raises(InputError, match=named):
        Keys(world.database).create(**wanted)
    assert not Keys(world.database).exist()


def test_no_secret_is_in_the_database(tmp_path):
    database = Database(tmp_path / "store.sqlite")
    database.create()
    _, text = Keys(database).create("shop", [Scope.READ])
    database.close()
    _, secret = parsed(text)
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        assert secret not in "\n".join(connection.iterdump())
    connection.close()


async def test_when_the_audit_log_cannot_be_written_calls_are_refused_and_nothing_waits_for_ever(world):
    trail = Trail(world.database, 90)
    entry = Entry(1, "shop", "key", "AnalysisService.Get", "", "OK", "ipv4:127.0.0.1:1")
    for _ in range(MOST_WAITING):
        trail.note(entry)
    with pytest.raises(Unavailable, match="audit log"):
        trail.check_room()
    for _ in range(2 * MOST_WAITING):
        trail.note(entry)
    assert len(trail._waiting) == 2 * MOST_WAITING
    await trail.flush()
    trail.check_room()
    trail.clear()
    assert not trail.read()


async def test_a_flood_of_strangers_neither_fills_the_audit_log_nor_takes_the_room_of_customers(world):
    trail = Trail(world.database, 90)
    stranger = Entry(world.database.now(), "", "", "AnalysisService.Get", "", "UNAUTHENTICATED", "ipv4:192.0.2.1:1")
    for _ in range(3 * MOST_WAITING):
        trail.note(stranger)
    trail.check_room()
    trail.note(replace(stranger, tenant="shop", outcome="OK"))
    await trail.flush()
    assert len(trail.read(limit=10_000)) == STRANGERS + 1


async def test_one_entry_that_no_database_takes_does_not_hold_up_the_others(world):
    trail = Trail(world.database, 90)
    good = Entry(world.database.now(), "shop", "key", "AnalysisService.Get", "", "OK", "")
    write = trail.write

    def picky(batch):
        if any(entry.who == "bad" for entry in batch):
            raise InputError("the text holds a NUL")
        write(batch)

    trail.write = picky
    for entry in (good, replace(good, who="bad"), good):
        trail.note(entry)
    await trail.flush()
    assert [entry.who for entry in trail.read()] == ["key", "key"]


def test_keys_and_the_audit_log_are_handled_by_commands(tmp_path):
    config = tmp_path / "cloud.toml"
    config.write_text(f'[data]\ndirectory = "{tmp_path / "data"}"\n')

    def run(*words: str) -> list[dict]:
        done = CliRunner().invoke(cloud_app, [*words, "--config", str(config), "--json"])
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]

    (made,) = run("keys", "create", "--tenant", "shop", "--scope", "read", "--scope", "submit", "--expires-days", "30")
    assert parsed(made["key"])[0] == made["key_id"]
    assert made["scopes"] == ["read", "submit"]
    (listed,) = run("keys", "list")
    assert "key" not in listed
    assert listed["valid"]
    (revoked,) = run("keys", "revoke", made["key_id"])
    assert revoked["revoke_time"]
    assert [row["valid"] for row in run("keys", "list", "--tenant", "shop")] == [False]
    assert run("keys", "list", "--tenant", "other") == []
    recorded = [(row["tenant"], row["who"], row["rpc"]) for row in run("audit")]
    assert recorded == [("shop", "operator", f"keys.{what} {made['key_id']}") for what in ("create", "revoke")]
    assert run("audit", "--tenant", "other") == []
