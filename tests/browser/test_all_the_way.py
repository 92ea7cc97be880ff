"""`docferry demo --keep`, and a document on its whole way: capture, hint, result, claim, push, correction, better."""

import asyncio
import json
import os
import re
import signal
import sys

import cv2
import numpy as np
import pytest_asyncio
from playwright.async_api import expect

from docferry import samples
from docferry_cloud.phone.words import WORDS
from tests.browser.documents import picture_file
from tests.browser.pushes import deliver, shown, subscribing
from tests.browser.watched import FIRST_PAINT_BYTES

EN = WORDS["en"]
LONG_MS = 60_000


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def links():
    """The links that the demo prints, with one sample read."""
    sample = next(path for path in samples.paths() if path.stem == "thermal_receipt")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "docferry.cli", "demo", str(sample), "--keep"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "COLUMNS": "200"},
    )
    found = []
    async with asyncio.timeout(120):
        while len(found) < 2:
            line = (await process.stdout.readline()).decode()
            assert line, "the demo ended"
            found += re.findall(r"http://127\.0\.0\.1:\d+/\S*", line)
    yield found
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(60):
        await process.communicate()
    assert process.returncode == 0


async def test_the_demos_link_shows_the_samples_results_and_takes_a_photo(open_page, links, tmp_path):
    watched = await open_page("desktop")
    page = watched.page
    await watched.goto(links[0])
    assert watched.transferred <= FIRST_PAINT_BYTES
    assert await watched.problems_of_access() == []
    await watched.shot("demo-results")
    await expect(page.locator("#latest a").first).to_contain_text("172.80")
    await page.locator("#latest a").first.click()
    await expect(page.locator(".state")).to_contain_text(EN["done"])
    await expect(page.locator(".fields")).to_contain_text("172.80")
    await page.go_back()
    await page.set_input_files("#file", picture_file(tmp_path))
    await page.wait_for_url("**/r/*-*")
    await expect(page.locator(".state")).to_contain_text(EN["done"], timeout=LONG_MS)
    await expect(page.locator(".fields")).to_contain_text("172.80")
    assert await watched.problems_of_access() == []
    await watched.shot("demo-result")


async def scanned(page) -> str:
    """What a phone's camera reads off the screen."""
    picture = cv2.imdecode(np.frombuffer(await page.locator("#qr").screenshot(), np.uint8), cv2.IMREAD_COLOR)
    large = cv2.resize(picture, None, fx=3, fy=3, interpolation=cv2.INTER_NEAREST)
    text, *_ = cv2.QRCodeDetector().detectAndDecode(large)
    return text


async def test_a_document_goes_from_the_kiosk_to_the_phone_and_comes_back_better(
    open_page, links, push_service, tmp_path
):
    kiosk, phone = await open_page("kiosk"), await open_page("phone", permissions=["notifications"])
    # Captured: the hint comes while it is read, the answer of the edge before that of the cloud.
    await kiosk.goto(links[1])
    await kiosk.page.set_input_files("#file", picture_file(tmp_path))
    await expect(kiosk.page.locator("#boxes .region").first).to_be_attached(timeout=LONG_MS)
    await expect(kiosk.page.locator("#fields")).to_contain_text("172.80", timeout=LONG_MS)
    await expect(kiosk.page.locator("#steps .done")).to_have_count(3, timeout=LONG_MS)
    await expect(kiosk.page.locator("#qr path")).to_be_visible()
    await kiosk.shot("kiosk-understood")
    # Claimed by whoever scans the code.
    keys = await subscribing(phone.page, push_service.url)
    link = await scanned(kiosk.page)
    await phone.goto(link)
    await phone.page.wait_for_url("**/r/*")
    await expect(phone.page.locator(".state")).to_contain_text(f"{EN['done']} · {EN['version']} 2")
    await phone.page.click("#notify")
    await expect(phone.page.locator("#notify")).to_have_text(EN["notified"])
    # Put right at the kiosk: a new version for both, and a push.
    await kiosk.page.evaluate("open(now.answer.lines[0])")
    await kiosk.page.fill("#said", "Soon Fatt Health Care")
    await kiosk.page.locator("#save").tap()
    await expect(kiosk.page.locator("#steps .done")).to_have_count(4)
    await expect(phone.page.locator(".state")).to_contain_text(f"{EN['version']} 3")
    plain = (await keys.read((await push_service.next()).body)).decode()
    message = json.loads(plain)
    assert message["version"] == 3
    assert phone.page.url.endswith(message["analysis_id"])
    origin = phone.page.url.partition("/r/")[0]
    await deliver(phone.page, origin, plain)
    assert await shown(phone.page) == [[message["title"], f"/r/{message['analysis_id']}"]]
