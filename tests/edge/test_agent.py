"""The agent with a reader in memory and a cloud on a real socket: each step at its own pace, nothing lost between."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from docferry.async_client import AsyncClient
from docferry.document import Document, Line, Page, Reading, Region, RegionType
from docferry.errors import ConfigurationError, UnreadableImage
from docferry.fields.sensitive import Sensitive
from docferry.v1 import analysis_service_pb2, envelope_pb2
from docferry_edge.agent import Agent
from docferry_edge.assess import assess
from docferry_edge.camera import Picture, Watch
from docferry_edge.capture import Inbox
from docferry_edge.commands import entry_tree
from docferry_edge.entry import Entry, State
from docferry_edge.examine import Examined, default_calibration
from docferry_edge.outbox import Outbox
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.prepare import Frame, PageImage
from docferry_edge.route import Mode, Policy
from docferry_edge.uplink import Pace
from docferry_edge.work import DirectDesk
from tests.edge.preparation.papers import letter


def examiner(frame: Frame, **_) -> Examined:
    """Reads a file's own bytes as its text: as good as any reader for what the agent does around it."""
    if frame.data.startswith(b"bad"):
        raise UnreadableImage(f"{frame.name}: damaged", remedy="take the picture again")
    if frame.data.startswith(b"bug"):
        raise RuntimeError("a fault of ours")
    polygon = ((0.1, 0.1), (0.9, 0.1), (0.9, 0.2), (0.1, 0.2))
    region = Region("r1", RegionType.TEXT, (0.1, 0.1, 0.9, 0.2), 0, lines=(Line("r1.l1", "hello", polygon, 1.0),))
    reading = Reading(Document((Page(60, 90, (region,)),)), "reader@00")
    page = PageImage(np.full((90, 60, 3), 255, np.uint8))
    return Examined(page, assess(reading, default_calibration()), {"hint": 1.0, "read": 2.0})


@asynccontextmanager
async def running(folder: Path, port: int, told: list[Entry], **options) -> AsyncIterator[Outbox]:
    outbox = Outbox(folder / "state", **options.pop("limits", {}))
    policies = options.pop("policies", Policies(Policy(audit_share=0.0)))
    (folder / "inbox").mkdir(exist_ok=True)
    try:
        async with AsyncClient.connect(f"127.0.0.1:{port}") as client:
            agent = Agent(
                outbox=outbox,
                inbox=Inbox(folder / "inbox", 0.0),
                desk=options.pop("desk", None) or DirectDesk(lambda _: examiner, policies, Pictures()),
                client=client,
                report=told.append,
                policies=policies,
                pace=Pace(first=0.01, longest=0.05, idle=0.05),
                **options,
            )
            task = asyncio.create_task(agent.run())
            try:
                yield outbox
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert task.cancelled(), task.exception()
    finally:
        outbox.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def put(folder: Path, name: str, data: bytes) -> None:
    (folder / "inbox").mkdir(exist_ok=True)
    (folder / "inbox" / f".{name}").write_bytes(data)
    (folder / "inbox" / f".{name}").rename(folder / "inbox" / name)


async def test_a_file_in_the_inbox_becomes_a_settled_document(tmp_path: Path, link) -> None:
    told: list[Entry] = []
    async with running(tmp_path, link.port, told) as outbox:
        put(tmp_path, "a.jpg", b"good")
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
        (entry,) = outbox.in_state(State.DELIVERED)
        link.cloud.finish(entry.document_id)
        await until(lambda: [e.state for e in told] == [State.PACKED, State.SETTLED])
        assert (tmp_path / "inbox" / "a.jpg").exists()
    assert {e.document_id for e in told} == {entry.document_id}


async def test_a_captured_file_is_removed_only_where_that_was_asked_for(tmp_path: Path, link) -> None:
    async with running(tmp_path, link.port, [], remove_captured=True) as outbox:
        put(tmp_path, "a.jpg", b"good")
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
        assert not (tmp_path / "inbox" / "a.jpg").exists()


