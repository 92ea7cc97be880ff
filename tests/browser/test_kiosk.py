"""The kiosk's page: everything a guest sees and does before it, on the screen of a kiosk, without a network."""

import asyncio
import json
import sys
import time
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import expect

from docferry.async_client import AsyncClient
from docferry.document import Document, Line, Page, Region, RegionType
from docferry.v1 import analysis_pb2
from docferry_edge.desk import edge_answer
from docferry_edge.kiosk.guest import Guest, answer_of, qr_code
from docferry_edge.kiosk.hub import Hub
from docferry_edge.kiosk.server import listen, serve
from docferry_edge.outbox import Outbox
from tests.browser.documents import MALICE, picture_file
from tests.browser.watched import FIRST_PAINT_BYTES

LINK = "https://docferry.example/c/dfl_0123456789ab_" + "x" * 43
NOWHERE = "127.0.0.1:9"
"""Nobody listens there: the cable is pulled."""


@dataclass
class Kiosk:
    """The page's server with its hub, an outbox of its own, and no network."""

    url: str
    hub: Hub
    guest: Guest
    outbox: Outbox

    def tell(self, kind, **fields):
        self.guest.tell({"type": kind, **fields})

    def scanned(self, name):
        """A document that a watched folder brings; its id."""
        head = {"source": f"inbox|{name}", "file_name": name, "captured_at": time.time()}
        return self.outbox.capture(data=name.encode(), **head).document_id

    async def read(self, document_id, texts):
        """What the agent tells while it reads a page, up to its answer."""
        entry = self.outbox.get(document_id)
        head = {"captured_at": entry.captured_at, "handed_in": entry.handed_in}
        self.tell("document", document_id=document_id, file="receipt.jpg", **head)
        unit = [1, 0, 0, 0, 1, 0, 0, 0, 1]
        self.tell("page", width=800, height=1200, to_frame=unit, hint="Too small: please move closer.", page=0)
        self.tell("layout", regions=[{"type": "table", "box": [0.1, 0.1, 0.9, 0.6], "score": 0.9}], page=0)
        quads = [_quad(n) for n in range(len(texts))]
        self.tell("lines", polygons=quads, page=0)
        for number, (text, quad) in enumerate(zip(texts, quads, strict=True)):
            self.tell("line", id=f"r1.l{number}", text=text, polygon=quad, score=0.9, page=0)

    def packed(self, document_id, texts):
        self.outbox.packed(document_id, request=b"r", parts=(), edge_answer=_answer(texts), timings={})
        self.tell("state", document_id=document_id, file="receipt.jpg", state="packed")


def _quad(number):
    top = 0.05 + number * 0.02
    return [[0.1, top], [0.8, top], [0.8, top + 0.015], [0.1, top + 0.015]]


def _answer(texts) -> bytes:
    """The second line is in doubt."""
    lines = tuple(
        Line(f"r1.l{n}", text, tuple(map(tuple, _quad(n))), 0.9, confidence=0.4 if n == 1 else 0.99)
        for n, text in enumerate(texts)
    )
    page = Page(800, 1200, (Region("r1", RegionType.TABLE, (0.1, 0.05, 0.8, 0.9), 0, lines=lines),))
    return edge_answer(Document((page,)))


@pytest_asyncio.fixture(loop_scope="session")
async def kiosk(tmp_path):
    hub = Hub(asyncio.get_running_loop())
    outbox = Outbox(tmp_path / "outbox")
    listener = listen(0)
    async with AsyncClient.connect(NOWHERE) as client:
        guest = Guest(outbox, client, hub.tell, pause_s=0.02)
        tasks = [asyncio.create_task(serve(hub, listener, guest)), asyncio.create_task(guest.run())]
        try:
            yield Kiosk(f"http://127.0.0.1:{listener.getsockname()[1]}/", hub, guest, outbox)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            outbox.close()


async def _fits(page):
    """Nothing has to be scrolled for, and what is to be touched is large and within the screen."""
    sizes = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert sizes[0] <= 1024
    assert sizes[1] <= 600
    for one in await page.locator("button:visible, #drop:visible, #qr:visible").all():
        box = await one.bounding_box()
        name = await one.evaluate("element => element.id || element.textContent")
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= 600, (name, box)
        assert box["x"] + box["width"] <= 1024, (name, box)
        assert min(box["width"], box["height"]) >= 48, (name, box)


