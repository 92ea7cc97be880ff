"""The phone's pages: a link is opened, the document is followed, searched, asked, and told about."""

import json
import re
import threading
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import expect

from docferry.channel import call_metadata
from docferry.document import RegionType
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import claim_service_pb2 as claim_pb
from docferry.v1 import claim_service_pb2_grpc, document_pb2
from docferry_cloud.phone.words import WORDS
from tests.browser.documents import EVIL_LATEX, EVIL_TABLE, MALICE, TABLE, malicious, photo, receipt
from tests.browser.pushes import deliver, shown, subscribing
from tests.browser.watched import FIRST_PAINT_BYTES
from tests.cloud.service.running import DEADLINE, EchoEngine, running_server

EN, ZH = WORDS["en"], WORDS["zh"]


class HeldEngine(EchoEngine):
    """Waits before each page until it is `free`; finds the cells of the table, which no edge does."""

    def __init__(self):
        super().__init__(self._wait)
        self.free = threading.Event()
        self.free.set()

    def read(self, page, effort, cancelled):
        read = super().read(page, effort, cancelled)
        malice = any("onerror" in line.text for line in read.lines)
        found = {
            RegionType.TABLE: {"html": EVIL_TABLE if malice else TABLE},
            RegionType.EQUATION: {"latex": EVIL_LATEX},
        }
        return replace(read, regions=tuple(replace(one, **found.get(one.type, {})) for one in read.regions))

    def _wait(self, page, cancelled):
        assert self.free.wait(DEADLINE)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(tmp_path_factory):
    engine = HeldEngine()
    settings = {"push_contact": "mailto:ops@example.com", "http_port": 0}
    async with running_server(tmp_path_factory.mktemp("phone"), lambda: engine, **settings) as server:
        server.engine = engine
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def caller(service):
    return service.caller()


@pytest_asyncio.fixture(loop_scope="session")
async def finished(caller):
    """A receipt that was understood, with its picture."""
    taken = await caller.submit(receipt(picture=photo()))
    return await caller.finished(taken.analysis_id)


async def linked(service, caller, analysis_id) -> str:
    stub = claim_service_pb2_grpc.ClaimServiceStub(service.channel)
    request = claim_pb.ClaimServiceCreateRequest(analysis_id=analysis_id)
    return (await stub.Create(request, timeout=DEADLINE, metadata=call_metadata(caller.token))).link


async def claimed(open_page, service, caller, analysis_id, **options):
    """A phone that has opened the document's link and shows its page."""
    watched = await open_page("phone", **options)
    await watched.goto(await linked(service, caller, analysis_id))
    await watched.page.wait_for_url(f"**/r/{analysis_id}")
    await watched.page.wait_for_load_state("load")
    return watched


@pytest.mark.parametrize(("scheme", "language"), [("light", "en-US"), ("dark", "zh-CN")])
async def test_the_phone_that_opens_the_link_first_gets_the_document(
    open_page, service, caller, finished, scheme, language
):
    watched = await claimed(open_page, service, caller, finished.analysis_id, scheme=scheme, language=language)
    words = ZH if language.startswith("zh") else EN
    await expect(watched.page.locator(".state")).to_contain_text(words["done"])
    await expect(watched.page.locator(".fields")).to_contain_text("4711")
    assert await watched.problems_of_access() == []
    assert watched.transferred <= FIRST_PAINT_BYTES
    (cookie,) = [c for c in await watched.page.context.cookies(watched.page.url) if c["name"] == "docferry_claim"]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    assert cookie["path"] == f"/r/{finished.analysis_id}"
    assert await watched.page.evaluate("document.cookie") == ""
    await watched.shot("phone-result")


