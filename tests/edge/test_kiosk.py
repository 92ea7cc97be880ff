"""The kiosk's page over real sockets: what it shows, whom it refuses, and that nobody can slow the agent down."""

import asyncio
import json
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest

from docferry.document import Quality
from docferry.errors import ConfigurationError
from docferry_edge.camera import Watch
from docferry_edge.desk import Job
from docferry_edge.entry import State
from docferry_edge.kiosk import hub as hubs
from docferry_edge.kiosk.hub import Hub, preview
from docferry_edge.kiosk.server import listen
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.prepare import PageImage
from docferry_edge.read import LayoutHint, LineRead, LinesHint
from docferry_edge.route import Policy
from docferry_edge.work import DirectDesk
from tests.edge.kiosk_page import events, first, page
from tests.edge.preparation.papers import letter
from tests.edge.test_agent import Table, examiner, put, running, until
from tests.edge.test_reader_process import job


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
            heard = await first(answer, 9)
            assert b"--frame" in await anext(pictures.aiter_bytes())
            await until(lambda: bool(outbox.in_state(State.DELIVERED)))
    assert [event["type"] for event in heard] == [
        *("camera", "captured", "document", "page", "layout", "lines", "line", "read", "state"),
    ]
    assert heard[2]["file"].startswith("camera-")
    assert heard[2]["captured_at"] == heard[1]["captured_at"]
    assert heard[2]["handed_in"] is True
    assert heard[3]["hint"] == "Blurred: please hold still."
    assert len(heard[3]["to_frame"]) == 9
    assert heard[6]["text"] == "hello"
    assert heard[8]["state"] == "packed"
    assert heard[8]["document_id"] == heard[2]["document_id"]


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
