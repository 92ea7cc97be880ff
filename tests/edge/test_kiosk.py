"""The kiosk's page over real sockets: what it shows, whom it refuses, and that nobody can slow the agent down."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import cv2
import httpx
import numpy as np
import pytest

from docferry.document import Document, Line, Page, Quality, Region, RegionType
from docferry.errors import ConfigurationError, InputError, NotFound, Unavailable
from docferry.v1 import analysis_pb2
from docferry_edge.camera import Watch
from docferry_edge.desk import Job, edge_answer
from docferry_edge.entry import State
from docferry_edge.kiosk import hub as hubs
from docferry_edge.kiosk.guest import Guest
from docferry_edge.kiosk.hub import Hub, preview
from docferry_edge.kiosk.server import listen, serve
from docferry_edge.outbox import Outbox
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.prepare import PageImage
from docferry_edge.read import LayoutHint, LineRead, LinesHint
from docferry_edge.route import Policy
from docferry_edge.work import DirectDesk
from tests.edge.preparation.papers import letter
from tests.edge.test_agent import Table, examiner, put, running, until
from tests.edge.test_reader_process import job


@asynccontextmanager
async def page(guest=None, **options) -> AsyncIterator[tuple[Hub, httpx.AsyncClient]]:
    hub = Hub(asyncio.get_running_loop(), **options)
    listener = listen(0)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    task = asyncio.create_task(serve(hub, listener, guest))
    try:
        async with httpx.AsyncClient(base_url=base, timeout=20) as client:
            yield hub, client
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def events(response: httpx.Response) -> AsyncIterator[dict]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def first(response: httpx.Response, count: int) -> list[dict]:
    found: list[dict] = []
    async for event in events(response):
        found.append(event)
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize(
    ("path", "kind", "holds"),
    [
        ("/", "text/html", "/kiosk.js"),
        ("/kiosk.js", "text/javascript", "请放好文件"),
        ("/kiosk.css", "text/css", "grid"),
    ],
)
async def test_the_page_and_its_files_come_with_strict_headers(path: str, kind: str, holds: str) -> None:
    async with page() as (_, client):
        answer = await client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert holds in answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers


def test_the_page_holds_no_inline_script_or_style_that_its_policy_forbids() -> None:
    text = (Path(hubs.__file__).parent / "static" / "index.html").read_text()
    assert "<script>" not in text
    assert "style=" not in text
    assert "onclick" not in text


@pytest.mark.parametrize("path", ["/", "/events", "/preview", "/nowhere"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:80"}, 421),
        ({"host": "localhost@evil.example"}, 421),
        ({"host": ""}, 421),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:1"}, 403),
    ],
)
async def test_whoever_is_not_this_machines_own_page_is_refused(path: str, headers: dict, status: int) -> None:
    async with page(has_camera=True) as (_, client):
        assert (await client.get(path, headers=headers)).status_code == status


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:8484"])
async def test_this_machines_own_names_are_served(host: str) -> None:
    async with page() as (_, client):
        same = {"host": host, "sec-fetch-site": "same-origin", "origin": f"http://{host.lower()}"}
        assert (await client.get("/", headers=same)).status_code == 200


async def test_nothing_can_be_changed_and_nothing_else_is_there() -> None:
    async with page() as (_, client):
        own = {"origin": str(client.base_url).rstrip("/")}
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert (await client.request(method, "/", headers=own)).status_code == 405
            assert (await client.request(method, "/")).status_code == 403
        for path in ("/drop", "/correct", "/leave"):
            assert (await client.post(path, headers=own)).status_code == 404
        assert (await client.get("/../pyproject.toml")).status_code == 404
        assert (await client.get("/preview")).status_code == 404


async def test_the_preview_streams_small_pictures_and_skips_those_nobody_fetched() -> None:
    frame = cv2.resize(letter(), (4000, 3000))
    async with page(has_camera=True) as (hub, client), client.stream("GET", "/preview") as answer:
        assert answer.headers["content-type"] == "multipart/x-mixed-replace; boundary=frame"
        await until(lambda: bool(hub._lookers))
        hub.show(frame)
        held = b""
        async for part in answer.aiter_bytes():
            held += part
            if held.count(b"--frame") == 2:
                break
    head, _, rest = held.partition(b"\r\n\r\n")
    assert b"content-type: image/jpeg" in head
    small = cv2.imdecode(np.frombuffer(rest.partition(b"\r\n--frame")[0], np.uint8), cv2.IMREAD_COLOR)
    assert small.shape == (480, 640, 3)


async def test_while_nobody_looks_no_preview_is_made() -> None:
    made: list[int] = []
    async with page(has_camera=True, encode=lambda pixels: made.append(1) or b"jpeg") as (hub, client):
        hub.show(letter())
        assert made == []
        async with client.stream("GET", "/preview") as answer:
            await until(lambda: bool(hub._lookers))
            hub.show(letter())
            await anext(answer.aiter_bytes())
        await until(lambda: not hub._lookers)
        hub.show(letter())
    assert made == [1]


async def test_a_listener_hears_the_story_so_far_and_then_what_comes() -> None:
    async with page() as (hub, client):
        hub.tell({"type": "document", "document_id": "old"})
        hub.tell({"type": "document", "document_id": "a", "file": "ä.jpg"})
        hub.tell({"type": "line", "text": "<b>总计</b>"})
        await asyncio.sleep(0)
        async with client.stream("GET", "/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            heard = events(answer)
            assert [await anext(heard) for _ in range(3)] == [
                {"type": "camera", "present": False},
                {"type": "document", "document_id": "a", "file": "ä.jpg"},
                {"type": "line", "text": "<b>总计</b>"},
            ]
            threading.Thread(target=hub.tell, args=({"type": "state", "state": "packed"},)).start()
            assert await anext(heard) == {"type": "state", "state": "packed"}


async def test_a_listener_that_falls_behind_is_let_go_and_the_story_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(hubs, "_BEHIND", 4)
    monkeypatch.setattr(hubs, "_STORY", 6)
    hub = Hub(asyncio.get_running_loop())
    slow, fast = hub.listen(), hub.listen()
    for number in range(9):
        hub._append({"type": "line", "number": number})
        assert (await fast.get())["number"] == number
    assert await slow.get() is None
    assert len(hub.listen().story) == 1 + 6


async def test_only_so_many_may_look_and_listen_and_a_place_comes_free() -> None:
    async with page(has_camera=True) as (hub, client):
        for path, held in (("/events", hub._listeners), ("/preview", hub._lookers)):
            taken = [client.send(client.build_request("GET", path), stream=True) for _ in range(hubs.MAX_LISTENERS)]
            answers = [await answer for answer in taken]
            assert {answer.status_code for answer in answers} == {200}
            full = await client.get(path)
            assert (full.status_code, full.headers["retry-after"]) == (503, "5")
            for answer in answers:
                await answer.aclose()
            await until(lambda held=held: not held)


async def test_streams_end_when_the_agent_does() -> None:
    async with page(has_camera=True) as (hub, client):
        listening = await client.send(client.build_request("GET", "/events"), stream=True)
        looking = await client.send(client.build_request("GET", "/preview"), stream=True)
        await until(lambda: bool(hub._listeners) and bool(hub._lookers))
        hub.close()
        assert (await listening.aread()).endswith(b"\n\n")
        assert await looking.aread() == b"--frame\r\n"
        hub.tell({"type": "line"})
        hub.show(letter())
        assert await hub.listen().get() is None
        assert await hub.look().get() is None


def test_a_port_in_use_is_named() -> None:
    with listen(0) as other:
        other.listen()
        with pytest.raises(ConfigurationError, match="cannot be used"):
            listen(other.getsockname()[1])


def test_a_preview_never_enlarges() -> None:
    for shape in ((1, 1, 3), (1, 3000, 3), (300, 200, 3)):
        small = cv2.imdecode(np.frombuffer(preview(np.zeros(shape, np.uint8)), np.uint8), cv2.IMREAD_COLOR)
        assert max(small.shape[:2]) <= min(640, max(shape[:2]))


def noticed(frame, *, on_notice=None, degradation=None):
    """The double's answer, with notices as a real reading gives them."""
    examined = examiner(frame)
    if on_notice is not None:
        line = examined.assessment.reading.document.lines[0]
        page = PageImage(examined.page.pixels, Quality(hint="Blurred: please hold still."))
        reading = examined.assessment.reading
        for notice in (page, LayoutHint(()), LinesHint((line.polygon,)), LineRead(line), reading):
            on_notice(notice, 0)
    return examined


