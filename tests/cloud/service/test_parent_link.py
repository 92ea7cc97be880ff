"""The worker's end of the socket to its front end, with the test at the other end."""

import asyncio
import json
import socket

import pytest

from docferry_cloud.parent_link import ParentLink


@pytest.fixture
async def linked():
    """The link, and the front end's end of it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = ParentLink(theirs.fileno())
        await link.open()
        yield link, ours
        await link.close()


def heard(end: socket.socket) -> bool:
    try:
        return bool(end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


async def test_a_front_end_that_does_not_read_costs_measurements_but_not_what_it_must_know(linked):
    link, front_end = linked
    measurements = 20_000
    for _ in range(measurements):
        link.measured("count", "docferry_worker_starts_total", 1.0, ("x" * 100,))
    link.working("worker-1", "none")
    told = []
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(sock=front_end)
        while not told or told[-1]["status"] != "working":
            told.append(json.loads(await reader.readline()))
        writer.close()
    assert 100 < len(told) < measurements / 2
    assert told[-1]["owner"] == "worker-1"


@pytest.mark.parametrize("unread", [False, True])
async def test_a_front_end_that_is_gone_is_noticed_whatever_it_left_unread(linked, until, unread):
    link, front_end = linked
    async with asyncio.timeout(20):
        link.grown()
        # What it has said has come, and lies there.
        await until(lambda: heard(front_end))
        if not unread:
            front_end.recv(1024)
        front_end.close()
        await link.gone()