async def test_a_second_phone_and_another_document_are_not_found(open_page, service, caller, finished):
    link = await linked(service, caller, finished.analysis_id)
    first, second = await open_page("phone"), await open_page("phone")
    await first.goto(link)
    await first.page.wait_for_url("**/r/*")
    await second.goto(link)
    await expect(second.page.locator(".problem")).to_have_text(EN["gone"])
    second.forgive("status of 404")
    assert await second.problems_of_access() == []
    await second.shot("phone-gone")
    # The first may scan the code again.
    await first.goto(link)
    assert first.page.url.endswith(f"/r/{finished.analysis_id}")
    other = await caller.submit(receipt())
    origin = service.server.http_address
    cookies = {"docferry_claim": (await first.page.context.cookies(first.page.url))[0]["value"]}
    header = "; ".join(f"{name}={value}" for name, value in cookies.items())
    for path in (f"/r/{other.analysis_id}", f"/r/{other.analysis_id}/pages/0", f"/r/{other.analysis_id}/events"):
        answer = await first.page.request.get(origin + path, headers={"cookie": header})
        assert answer.status == 404, path
    for path in ("/v1/analyses", "/v1/subscriptions"):
        answer = await first.page.request.get(origin + path, headers={"cookie": header})
        assert answer.status == 403, path


async def test_a_link_is_not_used_up_by_what_only_looks_at_it(open_page, service, caller, finished):
    link = await linked(service, caller, finished.analysis_id)
    watched = await open_page("phone")
    for _ in range(2):
        assert (await watched.page.request.get(link)).status == 200
    await watched.goto(link)
    await watched.page.wait_for_url(f"**/r/{finished.analysis_id}")


async def test_what_is_taken_back_is_gone_from_the_phone_too(open_page, service, caller, finished):
    watched = await claimed(open_page, service, caller, finished.analysis_id)
    stub = claim_service_pb2_grpc.ClaimServiceStub(service.channel)
    await stub.Revoke(
        claim_pb.ClaimServiceRevokeRequest(analysis_id=finished.analysis_id), metadata=call_metadata(caller.token)
    )
    # Without being loaded again: its stream of events ends, and is not taken up any more.
    await expect(watched.page.locator(".problem")).to_have_text(EN["gone"], timeout=15_000)
    watched.forgive("status of 40[14]")


async def test_a_field_lights_up_where_it_stands_and_is_copied(open_page, service, caller, finished):
    watched = await claimed(
        open_page, service, caller, finished.analysis_id, permissions=["clipboard-read", "clipboard-write"]
    )
    page = watched.page
    field = page.locator("button.field", has_text="4711")
    await field.click()
    lit = page.locator(".sheet rect.lit")
    await expect(lit).to_have_count(1)
    assert float(await lit.get_attribute("y")) == 160
    await expect(field).to_have_attribute("aria-pressed", "true")
    assert await page.locator(".sheet img").evaluate("img => img.decode().then(() => img.naturalHeight)") == 1000
    await watched.shot("phone-field")
    await field.click()
    await expect(lit).to_have_count(0)
    await page.locator("li", has=field).locator(".copy").click()
    await expect(page.locator("li", has=field).locator(".copy")).to_have_text(EN["copied"])
    assert await page.evaluate("navigator.clipboard.readText()") == "4711"


async def test_tables_come_as_files(open_page, service, caller, finished):
    watched = await claimed(open_page, service, caller, finished.analysis_id)
    # Once among the tables, once in the text of the document, which is folded up.
    await expect(watched.page.locator("table td", has_text="Tea & cake").first).to_be_visible()
    await watched.page.locator("summary", has_text=EN["text"]).click()
    await expect(watched.page.locator(".read td", has_text="Tea & cake")).to_be_visible()
    for name, begin in (("csv", b""), ("xlsx", b"PK")):
        async with watched.page.expect_download() as coming:
            await watched.page.locator(".exports a", has_text=name).click()
        file = await (await coming.value).path()
        assert file.read_bytes().startswith(begin)
        assert name != "csv" or "Tea & cake" in file.read_text()


