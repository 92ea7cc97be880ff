"""Channel options for both ends, in one place: a keepalive that disagrees with its peer is a common outage.

The client pings every 30 s, also without calls, and gives a ping 10 s; the server allows a ping every 20 s. After
a broken link the client tries again at least every 30 s, so it is back well within 60 s of the link's return.
Formula for the server side: gRPC closes a connection with ENHANCE_YOUR_CALM when pings come faster than
`min_recv_ping_interval_without_data` (grpc/doc/keepalive.md).
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

import grpc
import grpc.aio

from docferry.errors import ConfigurationError

PROTOCOL_VERSION = 1
MAX_ENVELOPE_BYTES = 1 << 20
"""A serialized envelope stays below this; larger parts go by chunks."""
MAX_CHUNK_BYTES = 512 << 10
"""Most bytes of one Supply."""
UNARY_DEADLINE_S = 30.0
"""Deadline of every unary call unless the caller states another."""

WATCH_DEADLINE_S = 35 * 60.0
"""Deadline of a stream of events; the server ends it before that, and the client goes on by its resume token."""

_MAX_MESSAGE_BYTES = MAX_ENVELOPE_BYTES + (64 << 10)
_MAX_ANSWER_BYTES = 16 << 20

Options = list[tuple[str, int]]


def client_options() -> Options:
    """Options of every client channel."""
    return [
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", 500),
        ("grpc.max_reconnect_backoff_ms", 30_000),
        ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
    ]


def server_options() -> Options:
    """Options of every server."""
    return [
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 20_000),
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_ANSWER_BYTES),
        ("grpc.so_reuseport", 0),
    ]


def open_channel(target: str, *, token: str = "", ca: Path | None = None) -> grpc.aio.Channel:
    """A channel to `target` (HOST:PORT), with TLS where `ca` is given or a token would cross a network in the clear.

    Raises:
        ConfigurationError: `target` has no port, or the CA file cannot be read.
    """
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(f"{target!r} is not an address", remedy="give HOST:PORT, e.g. 127.0.0.1:50051")
    if ca is None and (not token or is_loopback(host)):
        return grpc.aio.insecure_channel(target, options=client_options())
    try:
        roots = ca.read_bytes() if ca is not None else None
    except OSError as error:
        raise ConfigurationError(
            f"{ca}: cannot be read: {error.strerror}", remedy="give the CA certificate as a PEM file"
        ) from None
    return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(roots), options=client_options())


def call_metadata(token: str) -> tuple[tuple[str, str], ...]:
    """Metadata that authenticates a call; empty without a token."""
    return (("authorization", f"Bearer {token}"),) if token else ()


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine only."""
    if host in {"localhost", "ip6-localhost"}:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
