"""What the service's tests share: a server on a loopback port, stores, envelopes, pictures, a webhook receiver.

DBOS is a process-wide singleton, so one server runs in a test process at a time: one a module, and every test gets a
tenant of its own on it. Tests that stop or kill the service start their own.
"""

import asyncio
import hashlib
import shutil
import struct
import subprocess
import uuid
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import pytest
import pytest_asyncio

from benchmarks.postgres_server import postgres_server
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry.v1 import (
    envelope_pb2,
)
from docferry_cloud.core import Times
from docferry_cloud.database import Database
from docferry_cloud.rows import NewPart
from docferry_cloud.supply import Chunk, supply
from tests.cloud.service.receiver import Receiver
from tests.cloud.service.running import DEADLINE, QUICK, AskingEngine, Caller, EchoEngine, Running, running_server
from tests.cloud.service.world import World


@pytest.fixture(scope="session")
def running():
    """Starts a server in a folder: `async with running(folder, engine_factory, **settings) as service`."""
    return running_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """Makes empty databases on a real PostgreSQL, and gives their URLs."""
    with postgres_server(durable=False) as new_database:
        yield new_database


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def database_url(request) -> Callable[[], str]:
    """Gives the setting `data.database` of an empty store, of either kind: every promise holds on both."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else lambda: ""


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server over HTTP, with a bucket; gives the settings that lead there."""
    import boto3
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "key")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="bucket")
        yield {"blobs": "s3://bucket/docferry", "blobs_endpoint": endpoint}
        server.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory, database_url) -> AsyncIterator[Running]:
    """The module's server."""
    async with running_server(tmp_path_factory.mktemp("cloud"), database=database_url()) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def caller(service) -> Caller:
    """A caller in a tenant of its own."""
    return service.caller()


@pytest.fixture(scope="session")
def quick_times() -> Times:
    return QUICK


@pytest.fixture(scope="session")
def echo_engine():
    return EchoEngine


@pytest.fixture(scope="session")
def asking_engine():
    return AskingEngine


@pytest.fixture(scope="session")
def reading() -> Reading:
    line = Line("r1.l1", "TOTAL 9.00", ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2)), 0.9)
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(line,))
    return Reading(Document((Page(100, 200, (region,)),)), "double@1")


@pytest.fixture(scope="session")
def make_envelope(reading):
    """A valid envelope with a structure, changed by keyword."""

    def make(**changes) -> envelope_pb2.Envelope:
        fields = {
            "request_id": str(uuid.uuid4()),
            "document_id": str(uuid.uuid4()),
            "protocol_version": 1,
            "file_name": "receipt.jpg",
            "original_bytes": 1000,
            "structure": pack_reading(reading),
        }
        return envelope_pb2.Envelope(**(fields | changes))

    return make


@pytest.fixture(scope="session")
def make_part():
    """A part inside the envelope, or announced with `inline=False`."""

    def make(data: bytes, *, part_id="p1", kind=envelope_pb2.PART_KIND_PAGE, inline=True, **changes):
        fields = {
            "part_id": part_id,
            "kind": kind,
            "size": len(data),
            "sha256": hashlib.sha256(data).digest(),
            "media_type": "image/png",
            "data": data if inline else b"",
        }
        return envelope_pb2.Part(**(fields | changes))

    return make


@pytest.fixture
def world(tmp_path, database_url):
    """A store of either kind, without a service around it."""
    made = World(Database(database_url() or tmp_path / "store.sqlite"))
    yield made
    made.database.close()


@pytest.fixture
def supply_whole(world):
    """Gives the world an analysis whose one part has these bytes; its id."""

    def supply_it(data: bytes) -> str:
        announcement = envelope_pb2.Part(part_id="p1", kind=envelope_pb2.PART_KIND_ORIGINAL)
        digest = hashlib.sha256(data).digest()
        analysis_id = world.take(NewPart("p1", announcement.SerializeToString(), len(data), digest))
        chunk = Chunk(analysis_id, "p1", 0, len(data), digest, data, len(data) + 100)
        supply(world.database, world.log, chunk, world.caller, world.clock)
        return analysis_id

    return supply_it


@pytest.fixture
def supplied(world, supply_whole):
    """A world with one analysis whose part, 90,000 bytes, is whole; its id and the bytes."""
    data = bytes(range(250)) * 360
    return world, supply_whole(data), data


@dataclass
class Picture:
    """A picture with the fields of a part that a supply needs."""

    part_id: str
    data: bytes

    def __post_init__(self):
        self.size, self.sha256 = len(self.data), hashlib.sha256(self.data).digest()


@pytest.fixture(scope="session")
def make_picture():
    return Picture


@pytest.fixture(scope="session")
def large_picture() -> bytes:
    """A picture whose bytes fill several chunks."""
    return b"P6 90 90 255\n" + bytes(range(250)) * 98


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    got = Receiver()
    server = await asyncio.start_server(got.handle, "127.0.0.1", 0)
    got.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield got


@pytest.fixture(scope="session")
def until():
    """Waits for a condition that no event tells about: asks again every 10 ms up to the deadline."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(DEADLINE):
            while True:
                value = condition()
                if asyncio.iscoroutine(value):
                    value = await value
                if value:
                    return
                await asyncio.sleep(0.01)

    return wait


@pytest.fixture(scope="session")
def reason_of():
    """Code and ErrorInfo reason of a failed call."""
    from docferry.status import error_from_rpc

    def reason(failure: grpc.aio.AioRpcError) -> tuple[grpc.StatusCode, str]:
        return failure.code(), error_from_rpc(failure).code

    return reason


def _png(width: int, height: int, rows: bytes) -> bytes:
    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")


@pytest.fixture(scope="session")
def small_png() -> bytes:
    return _png(8, 8, (b"\0" + b"\x80" * 8) * 8)


@pytest.fixture(scope="session")
def huge_png() -> bytes:
    """30,000 x 30,000 pixels by its header, and next to nothing in it."""
    return _png(30_000, 30_000, b"")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate for the name localhost and its key, as PEM files."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the test's certificate")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", *curve, *name, "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made, key
