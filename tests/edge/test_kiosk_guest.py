"""Whoever stands before the kiosk: photos, answers, links, corrections, and that nothing stays for the next guest."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from docferry.document import Document, Line, Page, Region, RegionType
from docferry.errors import InputError, NotFound, Unavailable
from docferry.v1 import analysis_pb2
from docferry_edge.desk import edge_answer
from docferry_edge.entry import State
from docferry_edge.kiosk.guest import Guest
from docferry_edge.kiosk.hub import Hub
from docferry_edge.outbox import Outbox
from tests.edge.kiosk_page import events, page
from tests.edge.test_agent import until


class _Client:
    """A cloud that hands out links and takes corrections, or is away."""

    def __init__(self) -> None:
        self.away = False
        self.analysis: analysis_pb2.Analysis | None = None
        self.corrected: list[tuple[str, int, list[tuple[int, str, str]]]] = []
        self.open_within_s: list[float] = []

    def _there(self) -> None:
        if self.away:
            raise Unavailable("the cloud is away")

    async def claim(self, analysis_id: str, *, open_within_s: float) -> str:
        self._there()
        self.open_within_s.append(open_within_s)
        return f"https://docferry.example/c/{analysis_id}"

    async def get(self, analysis_id: str) -> analysis_pb2.Analysis:
        self._there()
        assert self.analysis is not None
        return self.analysis

    async def correct(self, analysis_id: str, version: int, lines) -> analysis_pb2.Analysis:
        self._there()
        assert self.analysis is not None
        self.corrected.append((analysis_id, version, [(line.page, line.line_id, line.text) for line in lines]))
        added = self.analysis.versions.add(version=version + 1, engine="person")
        added.interpretation.CopyFrom(self.analysis.versions[0].interpretation)
        return self.analysis


def _read(text: str, line_id: str = "r1.l1") -> analysis_pb2.Interpretation:
    quad = ((0.1, 0.1), (0.5, 0.1), (0.5, 0.2), (0.1, 0.2))
    line = Line(line_id, text, quad, 0.6, confidence=0.4)
    page_ = Page(100, 200, (Region("r1", RegionType.TEXT, (0.1, 0.1, 0.5, 0.2), 0, lines=(line,)),))
    return analysis_pb2.Interpretation.FromString(edge_answer(Document((page_,))))


def begun(outbox: Outbox, document_id: str) -> dict:
    """What the agent tells when it begins to read a document."""
    entry = outbox.get(document_id)
    head = {"type": "document", "document_id": document_id}
    return {**head, "captured_at": entry.captured_at, "handed_in": entry.handed_in}


@asynccontextmanager
async def guest_of(folder: Path) -> AsyncIterator[tuple[Guest, Outbox, _Client, list[dict]]]:
    outbox, cloud, shown = Outbox(folder), _Client(), []
    guest = Guest(outbox, cloud, shown.append, pause_s=0.01)
    task = asyncio.create_task(guest.run())
    try:
        yield guest, outbox, cloud, shown
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled(), task.exception()
        outbox.close()


async def test_a_photo_is_safe_before_the_page_says_so_and_bounded(tmp_path: Path, monkeypatch) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, _), page(guest) as (_, client):
        own = {"origin": str(client.base_url).rstrip("/")}
        answer = await client.post("/drop", params={"name": "../a/b.jpg"}, content=b"photo", headers=own)
        entry = outbox.get(answer.json()["document_id"])
        assert (entry.state, entry.file_name) == (State.CAPTURED, ".._a_b.jpg")
        assert outbox.image(entry.document_id) == b"photo"
        assert (await client.post("/drop", content=b"", headers=own)).status_code == 400
        monkeypatch.setattr("docferry_edge.kiosk.server.MAX_PART_BYTES", 10)
        assert (await client.post("/drop", content=b"x" * 11, headers=own)).status_code == 400
        for headers in ({}, {"origin": "http://evil.example"}, {**own, "sec-fetch-site": "cross-site"}):
            assert (await client.post("/drop", content=b"photo", headers=headers)).status_code == 403
        assert len(outbox.in_state(State.CAPTURED)) == 1


async def test_the_guest_sees_the_answer_the_link_and_the_better_answer(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, cloud, shown):
        document_id = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, document_id))
        outbox.packed(
            document_id, request=b"r", parts=(), edge_answer=_read("TOTL 9.00").SerializeToString(), timings={}
        )
        await until(lambda: shown[-1]["type"] == "answer")
        assert shown[-1]["lines"][0] | {"polygon": 0} == {
            "page": 0, "id": "r1.l1", "text": "TOTL 9.00", "polygon": 0, "doubtful": True,
        }  # fmt: skip
        cloud.away = True
        outbox.submitted(document_id, "analysis-1", {})
        outbox.delivered(document_id, {})
        await until(lambda: shown[-1]["type"] == "state")
        assert shown[-1]["state"] == "sent"
        cloud.away = False
        await until(lambda: shown[-1]["type"] == "claim")
        assert shown[-1]["link"] == "https://docferry.example/c/analysis-1"
        assert shown[-1]["path"].startswith("M4 4h1v1h-1z")
        analysis = analysis_pb2.Analysis(analysis_id="analysis-1")
        analysis.versions.add(version=2, interpretation=_read("TOTAL 9.00"))
        outbox.settled(document_id, analysis.SerializeToString(), {})
        await until(lambda: shown[-1]["type"] == "answer")
        assert (shown[-1]["version"], shown[-1]["lines"][0]["text"]) == (2, "TOTAL 9.00")
        assert [event["type"] for event in shown].count("claim") == 1
        assert cloud.open_within_s == [600.0]


async def test_a_correction_waits_on_disk_for_the_cloud_and_finds_its_line_there(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, _):
        document_id = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, document_id))
        answer = _read("TOTL 9.00").SerializeToString()
        outbox.packed(document_id, request=b"r", parts=(), edge_answer=answer, timings={})
        await guest.correct(document_id, 0, "r1.l1", "  TOTAL   9.00 ")
        for wrong in (("other", 0, "r1.l1", "x"), (document_id, 0, "r9", "x"), (document_id, 1, "r1.l1", "x")):
            with pytest.raises(NotFound):
                await guest.correct(*wrong)
        with pytest.raises(InputError):
            await guest.correct(document_id, 0, "r1.l1", " ")
    # The kiosk is switched off and on again.
    async with guest_of(tmp_path) as (guest, outbox, cloud, shown):
        cloud.analysis = analysis_pb2.Analysis(analysis_id="analysis-1")
        cloud.analysis.versions.add(version=2, interpretation=_read("TOTL 9.00", "cloud.7"))
        outbox.submitted(document_id, "analysis-1", {})
        outbox.settled(document_id, cloud.analysis.SerializeToString(), {})
        await until(lambda: bool(cloud.corrected))
        await until(lambda: outbox.mark("kiosk.corrections") == "[]")
        assert shown == []
    assert cloud.corrected == [("analysis-1", 2, [(0, "cloud.7", "TOTAL 9.00")])]


async def test_nothing_is_left_for_the_next_guest(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, _), page(guest) as (hub, client):
        document_id = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, document_id))
        hub.tell({"type": "document", "document_id": document_id})
        hub.tell({"type": "line", "text": "secret"})
        await asyncio.sleep(0)
        own = {"origin": str(client.base_url).rstrip("/")}
        assert (await client.post("/leave", headers=own)).status_code == 200
        with pytest.raises(NotFound):
            await guest.correct(document_id, 0, "r1.l1", "x")
        async with client.stream("GET", "/events") as answer:
            heard = events(answer)
            assert await anext(heard) == {"type": "camera", "present": False}
            hub.tell({"type": "document", "document_id": "next"})
            assert await anext(heard) == {"type": "document", "document_id": "next"}


def sent(outbox: Outbox, document_id: str, text: str = "secret") -> None:
    outbox.packed(document_id, request=b"r", parts=(), edge_answer=_read(text).SerializeToString(), timings={})
    outbox.submitted(document_id, f"analysis-{document_id}", {})


async def test_what_is_read_after_its_guest_has_left_is_shown_to_nobody(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        document_id = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, document_id))
        guest.tell({"type": "line", "text": "first"})
        guest.leave()
        guest.tell({"type": "line", "text": "secret"})
        guest.tell({"type": "state", "document_id": document_id, "state": "packed"})
        guest.tell({"type": "camera", "state": "away", "reason": "unplugged"})
        assert [event["type"] for event in shown] == ["document", "line", "camera"]


async def test_a_queued_photo_of_one_guest_is_not_the_next_ones(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        first_id = await guest.take("a.jpg", b"of the first")
        guest.leave()
        second_id = await guest.take("b.jpg", b"of the second")
        guest.tell(begun(outbox, first_id))
        guest.tell({"type": "line", "text": "secret"})
        sent(outbox, first_id)
        guest.tell({"type": "state", "document_id": first_id, "state": "packed"})
        guest.tell(begun(outbox, second_id))
        sent(outbox, second_id, "mine")
        # Reading ends before the state of the one before is told.
        guest.tell({"type": "state", "document_id": first_id, "state": "submitted"})
        await until(lambda: shown[-1]["type"] == "claim")
    assert {event["document_id"] for event in shown} == {second_id}
    assert shown[-1]["link"].endswith(second_id)


async def test_what_was_captured_before_a_restart_or_comes_from_a_folder_gets_no_link(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, _, _, _):
        left = await guest.take("a.jpg", b"photo")
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        guest.tell(begun(outbox, left))
        sent(outbox, left)
        assert shown == []
        options = {"file_name": "scan.jpg", "captured_at": time.time()}
        scan = outbox.capture(source="inbox|scan.jpg", data=b"scan", **options)
        guest.tell(begun(outbox, scan.document_id))
        sent(outbox, scan.document_id)
        await until(lambda: shown[-1]["type"] == "state")
        own = await guest.take("b.jpg", b"another")
        guest.tell(begun(outbox, own))
        sent(outbox, own)
        await until(lambda: shown[-1]["type"] == "claim")
    claims = [event["document_id"] for event in shown if event["type"] == "claim"]
    assert claims == [own]


def scanned(outbox: Outbox, name: str) -> str:
    """A document that a watched folder brings."""
    entry = outbox.capture(source=f"inbox|{name}", file_name=name, data=name.encode(), captured_at=time.time())
    assert entry is not None
    return entry.document_id


async def test_a_folders_document_takes_no_screen_from_a_guest_and_has_it_again_afterwards(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        own = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, own))
        sent(outbox, own, "mine")
        await until(lambda: shown[-1]["type"] == "claim")
        before = len(shown)
        scan = scanned(outbox, "scan.jpg")
        guest.tell(begun(outbox, scan))
        guest.tell({"type": "line", "text": "of the folder"})
        sent(outbox, scan, "of the folder")
        guest.tell({"type": "state", "document_id": scan, "state": "packed"})
        # What becomes of the guest's own is told all the same, while the other is read.
        guest.tell({"type": "state", "document_id": own, "state": "submitted"})
        assert [event["document_id"] for event in shown[before:]] == [own]
        await guest.correct(own, 0, "r1.l1", "put right")
        guest.leave()
        after = scanned(outbox, "next.jpg")
        guest.tell(begun(outbox, after))
        guest.tell({"type": "line", "text": "nobody is here"})
        await until(lambda: outbox.mark("kiosk.corrections") == "[]" or shown[-1]["type"] == "line")
    assert "of the folder" not in json.dumps(shown)
    assert shown[-2]["document_id"] == after
    assert shown[-1]["text"] == "nobody is here"


@pytest.mark.parametrize("how", ["photo", "camera"])
async def test_a_folders_document_leaves_the_screen_when_a_guest_hands_something_in(tmp_path: Path, how: str) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        scan = scanned(outbox, "scan.jpg")
        guest.tell(begun(outbox, scan))
        if how == "photo":
            guest.handing_in(time.time())
        else:
            guest.tell({"type": "captured", "captured_at": time.time()})
        # Both are still being read: the scan, then another one, and the guest's own after them.
        guest.tell({"type": "line", "text": "of the folder"})
        guest.tell(begun(outbox, scanned(outbox, "second.jpg")))
        guest.tell({"type": "line", "text": "of the folder"})
        assert shown[1:] == [{"type": "left", "document_id": scan}]
        own = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, own))
        guest.tell({"type": "line", "text": "mine"})
        assert [event["type"] for event in shown[2:]] == ["document", "line"]
        assert shown[2]["document_id"] == own


async def test_a_guest_who_left_before_the_photo_was_there_keeps_no_screen_dark(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        handed_in = time.time()
        guest.leave()
        guest.handing_in(handed_in)
        scan = scanned(outbox, "scan.jpg")
        guest.tell(begun(outbox, scan))
        assert [event["document_id"] for event in shown] == [scan]


async def test_a_photo_that_cannot_be_taken_keeps_no_screen_dark(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown), page(guest) as (_, client):
        own = {"origin": str(client.base_url).rstrip("/")}
        assert (await client.post("/drop", content=b"", headers=own)).status_code == 400
        scan = scanned(outbox, "scan.jpg")
        guest.tell(begun(outbox, scan))
        assert [event["document_id"] for event in shown] == [scan]


async def test_a_photo_of_a_guest_who_left_that_breaks_off_takes_nothing_from_the_next_one(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown), page(guest) as (_, client):
        own = str(client.base_url).rstrip("/")
        assert (await client.get("/")).status_code == 200
        _, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        head = f"host: {own.removeprefix('http://')}\r\norigin: {own}\r\ncontent-length: 10\r\n"
        writer.write(f"POST /drop HTTP/1.1\r\n{head}\r\nphoto".encode())
        await until(lambda: guest._present)
        assert (await client.post("/leave", headers={"origin": own})).status_code == 200
        document_id = await guest.take("next.jpg", b"photo", time.time())
        guest.tell(begun(outbox, document_id))
        writer.close()
        await writer.wait_closed()
        # Once the page has noticed, the next photo gets its turn.
        assert (await client.post("/drop", content=b"photo", headers={"origin": own})).status_code == 200
        guest.tell({"type": "line", "text": "of the next one"})
        assert shown[-1]["text"] == "of the next one"


async def test_a_page_that_opens_after_a_guest_has_come_is_told_nothing_of_the_folders_document(tmp_path: Path) -> None:
    async with page() as (hub, client):
        hub.tell({"type": "document", "document_id": "scan"})
        hub.tell({"type": "line", "text": "of the folder"})
        hub.tell({"type": "left", "document_id": "scan"})
        await asyncio.sleep(0)
        async with client.stream("GET", "/events") as answer:
            heard = events(answer)
            assert await anext(heard) == {"type": "camera", "present": False}
            hub.tell({"type": "document", "document_id": "mine"})
            assert await anext(heard) == {"type": "document", "document_id": "mine"}


async def test_a_photo_still_on_its_way_when_its_guest_leaves_stays_theirs(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        handed_in = time.time()
        guest.leave()
        guest.tell(begun(outbox, await guest.take("a.jpg", b"photo", handed_in)))
        assert shown == []


async def test_a_clock_that_is_set_back_keeps_the_page_dark_for_one_document_at_most(tmp_path: Path) -> None:
    async with guest_of(tmp_path) as (guest, outbox, _, shown):
        guest._left_at = time.time() + 3600
        guest.tell(begun(outbox, await guest.take("a.jpg", b"photo")))
        guest.tell(begun(outbox, await guest.take("b.jpg", b"another")))
        assert len(shown) == 1


def _cell(number: int, line_id: str) -> Line:
    """Three cells a row, 200 rows: more lines than the page is shown."""
    left, top = 0.3 * (number % 3), 0.005 * (number // 3)
    quad = ((left, top), (left + 0.25, top), (left + 0.25, top + 0.004), (left, top + 0.004))
    return Line(line_id, f"cell {number}", quad, 0.9)


@pytest.mark.parametrize(
    ("place", "line_id"),
    [
        pytest.param((0.425, 0.952), "c571", id="beyond the lines that are shown"),
        pytest.param((0.425, 0.955), "c571", id="a little lower"),
        pytest.param((0.28, 0.952), None, id="between two cells"),
        pytest.param((0.425, 0.960), None, id="more than a line further down"),
    ],
)
async def test_a_correction_goes_to_the_line_at_its_place_or_to_none(tmp_path: Path, caplog, place, line_id) -> None:
    # The corrected one stands in the last row.
    lines = tuple(_cell(number, f"c{number}") for number in range(573))
    page_ = Page(100, 200, (Region("r1", RegionType.TABLE, (0.0, 0.0, 1.0, 1.0), 0, lines=lines),))
    async with guest_of(tmp_path) as (guest, outbox, cloud, _):
        document_id = await guest.take("a.jpg", b"photo")
        sent(outbox, document_id)
        cloud.analysis = analysis_pb2.Analysis(analysis_id="analysis-1")
        version = cloud.analysis.versions.add(version=1)
        version.interpretation.MergeFromString(edge_answer(Document((page_,))))
        outbox.settled(document_id, cloud.analysis.SerializeToString(), {})
        guest._keep({"document_id": document_id, "page": 0, "place": place, "text": "right"})
        await until(lambda: outbox.mark("kiosk.corrections") == "[]")
    assert [lines[0][1] for _, _, lines in cloud.corrected] == ([line_id] if line_id else [])
    assert ("the line is not in the cloud's answer" in caplog.text) is (line_id is None)


def test_a_correction_kept_while_another_is_struck_off_is_not_lost(tmp_path: Path, monkeypatch) -> None:
    outbox = Outbox(tmp_path)
    guest = Guest(outbox, _Client(), lambda _: None)
    first, second = {"text": "first"}, {"text": "second"}
    guest._keep(first)
    keeping = threading.Thread(target=guest._keep, args=(second,))
    read = outbox.mark

    def mark(name: str) -> str:
        found = read(name)
        if keeping.ident is None:
            # Between reading and writing: the other thread gets all the time it could use.
            keeping.start()
            keeping.join(0.2)
        return found

    monkeypatch.setattr(outbox, "mark", mark)
    guest._done(first)
    keeping.join()
    assert json.loads(outbox.mark("kiosk.corrections")) == [second]
    guest._done(first)
    assert json.loads(outbox.mark("kiosk.corrections")) == [second]
    outbox.close()


async def test_a_correction_that_raises_is_set_aside_and_the_others_go_up(tmp_path: Path, caplog) -> None:
    async with guest_of(tmp_path) as (guest, outbox, cloud, _):
        document_id = await guest.take("a.jpg", b"photo")
        sent(outbox, document_id)
        cloud.analysis = analysis_pb2.Analysis(analysis_id="analysis-1")
        cloud.analysis.versions.add(version=2, interpretation=_read("TOTL"))
        outbox.settled(document_id, cloud.analysis.SerializeToString(), {})
        head = {"document_id": document_id, "page": 0}
        guest._keep({**head, "place": None, "text": "of a fault"})
        guest._keep({**head, "place": [0.3, 0.15], "text": "TOTAL"})
        await until(lambda: outbox.mark("kiosk.corrections") == "[]")
        assert [lines[0][2] for _, _, lines in cloud.corrected] == ["TOTAL"]
        (aside,) = json.loads(outbox.mark("kiosk.corrections.aside"))
        assert aside["text"] == "of a fault"
    assert "set aside" in caplog.text


async def test_a_correction_that_has_nowhere_to_go_is_told_in_the_log(tmp_path: Path, caplog) -> None:
    async with guest_of(tmp_path) as (guest, outbox, cloud, _):
        unread, failed = await guest.take("a.jpg", b"photo"), await guest.take("b.jpg", b"another")
        cloud.analysis = analysis_pb2.Analysis(analysis_id="analysis-1")
        sent(outbox, unread)
        outbox.settled(unread, cloud.analysis.SerializeToString(), {})
        outbox.failed(failed, InputError("damaged", remedy="take it again"))
        for document_id in (unread, failed):
            guest._keep({"document_id": document_id, "page": 0, "place": [0.3, 0.15], "text": "TOTAL"})
        await until(lambda: outbox.mark("kiosk.corrections") == "[]")
    assert f"document {unread}: a correction cannot be sent: the cloud has read nothing there" in caplog.text
    assert f"document {failed} is failed: a correction is dropped" in caplog.text
    assert cloud.corrected == []


async def test_a_photo_that_never_comes_does_not_keep_the_others_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("docferry_edge.kiosk.server._BODY_S", 0.2)
    async with guest_of(tmp_path) as (guest, _, _, _), page(guest) as (_, client):
        own = str(client.base_url).rstrip("/")
        assert (await client.get("/")).status_code == 200
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        head = f"host: {own.removeprefix('http://')}\r\norigin: {own}\r\ncontent-length: 10\r\n"
        writer.write(f"POST /drop HTTP/1.1\r\n{head}\r\nphoto".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        assert (await client.post("/drop", content=b"photo", headers={"origin": own})).status_code == 200
        writer.close()
        await writer.wait_closed()


async def test_a_fault_of_the_page_ends_nothing_and_is_tried_again(tmp_path: Path, caplog) -> None:
    async with guest_of(tmp_path) as (guest, outbox, cloud, shown):
        faults = 0

        async def claim(analysis_id: str, **_) -> str:
            nonlocal faults
            faults += 1
            if faults < 3:
                raise RuntimeError("a fault of the page")
            return f"https://docferry.example/c/{analysis_id}"

        cloud.claim = claim
        document_id = await guest.take("a.jpg", b"photo")
        guest.tell(begun(outbox, document_id))
        sent(outbox, document_id)
        await until(lambda: shown[-1]["type"] == "claim")
    assert faults == 3
    assert "the next look is in" in caplog.text


async def test_events_on_their_way_to_the_page_are_dropped_when_the_guest_leaves() -> None:
    hub = Hub(asyncio.get_running_loop())
    hub.tell({"type": "line", "text": "secret"})
    hub.tell({"type": "camera", "state": "away"})
    hub.forget()
    listener = hub.listen()
    assert await listener.get() == {"type": "camera", "state": "away"}
    assert "secret" not in str(hub.listen().story)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"document_id": "a", "page": true, "line_id": "b", "text": "c"}', b"[" * 10_000]
)
async def test_what_is_no_correction_is_refused(tmp_path: Path, body: bytes) -> None:
    async with guest_of(tmp_path) as (guest, _, _, _), page(guest) as (_, client):
        own = {"origin": str(client.base_url).rstrip("/")}
        assert (await client.post("/correct", content=body, headers=own)).status_code == 400