async def test_the_same_picture_put_in_twice_is_two_documents_and_a_restart_adds_none(tmp_path: Path, link) -> None:
    put(tmp_path, "a.jpg", b"good")
    put(tmp_path, "b.jpg", b"good")
    for _ in range(2):
        async with running(tmp_path, link.port, []) as outbox:
            await until(lambda box=outbox: len(box.in_state(State.DELIVERED)) == 2)
    assert len(link.cloud.analyses) == 2


async def test_a_damaged_file_is_told_with_its_reason_and_the_next_goes_on(tmp_path: Path, link) -> None:
    told: list[Entry] = []
    put(tmp_path, "a.jpg", b"bad")
    put(tmp_path, "b.jpg", b"good")
    async with running(tmp_path, link.port, told) as outbox:
        await until(lambda: bool(outbox.in_state(State.DELIVERED)) and len(told) == 2)
    failed = next(entry for entry in told if entry.file_name == "a.jpg")
    assert (failed.state, failed.error["code"]) == (State.FAILED, "UNREADABLE_IMAGE")
    assert len(link.cloud.analyses) == 1


async def test_a_fault_of_ours_is_tried_again_then_the_file_goes_up_as_it_is(tmp_path: Path, link) -> None:
    put(tmp_path, "a.jpg", b"bug")
    async with running(tmp_path, link.port, []) as outbox:
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
    (body,) = link.cloud.bodies.values()
    envelope = analysis_service_pb2.SubmitRequest.FromString(body).envelope
    assert envelope.parts[0].data == b"bug"
    assert envelope.route.decision == envelope_pb2.ROUTE_DECISION_ORIGINAL
    assert envelope.route.reasons[0].code == "READER_STOPPED"
    assert not envelope.HasField("structure")


async def test_offline_by_policy_the_edges_answer_stands_and_nothing_is_sent(tmp_path: Path, link) -> None:
    told: list[Entry] = []
    offline = Policies(Policy(mode=Mode.OFFLINE))
    async with running(tmp_path, link.port, told, policies=offline) as outbox:
        put(tmp_path, "a.jpg", b"good")
        await until(lambda: [entry.state for entry in told] == [State.SETTLED])
        answer = outbox.edge_answer(told[0].document_id)
        assert b"hello" in answer
        tree = entry_tree(told[0], outbox)
    assert (tree["status"], tree["route"]["decision"], tree["route"]["reasons"][0]["code"]) == (
        "read",
        "nothing",
        "OFFLINE",
    )
    assert not link.cloud.submits


async def test_a_file_that_cannot_be_read_is_not_sent_where_anything_must_be_masked(tmp_path: Path, link) -> None:
    masking = Policies(Policy(redact=frozenset({Sensitive.CARD})))
    async with running(tmp_path, link.port, [], policies=masking) as outbox:
        put(tmp_path, "a.jpg", b"bug 4111 1111 1111 1111")
        await until(lambda: bool(outbox.in_state(State.FAILED)))
        (entry,) = outbox.in_state(State.FAILED)
        assert "policy" in entry.error["reason"]
        assert outbox.image(entry.document_id).startswith(b"bug")
    assert not any(b"4111" in submit for submit in link.cloud.submits)


async def test_a_file_that_cannot_be_handled_stops_nothing(tmp_path: Path, link, monkeypatch) -> None:
    put(tmp_path, "good.jpg", b"good")
    (tmp_path / "inbox" / "empty.jpg").write_bytes(b"")
    (tmp_path / "inbox" / os.fsdecode(b"caf\xe9.jpg")).write_bytes(b"good")
    real = Path.unlink

    def denied(path: Path, missing_ok: bool = False) -> None:
        if path.parent.name == "inbox":
            raise PermissionError(13, "Permission denied")
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", denied)
    told: list[Entry] = []
    async with running(tmp_path, link.port, told, remove_captured=True) as outbox:
        await until(lambda: len(outbox.in_state(State.DELIVERED)) == 2 and bool(outbox.in_state(State.FAILED)))
        names = {entry.file_name for entry in outbox.in_state(State.DELIVERED)}
    assert names == {"good.jpg", "caf\ufffd.jpg"}