@pytest.mark.parametrize(("scheme", "language"), [("light", "en-US"), ("dark", "zh-CN")])
async def test_a_guest_goes_from_the_photo_to_the_link_without_scrolling(open_page, kiosk, tmp_path, scheme, language):
    watched = await open_page("kiosk", scheme=scheme, language=language)
    page = watched.page
    await watched.goto(kiosk.url)
    chosen = "选择照片或拖放到此处" if language == "zh-CN" else "Choose or drop a photo"
    await expect(page.locator("#drop-text")).to_have_text(chosen)
    await _fits(page)
    assert await watched.problems_of_access() == []
    assert watched.transferred <= FIRST_PAINT_BYTES
    await watched.shot("kiosk-waiting")
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    (entry,) = kiosk.outbox.in_state("captured")
    texts = [f"Line number {n} of a receipt that is long enough to be cut off at the edge" for n in range(40)]
    await kiosk.read(entry.document_id, texts)
    await expect(page.locator("#boxes .region")).to_have_count(1)
    await expect(page.locator("#boxes .read")).to_have_count(40)
    await expect(page.locator("#hint")).not_to_be_empty()
    await expect(page.locator("#found")).to_have_text("已识别表格" if language == "zh-CN" else "Table recognised")
    await _fits(page)
    await watched.shot("kiosk-reading")
    kiosk.packed(entry.document_id, texts)
    await expect(page.locator("#boxes .doubt")).to_have_count(1)
    kiosk.hub.tell({"type": "claim", "document_id": entry.document_id, "link": LINK, **qr_code(LINK)})
    content = analysis_pb2.Interpretation.FromString(_answer(texts))
    content.summary = "Receipt from Corner Shop, 2024-03-12, total 9.00, and a summary that goes on for a while"
    for name in ("merchant", "date", "total", "invoice_number", "tax"):
        content.document.fields.add(name=name, value="something rather long that does not fit beside its name")
    kiosk.hub.tell(answer_of(entry.document_id, 2, content))
    kiosk.hub.tell({"type": "state", "document_id": entry.document_id, "state": "settled"})
    await expect(page.locator("#steps .done")).to_have_count(3)
    await expect(page.locator("#qr path")).to_be_visible()
    await _fits(page)
    assert await watched.problems_of_access() == []
    await watched.shot("kiosk-answer")


async def test_a_doubtful_line_is_put_right_by_touch_and_kept_without_a_network(open_page, kiosk, tmp_path):
    watched = await open_page("kiosk")
    page = watched.page
    await watched.goto(kiosk.url)
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    (entry,) = kiosk.outbox.in_state("captured")
    texts = ["Corner Shop", "TOTL 9.OO", "Thank you"]
    await kiosk.read(entry.document_id, texts)
    kiosk.packed(entry.document_id, texts)
    await page.locator("#doubts button").tap()
    await expect(page.locator("#said")).to_have_value("TOTL 9.OO")
    await _fits(page)
    assert await watched.problems_of_access() == []
    await watched.shot("kiosk-pen")
    await page.fill("#said", "TOTAL 9.00")
    await page.locator("#save").tap()
    await expect(page.locator("#hint")).to_have_text("Thank you, kept.")
    await expect(page.locator("#boxes .doubt")).to_have_count(0)
    (kept,) = json.loads(kiosk.outbox.mark("kiosk.corrections"))
    assert (kept["document_id"], kept["text"]) == (entry.document_id, "TOTAL 9.00")


@pytest.mark.parametrize("how", ["button", "time"])
async def test_nothing_stays_on_the_screen_once_the_guest_has_gone(open_page, kiosk, tmp_path, how):
    watched = await open_page("kiosk")
    page = watched.page
    await page.clock.install()
    await watched.goto(kiosk.url)
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    (entry,) = kiosk.outbox.in_state("captured")
    await kiosk.read(entry.document_id, ["Corner Shop", "secret"])
    kiosk.packed(entry.document_id, ["Corner Shop", "secret"])
    await expect(page.locator("#doubts")).to_contain_text("secret")
    if how == "button":
        await page.locator("#leave").tap()
    else:
        await page.clock.fast_forward(61_000)
    await expect(page.locator("#doubts li")).to_have_count(0)
    assert "secret" not in await page.content()
    await expect(page.locator("#photo")).to_be_hidden()
    other = await open_page("kiosk")
    await other.goto(kiosk.url)
    await expect(other.page.locator("body.idle")).to_be_visible()
    assert "secret" not in await other.page.content()


async def test_whoever_walks_away_while_a_page_is_read_leaves_nothing(open_page, kiosk, tmp_path):
    watched = await open_page("kiosk")
    page = watched.page
    await page.clock.install()
    await watched.goto(kiosk.url)
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    (entry,) = kiosk.outbox.in_state("captured")
    await kiosk.read(entry.document_id, ["Corner Shop", "secret"])
    await expect(page.locator("#lines")).to_contain_text("secret")
    await page.clock.fast_forward(61_000)
    await expect(page.locator("#lines")).to_contain_text("secret")
    await page.clock.fast_forward(240_000)
    await expect(page.locator("#lines li")).to_have_count(0)
    # It is read on; a newer guest's document shows that what was told before has come and gone.
    kiosk.tell("line", id="r1.l2", text="secret", polygon=_quad(2), score=0.9, page=0)
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    (_, newer) = kiosk.outbox.in_state("captured")
    await kiosk.read(newer.document_id, ["Other Shop"])
    await expect(page.locator("#lines li")).to_have_text(["Other Shop"])
    assert "secret" not in await page.content()


