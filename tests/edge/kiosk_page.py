"""The kiosk's page over a real socket, for tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from docferry_edge.kiosk.hub import Hub
from docferry_edge.kiosk.server import listen, serve


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
