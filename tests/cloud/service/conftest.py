"""What the service's tests share: envelopes, engine doubles, a server on a loopback port, a webhook receiver.

DBOS is a process-wide singleton, so one server runs in a test process at a time: one a module, and every test gets a
tenant of its own on it. Tests that stop or kill the service start their own.
"""

import asyncio
import base64
import hashlib
import itertools
import shutil
import struct
import subprocess
import uuid
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from benchmarks.postgres_server import postgres_server
from docferry.channel import call_metadata, open_channel
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.packing import pack_reading
from docferry.v1 import (
    analysis_pb2,
    analysis_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    envelope_pb2,
    event_pb2,
    subscription_service_pb2_grpc,
)
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.blobs import memory_blobs
from docferry_cloud.core import Times
from docferry_cloud.database import Database
from docferry_cloud.engine import Task, Want
from docferry_cloud.event_log import EventLog
from docferry_cloud.retention import Retention
from docferry_cloud.rows import Caller as Identity
from docferry_cloud.rows import Limits, NewPart, Submission
from docferry_cloud.schema import State
from docferry_cloud.server import CloudServer
from docferry_cloud.settings import CloudSettings, Token
from docferry_cloud.store import Store
from docferry_cloud.supply import Chunk, supply
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.watch import WatchTimes
from docferry_cloud.work import WorkList

DEADLINE = 20.0
QUICK = Times(
    sweep=SweepTimes(sweep=0.1, lease=1.0, look_after=0.5),
    watch=WatchTimes(heartbeat=0.3),
    webhook_waits=(0.05, 0.05, 0.05),
    drain=3.0,
    health=0.1,
)
_TENANTS = 64
A_LINE = Want((0.1, 0.1, 0.5, 0.2), 1.0, "a line stays in doubt")


class EchoEngine:
    """Returns the edge's page unchanged; `hook` is called first with the page."""

    name = "echo"
    tasks = frozenset({Task.TEXT})

    def __init__(self, hook=None):
        self.hook = hook

    def read(self, page, effort, cancelled):
        if self.hook is not None:
            self.hook(page, cancelled)
        return page.reading or Page(width=10, height=10)


class AskingEngine(EchoEngine):
    """Asks for one crop of every page of which a risk is stated; keeps what it was given, page by page."""

    name = "asking"

    def __init__(self, hook=None, wants=(A_LINE,)):
        super().__init__(hook)
        self.given = []
        self.asks = wants

    def read(self, page, effort, cancelled):
        self.given.append(page)
        return super().read(page, effort, cancelled)

    def wants(self, page, read):
        return self.asks if page.target_risk else ()


@dataclass
class Caller:
    """The stubs with the token of one device in one tenant."""

    channel: grpc.aio.Channel
    token: str
    tenant: str

    def __post_init__(self):
        self._analysis = analysis_service_pb2_grpc.AnalysisServiceStub(self.channel)
        self._subscription = subscription_service_pb2_grpc.SubscriptionServiceStub(self.channel)
        self._device = device_service_pb2_grpc.DeviceServiceStub(self.channel)

    async def __call__(self, name: str, request: Message):
        service = self._subscription if "Subscription" in type(request).__name__ else self._analysis
        service = self._device if name == "Refuse" else service
        return await getattr(service, name)(request, timeout=DEADLINE, metadata=call_metadata(self.token))

    async def submit(self, envelope: envelope_pb2.Envelope):
        return (await self("Submit", pb.SubmitRequest(envelope=envelope))).analysis

    async def get(self, analysis_id: str):
        return (await self("Get", pb.AnalysisServiceGetRequest(analysis_id=analysis_id))).analysis

    async def supply(self, analysis_id: str, part, data: bytes, offset: int = 0, **changes):
        fields = {"total_size": part.size, "sha256": part.sha256} | changes
        request = pb.SupplyRequest(analysis_id=analysis_id, part_id=part.part_id, offset=offset, data=data, **fields)
        return await self("Supply", request)

    def wanted(self, **fields):
        request = device_service_pb2.DeviceServiceWatchRequest(**fields)
        return self._device.Watch(request, timeout=DEADLINE, metadata=call_metadata(self.token))

    async def want(self, **fields):
        """The first thing that is wanted of this device."""
        call = self.wanted(**fields)
        async for answer in call:
            if answer.HasField("part"):
                call.cancel()
                return answer
        raise AssertionError("the stream ended")

    async def refuse(self, analysis_id: str, part_id: str, code: str = "POLICY", detail: str = "no pictures"):
        reason = analysis_pb2.Notice(code=code, detail=detail)
        request = device_service_pb2.RefuseRequest(analysis_id=analysis_id, part_id=part_id, reason=reason)
        return await self("Refuse", request)

    def watch(self, **fields):
        request = pb.AnalysisServiceWatchRequest(**fields)
        return self._analysis.Watch(request, timeout=DEADLINE, metadata=call_metadata(self.token))

    async def events(self, until: Callable[[event_pb2.Event], bool], **fields) -> list[event_pb2.Event]:
        """The events up to and with the first that `until` accepts."""
        seen = []
        call = self.watch(**fields)
        async for answer in call:
            if answer.HasField("event"):
                seen.append(answer.event)
                if until(answer.event):
                    break
        call.cancel()
        return seen

    async def finished(self, analysis_id: str):
        """The analysis once it has finished."""
        final = {event_pb2.Event.TYPE_SUCCEEDED, event_pb2.Event.TYPE_FAILED, event_pb2.Event.TYPE_CANCELLED}
        await self.events(lambda event: event.type in final, analysis_id=analysis_id)
        return await self.get(analysis_id)