async def test_a_question_is_answered_and_shown(open_page, service, caller, finished):
    watched = await claimed(open_page, service, caller, finished.analysis_id)
    page = watched.page
    await page.fill("#question", "What is the total?")
    await page.click("#ask button")
    await expect(page.locator("#answer")).to_contain_text("9.00")
    await expect(page.locator(".sheet rect.lit")).to_have_count(1)
    await page.fill("#question", "What is the colour of the sky?")
    await page.click("#ask button")
    await expect(page.locator("#answer")).to_have_text(EN["no_answer"])


async def test_the_page_follows_the_document_from_waiting_to_version_after_version(open_page, service, caller):
    service.engine.free.clear()
    try:
        taken = await caller.submit(receipt(picture=photo()))
        watched = await claimed(open_page, service, caller, taken.analysis_id)
        page = watched.page
        await expect(page.locator("progress")).to_be_visible()
        await expect(page.locator(".state")).to_contain_text(EN["running"])
        await watched.shot("phone-running")
        assert await watched.problems_of_access() == []
    finally:
        service.engine.free.set()
    await expect(page.locator(".state")).to_contain_text(f"{EN['done']} · {EN['version']} 2")
    await expect(page.locator("progress")).to_have_count(0)
    correction = pb.LineCorrection(page=0, line_id="r1.l3", text="Total: 19.00")
    total = document_pb2.Field(name="total", value="19.00")
    change = pb.CorrectRequest(analysis_id=taken.analysis_id, version=2, lines=[correction], fields=[total])
    await caller("Correct", change)
    await expect(page.locator(".state")).to_contain_text(f"{EN['version']} 3")
    await expect(page.locator(".fields")).to_contain_text("19.00")


async def test_without_a_picture_the_text_is_shown_on_a_blank_page(open_page, service, caller):
    taken = await caller.finished((await caller.submit(receipt())).analysis_id)
    watched = await claimed(open_page, service, caller, taken.analysis_id)
    answer = await watched.page.request.get(f"{watched.page.url}/pages/0")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert ">Corner Shop</text>" in await answer.text()
    assert await watched.page.locator(".sheet img").evaluate("img => img.decode().then(() => img.naturalWidth)") == 800
    await watched.shot("phone-blank")


async def test_fifty_pages_are_fetched_as_they_are_looked_at(open_page, service, caller):
    taken = await caller.finished((await caller.submit(receipt(pages=50))).analysis_id)
    watched = await open_page("phone")
    fetched = []
    watched.page.on("request", lambda request: fetched.append(request.url) if "/pages/" in request.url else None)
    await watched.goto(await linked(service, caller, taken.analysis_id))
    await expect(watched.page.locator(".sheet")).to_have_count(50)
    assert 0 < len(fetched) < 10
    assert watched.transferred <= FIRST_PAINT_BYTES


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
async def test_nothing_that_a_document_holds_is_run(open_page, service, caller, language):
    taken = await caller.finished((await caller.submit(malicious())).analysis_id)
    field = document_pb2.Field(name="<img src=x onerror=window.hit=1>", value=MALICE.format("value"))
    await caller("Correct", pb.CorrectRequest(analysis_id=taken.analysis_id, version=2, fields=[field]))
    watched = await claimed(open_page, service, caller, taken.analysis_id, language=language)
    page = watched.page
    await page.locator("button.field").first.click()
    await page.locator("summary").click()
    await page.fill("#question", "What is the total?")
    await page.click("#ask button")
    await expect(page.locator("#answer")).not_to_have_text(re.compile("Looking|正在查找|^$"))
    picture = await page.context.new_page()
    await picture.goto(f"{page.url}/pages/0")
    for seen in (page, picture):
        assert await seen.evaluate("window.hit") is None
        assert (
            await seen.evaluate("document.querySelectorAll('[onerror],[onload],[onclick],a[href^=javascript]').length")
            == 0
        )
    assert await page.locator("script").count() == 1
    assert "<script>window.hit='name'</script>.jpg" in await page.locator(".state .file").inner_text()
    assert "onerror" in await page.locator(".read").inner_text()


