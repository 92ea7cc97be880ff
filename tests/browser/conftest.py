"""Pages in a real browser: Debian's Chromium, driven by Playwright, on a network that leads nowhere else.

A test opens pages by `open_page(size=..., scheme=..., language=...)`. Whatever a page complains of on the console, and
any request that leaves for another host, fails the test at its end. The tests of this folder share one event loop, so
that one browser serves them all and a service in the test's process can be on the same loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright, expect

from tests.browser.watched import SIZES, Watched
from tests.cloud.service.receiver import Receiver

CHROMIUM = "/usr/bin/chromium"
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE_MS = 20_000
OpenPage = Callable[..., Awaitable[Watched]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screens", type=Path, default=None, help="keep a picture of each page in this folder")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            # One browser on the machine, whatever the number of test processes.
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def screens(pytestconfig: pytest.Config) -> Path | None:
    """Where pictures of the pages are kept, if anywhere."""
    folder: Path | None = pytestconfig.getoption("screens", None)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The browser, with an empty profile of its own."""
    # Whatever is waited for comes in a moment, unless the machine has much else to do.
    expect.set_options(timeout=_PATIENCE_MS)
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        yield running
        await running.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser, screens: Path | None) -> AsyncIterator[OpenPage]:
    """Opens an empty page; `context=watched.page.context` opens it beside another, with the same cookies."""
    opened: list[Watched] = []
    contexts: list[BrowserContext] = []

    async def new(
        size: str = "desktop",
        *,
        scheme: str = "light",
        language: str = "en-US",
        context: BrowserContext | None = None,
        **options: object,
    ) -> Watched:
        width, height = SIZES[size]
        if context is None:
            context = await browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                locale=language,
                has_touch=size != "desktop",
                **options,
            )
            contexts.append(context)
        watched = Watched(await context.new_page(), size, scheme, screens)
        await watched.begin()
        opened.append(watched)
        return watched

    yield new
    for context in contexts:
        await context.close()
    complaints = [complaint for watched in opened for complaint in watched.complaints]
    assert not complaints, complaints


@pytest_asyncio.fixture(loop_scope="session")
async def push_service() -> AsyncIterator[Receiver]:
    """Where browsers' pushes go to: a real HTTP server, its address in `url`."""
    receiver = Receiver()
    async with await asyncio.start_server(receiver.handle, "127.0.0.1", 0) as server:
        receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/push"
        yield receiver
