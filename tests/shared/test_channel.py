"""Both ends of the link agree, because they take their options from one module."""

import ast
import inspect

import pytest

from docferry import async_client
from docferry.channel import LinkTimes, call_metadata, client_options, is_loopback, open_channel, server_options
from docferry.errors import ConfigurationError


def test_the_server_allows_what_the_client_does() -> None:
    sends, takes = dict(client_options()), dict(server_options())
    assert sends["grpc.keepalive_time_ms"] > takes["grpc.http2.min_recv_ping_interval_without_data_ms"]
    assert sends["grpc.http2.max_pings_without_data"] == 0
    assert sends["grpc.keepalive_permit_without_calls"] == 1
    # gRPC's own limit for an unanswered ping is 60 s, whatever the keepalive's is.
    for end in (sends, takes):
        assert end["grpc.http2.ping_timeout_ms"] == end["grpc.keepalive_timeout_ms"]
    assert sends["grpc.max_receive_message_length"] == takes["grpc.max_send_message_length"]


def test_by_its_times_a_link_is_back_within_a_minute_of_its_return() -> None:
    assert LinkTimes().silent < 60
    assert LinkTimes().back_within <= 60
    assert dict(client_options())["grpc.max_reconnect_backoff_ms"] == LinkTimes().longest_pause * 1000


def test_every_call_of_the_client_has_a_deadline() -> None:
    tree = ast.parse(inspect.getsource(async_client))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(keyword.arg == "metadata" for keyword in node.keywords)
        # Our own way to a call, which is one of the others.
        and ast.unparse(node.func) != "self._call"
    ]
    assert len(calls) == 2
    for call in calls:
        assert any(keyword.arg == "timeout" for keyword in call.keywords), ast.unparse(call)


@pytest.mark.parametrize("target", ["nowhere", ":50051", "host:", "host:port"])
def test_an_address_without_host_or_port_is_named(target: str) -> None:
    with pytest.raises(ConfigurationError, match="not an address"):
        open_channel(target)


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("[::1]", True), ("localhost", True), ("10.0.0.1", False), ("kiosk", False)],
)
def test_loopback_is_this_machine_only(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_a_token_goes_along_as_a_bearer_and_nothing_goes_without_one() -> None:
    assert call_metadata("secret") == (("authorization", "Bearer secret"),)
    assert call_metadata("") == ()