async def test_a_form_of_another_site_changes_nothing(open_page, service, caller, finished):
    watched = await claimed(open_page, service, caller, finished.analysis_id)
    cookie = (await watched.page.context.cookies(watched.page.url))[0]
    head = {"cookie": f"{cookie['name']}={cookie['value']}", "content-type": "application/json"}
    ask = f"{watched.page.url}/ask"
    for extra in ({}, {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        answer = await watched.page.request.post(ask, headers=head | extra, data=json.dumps({"question": "total?"}))
        assert answer.status == 403, extra
    own = {"origin": service.server.http_address}
    answer = await watched.page.request.post(ask, headers=head | own, data=json.dumps({"question": "total?"}))
    assert answer.status == 200


async def test_a_push_reaches_the_real_worker_which_shows_it_and_opens_the_result(
    open_page, service, caller, push_service
):
    taken = await caller.submit(receipt())
    await caller.finished(taken.analysis_id)
    watched = await open_page("phone", permissions=["notifications"])
    keys = await subscribing(watched.page, push_service.url)
    await watched.goto(await linked(service, caller, taken.analysis_id))
    await watched.page.wait_for_url("**/r/*")
    page = watched.page
    await page.click("#notify")
    await expect(page.locator("#notify")).to_have_text(EN["notified"])
    assert await page.evaluate("asked.applicationServerKey.length") == 65
    correction = pb.LineCorrection(page=0, line_id="r1.l3", text="Total: 19.00")
    await caller("Correct", pb.CorrectRequest(analysis_id=taken.analysis_id, version=2, lines=[correction]))
    plain = (await keys.read((await push_service.next()).body)).decode()
    message = json.loads(plain)
    assert message["analysis_id"] == taken.analysis_id
    await deliver(page, service.server.http_address, plain)
    assert await shown(page) == [[message["title"], f"/r/{taken.analysis_id}"]]
    (worker,) = page.context.service_workers
    opened = await worker.evaluate(
        """async () => {
          let opened = "";
          self.clients.openWindow = async (address) => { opened = address; };
          self.clients.matchAll = async () => [];
          const [notification] = await self.registration.getNotifications();
          const event = new NotificationEvent("notificationclick", {notification});
          const waits = [];
          event.waitUntil = (work) => waits.push(work);
          self.dispatchEvent(event);
          await Promise.all(waits);
          return opened;
        }"""
    )
    assert opened == f"{service.server.http_address}/r/{taken.analysis_id}"


async def test_without_a_connection_the_shell_says_so(open_page, service, caller, finished):
    watched = await claimed(open_page, service, caller, finished.analysis_id)
    page = watched.page
    await page.evaluate("navigator.serviceWorker.ready.then(() => caches.match('/phone/offline')).then(Boolean)")
    await page.reload()
    await page.context.set_offline(True)
    await page.goto(page.url)
    await expect(page.locator("h1")).to_have_text(EN["offline"])
    await watched.shot("phone-offline")
    # Chromium says so on the console, or not: depending on who noticed first.
    watched.forgive("ERR_INTERNET_DISCONNECTED", at_least=0)
    await page.context.set_offline(False)
    await page.click("a.button")
    await expect(page.locator(".state")).to_contain_text(EN["done"])


async def test_the_start_page_knows_what_this_phone_has_opened_and_nothing_else(open_page, service, caller, finished):
    stranger = await open_page("phone")
    await stranger.goto(f"{service.server.http_address}/r/")
    await expect(stranger.page.locator("#opened li")).to_have_count(0)
    watched = await claimed(open_page, service, caller, finished.analysis_id)
    await watched.goto(f"{service.server.http_address}/r/")
    await watched.page.locator("#opened a").click()
    await expect(watched.page.locator(".state")).to_contain_text(EN["done"])
    manifest = await (
        await watched.page.request.get(f"{service.server.http_address}/phone/manifest.webmanifest")
    ).json()
    assert manifest["start_url"] == "/r/"
