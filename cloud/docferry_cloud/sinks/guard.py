"""Posts to addresses that tenants give: never into a private network, never anywhere but where was looked.

A host is resolved once, its addresses are checked, and the connection goes to one that passed: a name cannot point
elsewhere between check and use. Redirects are not followed. No connection is used twice: a second host on the same
address would else be spoken to over a connection whose certificate was checked for the first.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from docferry.errors import DocferryError, Unavailable
from docferry_cloud import webhook_format
from docferry_cloud.sinks.port import ATTEMPT_S
from docferry_cloud.threads import Threads

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
_DOCUMENTATION = ipaddress.IPv6Network("3fff::/20")
_CONNECT_S = 5.0
_MAX_ADDRESSES = 4
_NAME_THREADS = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status (0 if nothing did), the seconds that Retry-After asks for, and why in words."""

    status: int
    retry_after: float = 0.0
    failure: str = ""

    @property
    def received(self) -> bool:
        """Only 2xx is success; a redirect is not followed and not success."""
        return 200 <= self.status < 300


class Poster:
    """Makes guarded posts.

    Args:
        client: See `client`.
        allow_private: Let posts go to private and loopback addresses.
        names: Threads that look names up: a resolver that hangs holds up nobody else's threads. Close them.
        timeout_s: The longest post, from the look-up of the name to the answer's head.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        allow_private: bool,
        names: Threads | None = None,
        timeout_s: float = ATTEMPT_S,
    ) -> None:
        self._client = client
        self._names = names or name_threads()
        self._allow_private = allow_private
        self._timeout_s = timeout_s

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> Answer:
        """Post once; failures are the answer, not an exception."""
        try:
            # httpx times single reads and writes; a receiver that drips bytes must end too.
            async with asyncio.timeout(self._timeout_s):
                return await self._post(httpx.URL(url), content, headers)
        except TimeoutError:
            return Answer(0, failure=f"no answer within {self._timeout_s:g} s")
        # A ValueError comes from a host that no resolver takes.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, DocferryError) as error:
            return Answer(0, failure=str(error) or type(error).__name__)

    async def _post(self, url: httpx.URL, content: bytes, headers: Mapping[str, str]) -> Answer:
        addresses = await self._addresses(url)
        for address in addresses[:-1]:
            try:
                return await self._post_to(address, url, content, headers)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._post_to(addresses[-1], url, content, headers)

    async def _post_to(self, address: str, url: httpx.URL, content: bytes, headers: Mapping[str, str]) -> Answer:
        request = self._client.build_request(
            "POST",
            url.copy_with(host=address),
            content=content,
            headers={**headers, "host": url.netloc.decode("ascii")},
            # The certificate is checked for the name, though the connection goes to the address.
            extensions={
                "sni_hostname": url.host,
                "timeout": httpx.Timeout(self._timeout_s, connect=_CONNECT_S).as_dict(),
            },
        )
        # Streamed and closed unread: the body of the answer means nothing and may be endless.
        response = await self._client.send(request, stream=True, follow_redirects=False)
        await response.aclose()
        asked = webhook_format.retry_after(response.headers.get("retry-after"), datetime.now(UTC))
        return Answer(response.status_code, asked, f"HTTP {response.status_code}")

    async def _addresses(self, url: httpx.URL) -> list[str]:
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await self._names.run(socket.getaddrinfo, url.host, port, type=socket.SOCK_STREAM)
        addresses = (str(sockaddr[0]).partition("%")[0] for *_, sockaddr in found)
        usable = [each for each in dict.fromkeys(addresses) if self._allow_private or is_public(each)]
        if not usable:
            raise Unavailable(
                f"{url.host} resolves to no public address", remedy="set webhooks.allow_private to reach private ones"
            )
        return usable[:_MAX_ADDRESSES]


def name_threads() -> Threads:
    """Threads for looking names up."""
    return Threads(_NAME_THREADS, "docferry-names")


def client() -> httpx.AsyncClient:
    """The client for guarded posts: no proxies or credentials from the environment, no redirects, nothing kept open."""
    return httpx.AsyncClient(
        timeout=ATTEMPT_S,
        trust_env=False,
        follow_redirects=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
    )


def is_public(address: str) -> bool:
    """Whether an address is one that everyone can reach; an IPv4 address in IPv6 clothes counts as what it leads to."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return _is_public_v4(ip.ipv4_mapped)
        if ip in _NAT64:
            return _is_public_v4(ipaddress.IPv4Address(ip.packed[12:]))
        if ip.sixtofour is not None and not _is_public_v4(ip.sixtofour):
            return False
        return ip.is_global and ip in _UNICAST and ip not in _DOCUMENTATION
    return _is_public_v4(ip)


def _is_public_v4(ip: ipaddress.IPv4Address) -> bool:
    return ip.is_global and not ip.is_multicast
