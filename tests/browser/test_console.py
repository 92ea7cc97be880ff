"""The operator's console in a browser: every page at its sizes, keyboard alone, lazily, and with malice in it."""

import re
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import expect

from docferry.document import RegionType
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import subscription_service_pb2 as subscription_pb
from docferry_cloud.access.rules import Scope
from tests.browser.documents import EVIL_LATEX, EVIL_TABLE, MALICE, TABLE, photo, receipt
from tests.browser.watched import FIRST_PAINT_BYTES
from tests.cloud.service.running import EchoEngine, running_server

PAGES = ("inbox", "review", "routing", "devices", "subscriptions", "keys")


class DoubtfulEngine(EchoEngine):
    """Doubts totals and whatever has malice in it; finds the cells of the table, which no edge does."""

    def read(self, page, effort, cancelled):
        read = super().read(page, effort, cancelled)
        malice = any("onerror" in line.text for line in read.lines)
        found = {RegionType.TABLE: EVIL_TABLE if malice else TABLE}

        def judged(line):
            return replace(line, confidence=0.4 if "Total" in line.text or "onerror" in line.text else 0.99)

        regions = (
            replace(
                one,
                lines=tuple(map(judged, one.lines)),
                html=found.get(one.type),
                latex=EVIL_LATEX if one.type is RegionType.EQUATION else None,
            )
            for one in read.regions
        )
        return replace(read, regions=tuple(regions))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(tmp_path_factory):
    async with running_server(tmp_path_factory.mktemp("console"), DoubtfulEngine, http_port=0) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def caller(service):
    return service.caller()


@pytest_asyncio.fixture(loop_scope="session")
async def hand_in(caller):
    async def handed_in(envelope):
        return (await caller.finished((await caller.submit(envelope)).analysis_id)).analysis_id

    return handed_in


@pytest_asyncio.fixture(loop_scope="session")
async def operator(open_page, service, caller):
    """A browser that logs in with a key as people do."""
    _, key = service.server._keys.create(caller.tenant, [Scope.ADMIN])

    async def logged_in(size="desktop", **options):
        watched = await open_page(size, **options)
        await watched.goto(f"{service.server.http_address}/console")
        await watched.page.keyboard.type(key)
        await watched.page.keyboard.press("Enter")
        await watched.page.wait_for_url("**/console/inbox")
        return watched

    return logged_in


async def _look(watched, url, name):
    """Open a page and hold it to what every page promises."""
    before = watched.transferred
    await watched.goto(url)
    assert await watched.problems_of_access() == [], name
    assert watched.transferred - before <= FIRST_PAINT_BYTES, name
    assert await watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    await watched.shot(f"console-{name}")


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("desktop", "dark"), ("phone", "dark")])
async def test_every_page_is_light_and_open_to_everyone(operator, service, hand_in, size, scheme):
    analysis_id = await hand_in(receipt())
    watched = await operator(size, scheme=scheme)
    console = f"{service.server.http_address}/console"
    for place in PAGES:
        await _look(watched, f"{console}/{place}", place)
    document = f"{console}/analyses/{analysis_id}"
    for name, url in (
        ("document", document),
        ("text", f"{document}/text"),
        ("compare", f"{document}/compare"),
        ("page", f"{document}/pages/0"),
        ("document-review", f"{console}/review/{analysis_id}"),
    ):
        await _look(watched, url, name)
    await watched.page.get_by_role("button", name="Log out").click()
    await watched.page.wait_for_url("**/console/login")
    assert await watched.problems_of_access() == []
    await watched.shot("console-login")


async def test_a_wrong_key_is_told_and_no_script_sees_the_session(operator, open_page, service):
    watched = await open_page()
    await watched.goto(f"{service.server.http_address}/console/login")
    await watched.page.get_by_label("API key").fill("wrong")
    await watched.page.get_by_role("button", name="Log in").click()
    await expect(watched.page.get_by_role("alert")).to_contain_text("not valid")
    watched.forgive("401")
    inside = await operator()
    assert await inside.page.evaluate("document.cookie") == ""
    (cookie,) = await inside.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")


