"""A page in the browser together with what is watched about it."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import CDPSession, ConsoleMessage, Page, Request

SIZES = {"phone": (390, 844), "kiosk": (1024, 600), "desktop": (1440, 900)}
FIRST_PAINT_BYTES = 150_000
"""What a page may transfer until it is there; issue 8."""

_AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
_COUNTED_S = 20.0
_SERIOUS = {"serious", "critical"}
_RUN_AXE = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


@dataclass(eq=False)
class Watched:
    """One page at one size.

    Attributes:
        transferred: Bytes that came over the network so far, headers and bodies, as they were transferred.
        complaints: Errors on the console, exceptions of scripts, and requests to other hosts than the page's own.
    """

    page: Page
    size: str
    scheme: str
    screens: Path | None
    transferred: int = 0
    complaints: list[str] = field(default_factory=list)
    _hosts: set[str] = field(default_factory=set)
    _documents: set[str] = field(default_factory=set)
    _session: CDPSession | None = None

    async def begin(self) -> None:
        """Watch from now on."""
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("crash", lambda _: self.complaints.append("the page crashed"))
        self.page.on("request", self._asked)
        self._session = session = await self.page.context.new_cdp_session(self.page)
        session.on("Network.requestWillBeSent", self._went)
        session.on("Network.loadingFinished", self._came)
        session.on("Network.loadingFailed", lambda event: self._documents.discard(event["requestId"]))
        await session.send("Network.enable")

    async def goto(self, url: str, **options: Any) -> None:
        """Open a page and wait until it and what it is made of are there; its host may be asked from now on."""
        self._hosts.add(urlsplit(url).netloc)
        await self.page.goto(url, wait_until="load", **options)
        # The browser tells of the page's last bytes by itself, perhaps after it has shown them.
        async with asyncio.timeout(_COUNTED_S):
            while self._documents:
                await asyncio.sleep(0.01)

    def forgive(self, pattern: str, *, at_least: int = 1) -> None:
        """Take out the complaints in which this is found: the test provoked them."""
        kept = [text for text in self.complaints if not re.search(pattern, text)]
        assert len(kept) <= len(self.complaints) - at_least, f"nobody complained of {pattern!r}: {self.complaints}"
        self.complaints[:] = kept

    async def problems_of_access(self) -> list[str]:
        """What axe-core finds that is serious or critical, each with the first element it is found in."""
        # Through the debugging protocol: the pages' policy does not let a test put a script into them either.
        await self.page.evaluate(_AXE.read_text())
        found = await self.page.evaluate(_RUN_AXE)
        return [
            f"{one['id']} ({one['impact']}): {one['help']}: {json.dumps(one['nodes'][0]['html'])[:200]}"
            for one in found
            if one["impact"] in _SERIOUS
        ]

    async def shot(self, name: str) -> None:
        """Keep a picture of the screen, when `make screens` asked for it."""
        if self.screens is not None:
            await self.page.screenshot(path=self.screens / f"{name}-{self.size}-{self.scheme}.png")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _asked(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in {"http", "https"} and address.netloc not in self._hosts:
            self.complaints.append(f"another host was asked: {request.url}")

    def _came(self, event: dict[str, Any]) -> None:
        self.transferred += int(event["encodedDataLength"])
        self._documents.discard(event["requestId"])

    def _went(self, event: dict[str, Any]) -> None:
        if event.get("type") == "Document":
            self._documents.add(event["requestId"])
