"""What is not valid costs a look at the database, so one address may try only so often.

What was valid is known again, so that a flood from the same address, a proxy's for instance, does not lock it out.
Known is the whole text with its secret: whether an id exists must not be seen from who is still answered.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from docferry.errors import Unauthenticated
from docferry_cloud.access.limits import CallLimits

MOST_KNOWN = 10_000
_IPV6_PREFIX = 64
"""One customer has at least so many addresses of IPv6 to choose from."""


class Strangers:
    """Counts what is tried and is not valid, by address; a front end counts what comes to itself.

    Args:
        limits: By addresses.
    """

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._known: dict[bytes, None] = {}

    @contextmanager
    def asked(self, given: str, peer: str) -> Iterator[None]:
        """While a key, session or link is looked up; the block raises Unauthenticated if it is not valid.

        Args:
            given: Its text.
            peer: Where it came from, as gRPC says it, or an address alone.

        Raises:
            Overloaded: The address has tried too often, and the text was not found valid before.
        """
        name, address = hashlib.sha256(given.encode()).digest(), network(peer)
        stranger = name not in self._known
        if stranger:
            # Taken before the look-up and given back after it: of many at once no more get through than may.
            self._limits.take(address)
        try:
            yield
        except Unauthenticated:
            self._known.pop(name, None)
            raise
        if stranger:
            self._limits.give_back(address)
        self._known.pop(name, None)
        self._known[name] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def network(peer: str) -> str:
    """The address in a peer's name, without its port; of IPv6 the network; what holds no address as it is."""
    host = unquote(peer)
    if host.startswith(("ipv4:", "ipv6:")):
        host = host[5:].rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ipaddress.IPv6Network((address, _IPV6_PREFIX), strict=False))