async def test_the_paper_lies_under_what_was_read_and_a_field_lights_up_its_place(operator, service, hand_in):
    analysis_id = await hand_in(receipt(picture=photo()))
    watched = await operator()
    page = watched.page
    await watched.goto(f"{service.server.http_address}/console/analyses/{analysis_id}")
    picture = page.locator(".paper img")
    await picture.scroll_into_view_if_needed()
    await expect(picture).to_have_js_property("complete", value=True)
    assert await picture.evaluate("(image) => image.naturalWidth") > 100
    assert await page.locator(".paper.blank").count() == 0
    box, drawn = await picture.bounding_box(), await page.locator(".paper svg").bounding_box()
    assert abs(box["width"] - drawn["width"]) < 2
    assert abs(box["height"] - drawn["height"]) < 2
    await page.locator("a[data-line='r1.l3']").first.focus()
    await expect(page.locator("polygon[data-line='r1.l3']")).to_have_class(re.compile("lit"))
    await expect(page.locator("li[data-line='r1.l3']")).to_have_class("lit")
    await watched.shot("console-evidence")


async def test_without_pixels_the_text_stands_on_a_blank_page_that_can_be_fetched(operator, service, hand_in):
    analysis_id = await hand_in(receipt())
    watched = await operator()
    await watched.goto(f"{service.server.http_address}/console/analyses/{analysis_id}")
    await watched.page.locator(".paper").scroll_into_view_if_needed()
    await expect(watched.page.locator(".paper.blank svg text").first).to_be_visible()
    await expect(watched.page.get_by_role("button", name="Fetch page 1")).to_be_visible()


async def test_pages_of_a_long_document_are_asked_for_as_they_come_into_sight(operator, service, hand_in):
    analysis_id = await hand_in(receipt(pages=50))
    watched = await operator()
    page = watched.page
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/pages/" in request.url else None)
    before = watched.transferred
    await watched.goto(f"{service.server.http_address}/console/analyses/{analysis_id}")
    await expect(page.locator(".paper").first).to_be_visible()
    assert watched.transferred - before <= FIRST_PAINT_BYTES
    assert not any("/pages/49" in url for url in asked)
    assert len({re.search(r"/pages/(\d+)", url)[1] for url in asked}) < 30
    await page.locator("#p49").scroll_into_view_if_needed()
    await expect(page.locator("#p49 .paper")).to_be_visible()
    await expect(page.locator("#p49")).to_contain_text("Page 50 of 50")


async def test_doubts_are_settled_from_the_keyboard_alone(operator, service, caller, hand_in):
    first = await hand_in(receipt(texts=("Corner Shop", "Invoice No: 1", "Date: 2024-03-12", "Total: 900.00")))
    second = await hand_in(receipt(texts=("Corner Shop", "Invoice No: 2", "Date: 2024-03-12", "Total: 9.00")))
    watched = await operator()
    page = watched.page
    await watched.goto(f"{service.server.http_address}/console/review")
    await page.get_by_role("link", name="Begin with the first").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/console/review/{first}")
    texts = page.locator("form[data-review] input[type=text]")
    await expect(texts.first).to_be_focused()
    for number in range(await texts.count()):
        await expect(texts.nth(number)).to_be_focused()
        if "Total:" in await texts.nth(number).input_value():
            await page.keyboard.type("Total: 980.00")
        await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Store and go on")).to_be_focused()
    await watched.shot("console-review-done")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/console/review/{second}")
    newest = (await caller.get(first)).versions[-1]
    assert newest.engine == "person"
    lines = [line.text for region in newest.interpretation.document.pages[0].regions for line in region.lines]
    assert "Total: 980.00" in lines
    # Escape leaves a doubt as it is; what is stored then settles nothing.
    for _ in range(await texts.count()):
        await page.keyboard.press("Escape")
    await page.keyboard.press("Control+Enter")
    await page.wait_for_url("**/console/review")
    assert (await caller.get(second)).versions[-1].engine != "person"