async def test_the_page_follows_a_page_laid_before_the_camera(tmp_path: Path, link) -> None:
    desk = DirectDesk(lambda _: noticed, Policies(Policy(audit_share=0.0)), Pictures())
    async with page(has_camera=True) as (hub, client):
        watch = Watch(Table(letter()), show=hub.show)
        options = {"watch": watch, "look_pause_s": 0.0, "desk": desk, "tell": hub.tell}
        async with (
            client.stream("GET", "/events") as answer,
            client.stream("GET", "/preview") as pictures,
            running(tmp_path, link.port, [], **options) as outbox,
        ):
            heard = await first(answer, 8)
            assert b"--frame" in await anext(pictures.aiter_bytes())
            await until(lambda: bool(outbox.in_state(State.DELIVERED)))
    assert [event["type"] for event in heard] == [
        *("camera", "document", "page", "layout", "lines", "line", "read", "state"),
    ]
    assert heard[1]["file"].startswith("camera-")
    assert heard[2]["hint"] == "Blurred: please hold still."
    assert len(heard[2]["to_frame"]) == 9
    assert heard[5]["text"] == "hello"
    assert heard[7]["state"] == "packed"
    assert heard[7]["document_id"] == heard[1]["document_id"]


async def test_a_document_that_failed_and_a_camera_that_is_away_are_told(tmp_path: Path, link, monkeypatch) -> None:
    monkeypatch.setattr("docferry_edge.agent._CAMERA_PAUSE_S", 0.01)
    told: list[dict] = []
    table = Table(None)
    put(tmp_path, "a.jpg", b"bad")
    async with running(tmp_path, link.port, [], watch=Watch(table), look_pause_s=0.0, tell=told.append) as outbox:
        await until(lambda: bool(outbox.in_state(State.FAILED)) and any(event["type"] == "camera" for event in told))
        table.page = np.zeros((60, 80, 3), np.uint8)
        await until(lambda: {"type": "camera", "state": "back"} in told)
        await until(lambda: any(event["type"] == "state" for event in told))
    state = next(event for event in told if event["type"] == "state")
    assert (state["state"], state["reason"]) == ("failed", "a.jpg: damaged")
    away = next(event for event in told if event["type"] == "camera")
    assert away["reason"] == "table: the camera gives no picture"


def test_every_hint_is_json_with_plain_numbers() -> None:
    hints: list[dict] = []
    DirectDesk(lambda _: noticed, Policies(Policy(audit_share=0.0)), Pictures()).read(
        Job(job().identity, b"good"), hints.append
    )
    assert json.loads(json.dumps(hints)) == hints
    assert [hint["type"] for hint in hints] == ["page", "layout", "lines", "line", "read"]


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
    return {"type": "document", "document_id": document_id, "captured_at": outbox.get(document_id).captured_at}


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
