"""Channel options for both ends, in one place: a keepalive that disagrees with its peer is a common outage.

The client pings every 30 s, also without calls, and gives a ping 10 s: so long a link may be silent before it is given
up. The server allows a ping every 20 s. An attempt to connect has 10 s, and the next one follows within 15 s (gRPC adds
a fifth at most): so the client is back within 60 s of the link's return, whether packets were refused or vanished.
Formula for the server side: gRPC closes a connection with ENHANCE_YOUR_CALM when pings come faster than
`min_recv_ping_interval_without_data` (grpc/doc/keepalive.md); for the pause between attempts
grpc/doc/connection-backoff.md. `grpc.keepalive_timeout_ms` alone does not end a silent link: gRPC core (1.85) then
waits for its own `grpc.http2.ping_timeout_ms`, 60 s, so both are set.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
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

STREAM_PAUSE_S = 10.0
"""Longest pause before a broken stream is asked for again."""

_MAX_MESSAGE_BYTES = MAX_ENVELOPE_BYTES + (64 << 10)
_MAX_ANSWER_BYTES = 16 << 20

Options = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """How soon a link is known to be dead and tried again, in seconds. Both ends must hold the same.

    The defaults are for service; tests take shorter ones.

    Attributes:
        ping: Pause between two keepalive pings.
        pong: How long a ping may stay unanswered.
        connect: How long an attempt to connect may take.
        first_pause, longest_pause: From the beginning of one attempt to connect to that of the next.
    """

    ping: float = 30.0
    pong: float = 10.0
    connect: float = 10.0
    first_pause: float = 0.5
    longest_pause: float = 15.0

    @property
    def silent(self) -> float:
        """How long a link may be silent before it is given up, at most."""
        return self.ping + self.pong

    @property
    def back_within(self) -> float:
        """From the link's return to a stream that runs again, at most.

        The link may come back unnoticed (first case), or in the middle of an attempt whose packets were lost; gRPC
        spreads the pause by a fifth.
        """
        return max(self.silent, self.connect + 1.2 * self.longest_pause) + STREAM_PAUSE_S


def client_options(times: LinkTimes | None = None) -> Options:
    """Options of every client channel."""
    times = times or LinkTimes()
    return [
        ("grpc.keepalive_time_ms", _ms(times.ping)),
        ("grpc.keepalive_timeout_ms", _ms(times.pong)),
        ("grpc.http2.ping_timeout_ms", _ms(times.pong)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", _ms(times.first_pause)),
        # The time an attempt may take, for all its name says.
        ("grpc.min_reconnect_backoff_ms", _ms(times.connect)),
        ("grpc.max_reconnect_backoff_ms", _ms(times.longest_pause)),
        ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
    ]


def server_options(times: LinkTimes | None = None) -> Options:
    """Options of every server."""
    times = times or LinkTimes()
    allowed = _ms(times.ping * 2 / 3)
    return [
        ("grpc.keepalive_time_ms", _ms(times.ping)),
        ("grpc.keepalive_timeout_ms", _ms(times.pong)),
        ("grpc.http2.ping_timeout_ms", _ms(times.pong)),
        ("grpc.http2.min_ping_interval_without_data_ms", allowed),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", allowed),
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_ANSWER_BYTES),
        ("grpc.so_reuseport", 0),
    ]


def open_channel(
    target: str, *, token: str = "", ca: Path | None = None, times: LinkTimes | None = None
) -> grpc.aio.Channel:
    """A channel to `target` (HOST:PORT), with TLS where `ca` is given or a token would cross a network in the clear.

    Raises:
        ConfigurationError: `target` has no port, or the CA file cannot be read.
    """
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(f"{target!r} is not an address", remedy="give HOST:PORT, e.g. 127.0.0.1:50051")
    if ca is None and (not token or is_loopback(host)):
        return grpc.aio.insecure_channel(target, options=client_options(times))
    try:
        roots = ca.read_bytes() if ca is not None else None
    except OSError as error:
        raise ConfigurationError(
            f"{ca}: cannot be read: {error.strerror}", remedy="give the CA certificate as a PEM file"
        ) from None
    return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(roots), options=client_options(times))


def call_metadata(token: str) -> tuple[tuple[str, str], ...]:
    """Metadata that authenticates a call; empty without a token."""
    return (("authorization", f"Bearer {token}"),) if token else ()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine only."""
    if host in {"localhost", "ip6-localhost"}:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