async def test_corrections_become_a_curve_of_risk_once_there_are_enough(operator, service, caller, hand_in):
    watched = await operator()
    routing = f"{service.server.http_address}/console/routing"
    analysis_id = await hand_in(receipt(pages=12))
    await watched.goto(routing)
    await expect(watched.page.locator("main")).to_contain_text("Not enough corrections for a curve yet")
    found = await caller.get(analysis_id)
    lines = [
        pb.LineCorrection(page=number, line_id=line.line_id, text=line.text + "!" * (line.confidence < 0.5))
        for number, page in enumerate(found.versions[-1].interpretation.document.pages)
        for region in page.regions
        if not region.html
        for line in region.lines
    ]
    assert len(lines) >= 30
    await caller("Correct", pb.CorrectRequest(analysis_id=analysis_id, version=found.versions[-1].version, lines=lines))
    await _look(watched, routing, "routing-curve")
    table = watched.page.get_by_label("Risk by coverage", exact=True)
    await expect(table.locator("tbody tr").last).to_contain_text("100 %")
    await expect(watched.page.locator(".expected")).to_have_count(1)


async def test_what_a_document_or_a_subscription_says_is_never_run(operator, service, caller, hand_in):
    texts = (MALICE.format("text"), f"Invoice No: {MALICE.format('field')}", "Total: 9.00", "{{7*7}} ${alert(1)}")
    name = "<script>window.hit='name'</script>.jpg"
    analysis_id = await hand_in(receipt(texts=texts, latex=EVIL_LATEX, file_name=name, pages=2))
    url = f"https://example.com/?x={MALICE.format('url')}".replace(" ", "%20")
    subscription = subscription_pb.Subscription(url=url)
    await caller("Create", subscription_pb.SubscriptionServiceCreateRequest(subscription=subscription))
    watched = await operator()
    page = watched.page
    await page.context.add_init_script("window.alert = () => { window.hit = 'alert'; }")
    console = f"{service.server.http_address}/console"
    document = f"{console}/analyses/{analysis_id}"
    seen = ""
    for address in (
        *(f"{console}/{place}" for place in PAGES),
        f"{console}/inbox?q=%3Cscript%3Ewindow.hit%3D1%3C/script%3E&device=%22%3E%3Cimg src=x onerror=window.hit=1%3E",
        document,
        f"{document}/text",
        f"{document}/compare",
        f"{document}/pages/0",
        f"{console}/review/{analysis_id}",
    ):
        await watched.goto(address)
        assert await page.evaluate("window.hit") is None, address
        assert await page.locator("img[src=x], [onerror], [onclick], [onload], main script").count() == 0, address
        assert await page.locator("a[href^='javascript:']").count() == 0, address
        seen += await page.content()
    # Also what comes later, into a page that is there.
    await watched.goto(document)
    await page.locator("#p1").scroll_into_view_if_needed()
    await expect(page.locator("#p1 .paper")).to_be_visible()
    assert await page.evaluate("window.hit") is None
    for told in ("='text'", "='e'", "='name'", "='url'", "javascript:window"):
        assert told in seen, told
    assert "{{7*7}}" in seen


async def test_light_and_dark_are_the_operators_choice_and_stay(operator):
    watched = await operator()
    page = watched.page
    dark = "getComputedStyle(document.body).backgroundColor"
    before = await page.evaluate(dark)
    await page.get_by_role("button", name="Theme: system").click()
    assert await page.evaluate(dark) != before
    await page.reload()
    await expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert await page.evaluate(dark) != before
    assert await watched.problems_of_access() == []


async def test_a_key_is_made_copied_once_and_taken_back(operator, service, caller):
    watched = await operator()
    page = watched.page
    await watched.goto(f"{service.server.http_address}/console/keys")
    await page.get_by_label("Name").fill("till")
    await page.get_by_label("read").check()
    await page.get_by_role("button", name="Create").click()
    secret = await page.locator("#secret").inner_text()
    await watched.shot("console-key")
    await page.goto(f"{service.server.http_address}/console/keys")
    assert secret not in await page.content()
    await page.get_by_role("button", name="Revoke till").click()
    await expect(page.locator("tr", has_text="till")).to_contain_text("revoked")
    assert service.server._keys.find(secret.split("_")[1]).key.revoke_time
