"""Wants at the device: answered once, in pieces, or refused with the right reason; and no want stops the others."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import pytest

from docferry.errors import Conflict, DocferryError, EnvelopeError, Unavailable, Unimplemented, UnreadableImage
from docferry.v1 import analysis_pb2, device_service_pb2, document_pb2, envelope_pb2
from docferry_edge.cutting import geometry_of
from docferry_edge.originals import Originals
from docferry_edge.outbox import Outbox
from docferry_edge.page_geometry import to_json
from docferry_edge.pictures import Pictures
from docferry_edge.prepare import Frame, prepare
from docferry_edge.uplink import Pace
from docferry_edge.wants import SupplyPolicy, Wants
from tests.edge.preparation.papers import letter

QUICK = Pace(first=0.01, longest=0.05)


@dataclass
class Cloud:
    """A client in memory: tells what it was given to want, and takes or refuses what is supplied."""

    told: list[device_service_pb2.PartWanted] = field(default_factory=list)
    errors: list[DocferryError | int] = field(default_factory=list)
    deaf: list[DocferryError] = field(default_factory=list)
    supplies: list[tuple[str, int, bytes]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def wanted(self) -> AsyncIterator[device_service_pb2.PartWanted]:
        if self.deaf:
            raise self.deaf.pop(0)
        for want in self.told:
            yield want
        await asyncio.Event().wait()

    async def supply(self, analysis_id, part_id, data, *, offset=0, progress=None):
        self.supplies.append((part_id, offset, data))
        if self.errors:
            error = self.errors.pop(0)
            if isinstance(error, int):
                progress(error, len(data))
                error = Unavailable("the link broke", remedy="none")
            raise error
        self.over.set()
        return len(data)

    async def refuse(self, analysis_id, part_id, code, detail):
        self.refused[part_id] = code
        self.over.set()


@pytest.fixture
def outbox(tmp_path: Path):
    box = Outbox(tmp_path)
    yield box
    box.close()


def document(outbox: Outbox, data: bytes | None = None, *, pages: str | None = None) -> str:
    data = cv2.imencode(".png", letter(300, 400))[1].tobytes() if data is None else data
    entry = outbox.capture(source=str(uuid.uuid4()), file_name="a.png", data=data, captured_at=1.0)
    assert entry is not None
    if pages is None:
        frame = Frame(data, "a.png")
        geometry = geometry_of(prepare(frame), frame)
        assert geometry is not None
        pages = to_json([geometry])
    outbox.packed(entry.document_id, request=b"r", parts=(), edge_answer=b"", timings={}, pages=pages)
    return entry.document_id


def want(document_id: str, part_id: str = "w1", *, page: int = 0, received: int = 0) -> device_service_pb2.PartWanted:
    box = document_pb2.Box(x0=0.1, y0=0.1, x1=0.6, y1=0.3)
    kind, state = envelope_pb2.PART_KIND_CROP, analysis_pb2.Want.STATE_OPEN
    wanted = analysis_pb2.Want(part_id=part_id, kind=kind, page=page, box=box, scale=1.0, state=state)
    wanted.received = received
    return device_service_pb2.PartWanted(analysis_id="analysis", document_id=document_id, want=wanted)


@asynccontextmanager
async def answering(outbox: Outbox, cloud: Cloud, **options):
    task = asyncio.create_task(Wants(outbox, cloud, Pictures(), pace=QUICK, **options).run())
    try:
        async with asyncio.timeout(20):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled(), task.exception()


async def test_a_broken_supply_goes_on_with_the_same_bytes_from_what_was_received(outbox: Outbox) -> None:
    cloud = Cloud([want(document(outbox), received=100)], errors=[Unavailable("away", remedy="wait"), 700])
    async with answering(outbox, cloud):
        await cloud.over.wait()
    assert [offset for _, offset, _ in cloud.supplies] == [100, 100, 700]
    assert len({data for _, _, data in cloud.supplies}) == 1


async def test_other_bytes_in_the_cloud_are_begun_anew_where_it_says_but_not_for_ever(outbox: Outbox) -> None:
    gap = EnvelopeError("bytes 40..700 are missing", remedy="go on", received="40")
    other = EnvelopeError("another hash", remedy="send what was announced")
    cloud = Cloud([want(document(outbox), received=700)], errors=[gap, other])
    async with answering(outbox, cloud):
        await cloud.over.wait()
    assert [offset for _, offset, _ in cloud.supplies] == [700, 40, 0]
    cloud = Cloud([want(document(outbox, letter_bytes(7)))], errors=[other])
    async with answering(outbox, cloud):
        await cloud.over.wait()
    assert cloud.refused == {"w1": "REJECTED"}


def letter_bytes(lines: int) -> bytes:
    return cv2.imencode(".png", letter(300, 400, lines=lines))[1].tobytes()


async def test_what_nobody_waits_for_any_more_is_let_go(outbox: Outbox) -> None:
    document_id = document(outbox)
    cloud = Cloud([want(document_id)], errors=[Conflict("not wanted any more", remedy="stop sending")])
    async with answering(outbox, cloud):
        while len(cloud.supplies) < 1 or outbox.originals.supply(document_id, "w1") is not None:
            await asyncio.sleep(0.01)
    assert not cloud.refused


async def test_every_refusal_says_why_and_the_next_want_is_answered(outbox: Outbox, monkeypatch) -> None:
    gone, damaged, faulty = document(outbox), document(outbox, letter_bytes(9)), document(outbox, letter_bytes(11))
    outbox._spool.joinpath(gone).unlink()
    whole = outbox._spool.joinpath(damaged).read_bytes()
    outbox._spool.joinpath(damaged).write_bytes(whole[: len(whole) // 2])
    good = document(outbox, letter_bytes(5))
    stranger = "00000000-0000-0000-0000-000000000000"

    def break_one(entry, _page, _box, pixels):
        if entry.document_id == faulty:
            raise ZeroDivisionError
        return pixels

    told = [
        want(gone, "gone"),
        want(good, "page", page=3),
        want(damaged, "damaged"),
        want(faulty, "faulty"),
        want(stranger, "another agent's"),
        want(good, "rejected"),
        want(good, "good"),
    ]
    cloud = Cloud(told, errors=[UnreadableImage("no picture", remedy="none")])
    async with answering(outbox, cloud, policy=SupplyPolicy(mask=break_one)):
        while len(cloud.supplies) < 2:
            await asyncio.sleep(0.01)
    assert cloud.refused == {
        "gone": "NOT_KEPT",
        "page": "NO_SUCH_PAGE",
        "damaged": "UNREADABLE",
        "faulty": "FAULT",
        "rejected": "REJECTED",
    }
    assert [part_id for part_id, _, _ in cloud.supplies] == ["rejected", "good"]


async def test_a_policy_refuses_even_what_was_cut_before_it_came(outbox: Outbox) -> None:
    document_id = document(outbox)
    outbox.originals.store_supply(document_id, "w1", b"cut before")
    cloud = Cloud([want(document_id)])
    policy = SupplyPolicy(refusal=lambda entry, wanted: f"{entry.file_name}, {wanted.part_id}: never")
    async with answering(outbox, cloud, policy=policy):
        await cloud.over.wait()
    assert cloud.refused == {"w1": "POLICY"}
    assert not cloud.supplies


async def test_an_older_service_and_a_broken_stream_are_asked_again(outbox: Outbox) -> None:
    deaf = [Unimplemented("not here", remedy="update"), DocferryError("broke", remedy="report it")]
    cloud = Cloud([want(document(outbox))], deaf=deaf)
    async with answering(outbox, cloud):
        await cloud.over.wait()


async def test_originals_are_dropped_when_their_time_is_over(outbox: Outbox) -> None:
    document_id = document(outbox)
    outbox.settled(document_id, b"analysis", {}, keep_original=True)
    async with answering(outbox, Cloud(), keep_s=0.0):
        while outbox.originals.image(document_id) is not None:
            await asyncio.sleep(0.01)


async def test_a_full_disk_postpones_a_want(outbox: Outbox, monkeypatch) -> None:
    from docferry.errors import StorageFull

    real, full = Originals.store_supply, [True]

    def store(self, *args):
        if full:
            full.pop()
            raise StorageFull("the disk is full", remedy="free some space")
        real(self, *args)

    monkeypatch.setattr(Originals, "store_supply", store)
    cloud = Cloud([want(document(outbox))])
    async with answering(outbox, cloud):
        await cloud.over.wait()
    assert not full
    assert len(cloud.supplies) == 1