async def test_a_watched_folder_takes_no_screen_from_a_guest(open_page, kiosk, tmp_path):
    watched = await open_page("kiosk")
    page = watched.page
    await watched.goto(kiosk.url)
    scan = kiosk.scanned("scan.jpg")
    await kiosk.read(scan, ["of the folder"])
    await expect(page.locator("#lines")).to_contain_text("of the folder")
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    own = next(entry for entry in kiosk.outbox.in_state("captured") if entry.handed_in)
    # The folder's document is still read when the guest's photo is there, and another one comes before it.
    kiosk.tell("line", id="r1.l1", text="of the folder", polygon=_quad(1), score=0.9, page=0)
    await kiosk.read(kiosk.scanned("second.jpg"), ["of the folder"])
    await kiosk.read(own.document_id, ["Corner Shop", "mine"])
    await expect(page.locator("#lines li")).to_have_text(["Corner Shop", "mine"])
    await expect(page.locator("#photo")).to_be_visible()
    kiosk.packed(own.document_id, ["Corner Shop", "mine"])
    await expect(page.locator("#doubts")).to_contain_text("mine")
    await kiosk.read(kiosk.scanned("third.jpg"), ["of the folder"])
    kiosk.tell("state", document_id=own.document_id, file="receipt.jpg", state="sent")
    await expect(page.locator("#steps .done")).to_have_count(2)
    await expect(page.locator("#doubts")).to_contain_text("mine")
    assert "of the folder" not in await page.content()
    # Nobody is there any more.
    await page.locator("#leave").tap()
    await expect(page.locator("body.idle")).to_be_visible()
    await kiosk.read(kiosk.scanned("fourth.jpg"), ["of the folder"])
    await expect(page.locator("#lines")).to_contain_text("of the folder")


async def test_nothing_that_a_document_holds_is_run_on_the_kiosk(open_page, kiosk, tmp_path):
    watched = await open_page("kiosk")
    page = watched.page
    await watched.goto(kiosk.url)
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#photo")).to_be_visible()
    (entry,) = kiosk.outbox.in_state("captured")
    texts = [MALICE.format(n) for n in range(3)]
    await kiosk.read(entry.document_id, texts)
    kiosk.packed(entry.document_id, texts)
    await expect(page.locator("#doubts button")).to_contain_text("onerror")
    kiosk.hub.tell({"type": "state", "document_id": entry.document_id, "state": "failed", "reason": MALICE})
    await expect(page.locator("#state")).to_contain_text("onerror")
    assert await page.evaluate("window.hit") is None
    assert await page.locator("[onerror], [onload], #side script").count() == 0


async def test_what_cannot_be_taken_is_said_in_plain_words(open_page, kiosk, tmp_path, monkeypatch):
    monkeypatch.setattr("docferry_edge.kiosk.server.MAX_PART_BYTES", 10)
    watched = await open_page("kiosk")
    await watched.goto(kiosk.url)
    await watched.page.set_input_files("#file", picture_file(tmp_path))
    await expect(watched.page.locator("#hint")).to_have_text("This cannot be taken.")
    watched.forgive("status of 400")


async def test_the_language_is_changed_by_touch(open_page, kiosk):
    watched = await open_page("kiosk")
    await watched.goto(kiosk.url)
    await watched.page.locator("#language").tap()
    await expect(watched.page.locator("#state")).to_have_text("请放好文件。")
    assert await watched.page.evaluate("document.documentElement.lang") == "zh-Hans"


@pytest_asyncio.fixture(loop_scope="session")
async def agent(tmp_path):
    """Starts the real agent with its page; gives the page's address."""
    processes = []

    async def start(target: str) -> str:
        listener = listen(0)
        port = listener.getsockname()[1]
        listener.close()
        (tmp_path / "inbox").mkdir(exist_ok=True)
        config = tmp_path / "edge.toml"
        config.write_text(
            f'[inbox]\ndirectory = "{tmp_path}/inbox"\n[state]\ndirectory = "{tmp_path}/edge"\n'
            f'[cloud]\ntarget = "{target}"\n[kiosk]\nport = {port}\n[route]\naudit_share = 0.0\n'
        )
        command = (sys.executable, "-m", "docferry.cli", "edge", "run", "--config", str(config), "--json")
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=16 << 20
        )
        processes.append(process)
        async with asyncio.timeout(60):
            assert json.loads(await process.stdout.readline())["status"] == "ready"
        return f"http://127.0.0.1:{port}/"

    yield start
    for process in processes:
        process.terminate()
        await process.wait()


# The agent first, so that the page is closed before it: a page complains when its server goes.
async def test_the_real_agent_reads_with_the_network_cut(agent, open_page, tmp_path):
    watched = await open_page("kiosk")
    page = watched.page
    await watched.goto(await agent(NOWHERE))
    await page.set_input_files("#file", picture_file(tmp_path))
    await expect(page.locator("#boxes .region").first).to_be_attached(timeout=30_000)
    await expect(page.locator("#state")).to_have_text("Read here", timeout=30_000)
    await expect(page.locator("#steps .done")).to_have_count(1)
    assert await page.locator("#boxes .read").count() > 10
    await _fits(page)
    assert await watched.problems_of_access() == []
    await watched.shot("kiosk-offline")
