"""What is not valid is looked up only so often for one address, and who was valid goes on."""

import asyncio
from contextlib import contextmanager

import grpc
import pytest
import sqlalchemy as sa

from docferry.channel import call_metadata
from docferry.errors import Overloaded, Unauthenticated
from docferry.status import error_from_rpc
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.access.audit import Trail
from docferry_cloud.access.claims import Half
from docferry_cloud.access.gate import Gate
from docferry_cloud.access.keys import Keys
from docferry_cloud.access.limits import CallLimits
from docferry_cloud.access.rules import Scope
from docferry_cloud.access.sessions import PREFIX
from docferry_cloud.access.strangers import MOST_KNOWN, Strangers, network
from tests.cloud.service.running import Caller

HERE, THERE = "ipv4:192.0.2.1:40000", "ipv4:192.0.2.2:40000"
MADE_UP = {
    "key": "dfk_0123456789ab_" + "x" * 43,
    "session": f"{PREFIX}0123456789abcdef_" + "x" * 43,
    "link": f"{Half.LINK}0123456789ab_" + "x" * 43,
}


@pytest.fixture
def keys(world):
    return Keys(world.database)


@pytest.fixture
def gate(world, keys):
    """Lets every address try five times; its bucket does not fill again."""
    strangers = Strangers(CallLimits(5, 5, lambda: 0.0))
    return Gate(world.database, keys, (), CallLimits(0, 1), strangers, Trail(world.database, 90))


@contextmanager
def _reads(world, table):
    """Collects the queries of a table."""
    seen = []

    def note(_connection, _cursor, statement, *_rest):
        if f"FROM {table}" in " ".join(statement.split()):
            seen.append(statement)

    sa.event.listen(world.database._engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(world.database._engine, "before_cursor_execute", note)


async def _outcome(gate, text, peer=HERE):
    try:
        await gate.visitor(call_metadata(text), peer)
    except (Unauthenticated, Overloaded) as error:
        return type(error)
    return "admitted"


@pytest.mark.parametrize(("kind", "table"), [("key", "keys"), ("session", "sessions"), ("link", "claims")])
async def test_what_is_made_up_is_looked_up_so_often_and_then_refused_unseen(world, keys, gate, kind, table):
    keys.create("shop", [Scope.READ])
    text = MADE_UP[kind]
    with _reads(world, table) as before:
        assert {await _outcome(gate, text[:-1] + letter) for letter in "abcde"} == {Unauthenticated}
    with _reads(world, table) as after:
        assert {await _outcome(gate, text[:-1] + letter) for letter in "fghij"} == {Overloaded}
    assert len(before) >= 5
    assert not after
    assert await _outcome(gate, text, THERE) is Unauthenticated


async def test_of_many_at_once_no_more_are_looked_up_than_may(keys, gate):
    keys.create("shop", [Scope.READ])
    outcomes = await asyncio.gather(*(_outcome(gate, f"dfk_{number:012x}_{'x' * 43}") for number in range(40)))
    assert outcomes.count(Unauthenticated) == 5
    assert outcomes.count(Overloaded) == 35


async def test_a_valid_key_goes_on_while_its_address_is_refused(keys, gate):
    key, text = keys.create("shop", [Scope.READ])
    # Valid ones are not counted, however many they are.
    others = [keys.create("shop", [Scope.READ])[1] for _ in range(7)]
    assert {await _outcome(gate, each) for each in (text, *others)} == {"admitted"}
    for _ in range(6):
        last = await _outcome(gate, MADE_UP["key"])
    assert last is Overloaded
    # Whatever else was remembered of it.
    gate._remembered.clear()
    assert await _outcome(gate, text) == "admitted"
    # A key's id alone is no way past, and does not tell whether there is such a key.
    assert await _outcome(gate, text[:-1] + ("A" if text[-1] != "A" else "B")) is Overloaded
    # Once it is revoked it is a stranger like all others.
    keys.revoke(key.key_id)
    gate._remembered.clear()
    assert [await _outcome(gate, text) for _ in range(2)] == [Unauthenticated, Overloaded]


async def test_a_caller_is_told_when_to_try_again(tmp_path, running):
    async with running(tmp_path, tries_per_minute=3) as service:
        caller = service.caller()
        await caller("List", pb.AnalysisServiceListRequest())
        stranger = Caller(service.channel, MADE_UP["key"], "")
        failures = []
        for _ in range(4):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await stranger("List", pb.AnalysisServiceListRequest())
            failures.append(failure.value)
        assert [each.code() for each in failures[:3]] == [grpc.StatusCode.UNAUTHENTICATED] * 3
        refused = error_from_rpc(failures[3])
        assert isinstance(refused, Overloaded)
        assert 0 < refused.retry_after <= 20
        await caller("List", pb.AnalysisServiceListRequest())


def test_what_is_known_is_bounded():
    strangers = Strangers(CallLimits(0, 1))
    for number in range(MOST_KNOWN + 1):
        with strangers.asked(str(number), HERE):
            pass
    assert len(strangers._known) == MOST_KNOWN


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ("ipv4:192.0.2.1:40000", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("ipv6:[2001:db8::1]:40000", "2001:db8::/64"),
        ("ipv6:%5B2001:db8::2%5D:40000", "2001:db8::/64"),
        ("2001:db8::3", "2001:db8::/64"),
        ("ipv6:[::ffff:192.0.2.1]:1", "192.0.2.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:1", "fe80::/64"),
        ("unix:", "unix:"),
        ("", ""),
    ],
)
def test_an_address_is_told_without_its_port_and_by_its_network(peer, name):
    assert network(peer) == name
