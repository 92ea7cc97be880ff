"""The gateway's fixtures: a server with HTTP on a free port, HTTP callers of tenants of their own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio

from docferry.document import Line, Page, Region, RegionType
from tests.cloud.service.conftest import certificate, make_envelope, make_part, postgres, reading, small_png, until
from tests.cloud.service.running import DEADLINE, Caller, EchoEngine, Running, running_server

__all__ = ["certificate", "make_envelope", "make_part", "postgres", "reading", "small_png", "until"]

TABLE = "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea &amp; cake</td><td>9.00</td></tr></table>"


class ReadingEngine(EchoEngine):
    """Reads the same receipt off every picture; keeps what it was given."""

    name = "reading"

    def __init__(self, hook=None):
        super().__init__(hook)
        self.given = []

    def read(self, page, effort, cancelled):
        self.given.append(page)
        read = super().read(page, effort, cancelled)
        if page.reading is not None:
            return read
        texts = ("Corner <b>Shop</b>", "Invoice No: 4711", "Date: 2024-03-12", "Total: 9.00")
        lines = tuple(
            Line(f"r1.l{n}", text, _place(n), 0.99, confidence=0.98, provenance="double@1")
            for n, text in enumerate(texts, 1)
        )
        text = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.6, 0.5), 0, lines=lines)
        table = Region("r2", RegionType.TABLE, (0.1, 0.6, 0.6, 0.9), 1, html=TABLE)
        return Page(800, 1000, (text, table))


def _place(number):
    top, bottom = number / 10, number / 10 + 0.05
    return ((0.1, top), (0.6, top), (0.6, bottom), (0.1, bottom))


@dataclass
class Http:
    """A running server, an HTTP client with the key of one device, and the same device over gRPC."""

    service: Running
    engine: ReadingEngine
    client: httpx.AsyncClient
    caller: Caller

    @property
    def url(self) -> str:
        return self.service.server.http_address

    def other(self) -> httpx.AsyncClient:
        """A client of another tenant."""
        return client_of(self.url, self.service.caller().token)

    def nobody(self) -> httpx.AsyncClient:
        """A client without a key."""
        return client_of(self.url)


def client_of(url: str, token: str = "") -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=DEADLINE, trust_env=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory) -> AsyncIterator[tuple[Running, ReadingEngine]]:
    engine = ReadingEngine()
    folder = tmp_path_factory.mktemp("gateway")
    async with running_server(folder, lambda: engine, http_port=0) as service:
        yield service, engine


@pytest_asyncio.fixture(loop_scope="module")
async def http(server) -> AsyncIterator[Http]:
    """HTTP in a tenant of the test's own."""
    service, engine = server
    caller = service.caller()
    async with client_of(service.server.http_address, caller.token) as client:
        yield Http(service, engine, client, caller)


@pytest.fixture(scope="session")
def reading_engine():
    return ReadingEngine
