"""A server in the test's process with engine doubles, and those who call it."""

import hashlib
import itertools
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio
from google.protobuf.message import Message

from docferry.channel import call_metadata, open_channel
from docferry.document import Page
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
from docferry_cloud.core import Times
from docferry_cloud.engine import Task, Want
from docferry_cloud.server import CloudServer
from docferry_cloud.settings import CloudSettings
from docferry_cloud.settings_rows import Token
from docferry_cloud.sweeper import SweepTimes
from docferry_cloud.watch import WatchTimes

DEADLINE = 20.0
QUICK = Times(
    sweep=SweepTimes(sweep=0.1, lease=1.0, look_after=0.5),
    watch=WatchTimes(heartbeat=0.3),
    webhook_waits=(0.05, 0.05, 0.05),
    drain=3.0,
    health=0.1,
    progress=0.0,
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
async def running_server(
    directory: Path, engine_factory=EchoEngine, times: Times = QUICK, worker_command=(), **settings
):
    settings = {
        "directory": directory,
        "port": 0,
        "tokens": tokens(),
        "allow_private": True,
        "remember": False,
    } | settings
    server = CloudServer(
        CloudSettings(**settings), engine_factory=engine_factory, worker_command=worker_command, times=times
    )
    try:
        address = await server.start()
        async with open_channel(address) as channel:
            yield Running(server, address, channel)
    finally:
        await server.stop()