@dataclass
class Running:
    """A running server and the callers on it."""

    server: CloudServer
    address: str
    channel: grpc.aio.Channel
    numbers: itertools.count = field(default_factory=itertools.count)

    def caller(self, number: int | None = None) -> Caller:
        """A caller of a tenant that no other test has used, or of a certain one."""
        number = next(self.numbers) if number is None else number
        return Caller(self.channel, f"token-{number}", f"tenant-{number}")

    def colleague(self, caller: Caller) -> Caller:
        """Another device of the same tenant."""
        return Caller(self.channel, caller.token.replace("token", "other"), caller.tenant)


def tokens() -> tuple[Token, ...]:
    return tuple(
        Token(hashlib.sha256(f"{name}-{n}".encode()).digest(), f"tenant-{n}", device)
        for n in range(_TENANTS)
        for name, device in (("token", "kiosk"), ("other", "tablet"))
    )


@asynccontextmanager
async def _running(directory: Path, engine_factory=EchoEngine, times: Times = QUICK, **settings):
    settings = {
        "directory": directory,
        "port": 0,
        "tokens": tokens(),
        "allow_private": True,
        "remember": False,
    } | settings
    server = CloudServer(CloudSettings(**settings), engine_factory=engine_factory, times=times)
    try:
        address = await server.start()
        async with open_channel(address) as channel:
            yield Running(server, address, channel)
    finally:
        await server.stop()


@pytest.fixture(scope="session")
def running():
    """Starts a server in a folder: `async with running(folder, engine_factory, **settings) as service`."""
    return _running


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
    async with _running(tmp_path_factory.mktemp("cloud"), database=database_url()) as server:
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


@dataclass
class World:
    """A store in a folder, and a clock that stands until it is moved."""

    database: Database
    caller: Identity = field(default_factory=lambda: Identity("tenant", "kiosk"))
    now: int = 1_800_000_000_000_000
    lane: int = 0
    within_s: float | None = None
    counter: itertools.count = field(default_factory=itertools.count)

    def __post_init__(self):
        self.database.create()
        self.log = EventLog(self.database, self.clock)
        self.log.open()
        self.blobs = memory_blobs()
        self.retention = Retention(self.database, self.log, 30, self.clock)
        self.store = Store(self.database, self.log, self.blobs, Limits(), self.clock)

    def clock(self) -> int:
        return self.now

    def work(self, owner: str) -> WorkList:
        work = WorkList(self.database, self.log, owner, self.clock)
        work.announce_alive(10)
        return work

    def take(self, *announced: NewPart) -> str:
        number = next(self.counter)
        new = Submission(
            caller=self.caller,
            request_id=str(uuid.UUID(int=number)),
            document_id=str(uuid.uuid4()),
            body=b"body",
            body_sha256=hashlib.sha256(b"body").digest(),
            file_name="a.jpg",
            effort=0,
            route=b"",
            traffic=b"",
            announced=announced,
            edge=None,
            within_s=self.within_s,
            lane=self.lane,
        )
        return self.store.take(new).analysis_id

    def state(self, analysis_id: str) -> State:
        return self.store.get(self.caller.tenant, analysis_id=analysis_id).state

    def events(self, analysis_id: str) -> list[str]:
        return [row.type.value for row in self.log.read("tenant", 0, self.log.latest(), 100, analysis_id)]


@pytest.fixture
def world(tmp_path, database_url):
    """A store of either kind, without a service around it."""
    made = World(Database(database_url() or tmp_path / "store.sqlite"))
    yield made
    made.database.close()


@pytest.fixture
def supplied(world):
    """A world with one analysis whose part, 90,000 bytes, is whole; its id and the bytes."""
    data = bytes(range(250)) * 360
    announcement = envelope_pb2.Part(part_id="p1", kind=envelope_pb2.PART_KIND_ORIGINAL)
    digest = hashlib.sha256(data).digest()
    part = NewPart("p1", announcement.SerializeToString(), len(data), digest)
    analysis_id = world.take(part)
    chunk = Chunk(analysis_id, "p1", 0, len(data), digest, data, len(data) + 100)
    supply(world.database, world.log, chunk, world.caller, world.clock)
    return world, analysis_id, data


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


@dataclass
class Received:
    """One request that the receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A real HTTP server on loopback: answers with the statuses it was given, then 204, and keeps what it got."""

    secret = f"whsec_{base64.b64encode(b'k' * 32).decode()}"

    def __init__(self):
        self.answers: list[bytes] = []
        self.requests: asyncio.Queue[Received] = asyncio.Queue()
        self.url = ""

    def answer(self, *statuses: int, header: str = ""):
        extra = f"{header}\r\n" if header else ""
        self.answers += [f"HTTP/1.1 {status} x\r\n{extra}content-length: 0\r\n\r\n".encode() for status in statuses]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            start, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            answer = self.answers.pop(0) if self.answers else b"HTTP/1.1 204 x\r\n\r\n"
            self.requests.put_nowait(Received(start.split()[1], headers, body))
            writer.write(answer.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            await writer.drain()
        finally:
            writer.close()

    async def next(self) -> Received:
        async with asyncio.timeout(DEADLINE):
            return await self.requests.get()


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
