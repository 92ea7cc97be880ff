"""The console's fixtures: a server with HTTP and keys, and browsers that have logged in."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest_asyncio

from docferry_cloud.access.rules import Scope
from tests.cloud.gateway.conftest import TABLE, ReadingEngine
from tests.cloud.service.conftest import make_envelope, make_part, postgres, reading, small_png
from tests.cloud.service.running import DEADLINE, Caller, Running, running_server

__all__ = ["TABLE", "make_envelope", "make_part", "postgres", "reading", "small_png"]


def token_in(page: str) -> str:
    """The token of the forms in a page."""
    return re.search(r'name="token" value="([0-9a-f]{64})"', page)[1]


@dataclass
class Browser:
    """A browser as far as the console needs one: cookies, and forms that come from a page."""

    client: httpx.AsyncClient

    async def get(self, path: str, **options) -> httpx.Response:
        return await self.client.get(f"/console{path}", **options)

    async def post(self, path: str, page: str = "", **fields) -> httpx.Response:
        """Send a form from the page at `page`, or from the place it is sent to."""
        token = token_in((await self.get(page or path)).text)
        return await self.send(path, token=token, **fields)

    async def send(self, path: str, **fields) -> httpx.Response:
        origin = str(self.client.base_url).rstrip("/")
        return await self.client.post(f"/console{path}", data=fields, headers={"origin": origin})

    async def log_in(self, key: str) -> httpx.Response:
        return await self.post("/login", key=key)


@dataclass
class Place:
    """A running service, one of its tenants' devices, and that tenant's keys."""

    service: Running
    caller: Caller

    def key(self, *scopes: Scope, tenant: str = "") -> str:
        return self.service.server._keys.create(tenant or self.caller.tenant, scopes)[1]

    @asynccontextmanager
    async def browser(self, key: str = "") -> AsyncIterator[Browser]:
        url = self.service.server.http_address
        async with httpx.AsyncClient(base_url=url, timeout=DEADLINE, trust_env=False) as client:
            browser = Browser(client)
            if key:
                assert (await browser.log_in(key)).status_code == 303
            yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory) -> AsyncIterator[Running]:
    async with running_server(tmp_path_factory.mktemp("console"), ReadingEngine, http_port=0) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def place(server) -> Place:
    """A tenant of the test's own."""
    return Place(server, server.caller())


@pytest_asyncio.fixture(loop_scope="module")
async def admin(place) -> AsyncIterator[Browser]:
    """A browser that has logged in with a key that may do everything."""
    async with place.browser(place.key(Scope.ADMIN)) as browser:
        yield browser
