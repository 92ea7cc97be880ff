"""The harness itself notices what it is there to notice."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

PAGE = b"<!doctype html><html lang=en><title>A page</title><main><h1>A page</h1>%s</main></html>"
PAGES = {
    b"/good": PAGE % b"<p>Good.</p>",
    b"/complains": PAGE % b"<script>console.error('it broke')</script>",
    b"/throws": PAGE % b"<script>null.x</script>",
    b"/leaves": PAGE % b"<img alt='' src='http://127.0.0.1:9/x.png'>",
    b"/unnamed": PAGE % b"<button></button>",
    b"/large": PAGE % (b"<p>" + b"x" * 20_000),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site() -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = PAGES.get(head.split(b" ")[1])
        line = b"200 OK" if body else b"204 No Content"
        kind = b"Content-Type: text/html\r\nContent-Length: %d\r\n" % len(body or b"") if body else b""
        writer.write(b"HTTP/1.1 " + line + b"\r\n" + kind + b"Connection: close\r\n\r\n" + (body or b""))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@pytest.mark.parametrize(("size", "scheme"), [("phone", "dark"), ("kiosk", "light"), ("desktop", "dark")])
async def test_a_page_has_its_size_its_scheme_and_nothing_to_complain_of(open_page, site, size, scheme):
    watched = await open_page(size, scheme=scheme)
    await watched.goto(f"{site}/good")
    dark = await watched.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert dark == (scheme == "dark")
    assert await watched.page.evaluate("innerWidth") == {"phone": 390, "kiosk": 1024, "desktop": 1440}[size]
    assert await watched.problems_of_access() == []
    assert watched.complaints == []


@pytest.mark.parametrize(
    ("path", "complaint"),
    [("complains", "it broke"), ("throws", "exception: .*null"), ("leaves", "another host was asked: .*x.png")],
)
async def test_what_a_page_complains_of_is_noticed(open_page, site, path, complaint):
    watched = await open_page()
    await watched.goto(f"{site}/{path}")
    watched.forgive(complaint)
    with pytest.raises(AssertionError, match="nobody complained"):
        watched.forgive("something else")
    if path == "leaves":
        watched.forgive("ERR_")


async def test_a_button_without_a_name_is_a_serious_problem(open_page, site):
    watched = await open_page()
    await watched.goto(f"{site}/unnamed")
    assert [text.split(" ")[0] for text in await watched.problems_of_access()] == ["button-name"]


async def test_bytes_are_counted_as_they_come(open_page, site):
    watched = await open_page()
    await watched.goto(f"{site}/large")
    assert 20_000 < watched.transferred < 21_000