async def test_content_written_anew_under_a_captured_name_is_not_removed(tmp_path: Path, link, monkeypatch) -> None:
    put(tmp_path, "a.jpg", b"good one")
    capture = Outbox.capture

    def then_overwritten(self, **values):
        entry = capture(self, **values)
        if values["data"] == b"good one":
            put(tmp_path, "a.jpg", b"good two!")
        return entry

    monkeypatch.setattr(Outbox, "capture", then_overwritten)
    async with running(tmp_path, link.port, [], remove_captured=True) as outbox:
        await until(lambda: len(outbox.in_state(State.DELIVERED)) == 2)
    assert len(link.cloud.analyses) == 2


async def test_at_the_ceiling_files_wait_in_the_inbox_until_there_is_room(tmp_path: Path, link) -> None:
    put(tmp_path, "a.jpg", b"good" * (5 << 19))
    async with running(tmp_path, link.port, [], limits={"max_bytes": 16 << 20}) as outbox:
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
        put(tmp_path, "b.jpg", b"good" * (5 << 19))
        await asyncio.sleep(0.3)
        assert len(outbox.in_state(*State)) == 1
        (entry,) = outbox.in_state(State.DELIVERED)
        link.cloud.finish(entry.document_id)
        await until(lambda: len(outbox.in_state(*State)) == 2)


def test_a_document_that_kills_the_agent_again_and_again_goes_up_as_it_is(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, os, signal, sys
        from pathlib import Path
        from docferry.async_client import AsyncClient
        from docferry_edge.agent import Agent
        from docferry_edge.capture import Inbox
        from docferry_edge.outbox import Outbox
        from docferry_edge.pictures import Pictures
        from docferry_edge.policies import Policies
        from docferry_edge.work import DirectDesk

        def deadly(frame, **_):
            os.kill(os.getpid(), signal.SIGKILL)

        async def main():
            folder = Path(sys.argv[1])
            outbox = Outbox(folder / "state")
            def stop(entry):
                print(entry.state, flush=True)
                os._exit(0)
            async with AsyncClient.connect("127.0.0.1:9") as client:
                await Agent(outbox=outbox, inbox=Inbox(folder / "inbox", 0.0), client=client, report=stop,
                            desk=DirectDesk(lambda _: deadly, Policies(), Pictures())).run()

        asyncio.run(main())
    """)
    put(tmp_path, "a.jpg", b"deadly")
    command = [sys.executable, "-c", program, str(tmp_path)]
    ends = [subprocess.run(command, check=False, capture_output=True, text=True, timeout=60) for _ in range(4)]
    assert [end.returncode for end in ends] == [-signal.SIGKILL] * 3 + [0], ends[-1].stderr
    assert ends[-1].stdout == "packed\n"


@pytest.mark.parametrize("name", ["umlaut-ä.jpg", "空.jpg", "with space.jpg", "x" * 200 + ".jpg"])
async def test_any_file_name_is_taken(tmp_path: Path, link, name: str) -> None:
    put(tmp_path, name, b"good")
    async with running(tmp_path, link.port, []) as outbox:
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
        assert outbox.in_state(State.DELIVERED)[0].file_name == name
    assert os.listdir(tmp_path / "inbox") == [name]


class Table:
    """A camera over a table: the page that lies on it, over and over; unplugged while `page` is None."""

    name = "table"

    def __init__(self, page):
        self.page = page

    def shoot(self) -> Picture:
        if self.page is None:
            raise ConfigurationError("table: the camera gives no picture", remedy="plug it in")
        return Picture(self.page)

    def close(self) -> None:
        pass


async def test_a_page_before_the_camera_becomes_one_document_even_after_the_camera_was_away(
    tmp_path: Path, link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docferry_edge.agent._CAMERA_PAUSE_S", 0.01)
    table = Table(None)
    async with running(tmp_path, link.port, [], watch=Watch(table), look_pause_s=0.0) as outbox:
        await asyncio.sleep(0.05)
        table.page = letter()
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
        await asyncio.sleep(0.2)
        (entry,) = outbox.in_state(*State)
    assert entry.file_name.startswith("camera-")
    assert entry.original_bytes > 10_000
