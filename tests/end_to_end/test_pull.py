"""The cloud pulls pictures from the edge: over real sockets and processes, through kills, cuts and a dark link."""

import asyncio
import contextlib
import io
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from docferry import async_client as client_module
from docferry.async_client import AsyncClient, finished
from docferry.v1 import analysis_pb2, envelope_pb2
from docferry_edge.entry import State
from docferry_edge.wants import SupplyPolicy
from tests.end_to_end.conftest import free_port, rows
from tests.end_to_end.killable_agent import CHUNK, LINK, agent
from tests.end_to_end.proxy import proxied

SERVER = Path(__file__).parents[1] / "cloud" / "service" / "killable_server.py"
AGENT = Path(__file__).with_name("killable_agent.py")
DEADLINE = 60
Analysis, Want = analysis_pb2.Analysis, analysis_pb2.Want


def photo() -> bytes:
    """A page that does not compress: a crop of it fills several chunks."""
    pixels = np.random.default_rng(7).integers(0, 255, (1600, 1200), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def put(folder: Path) -> None:
    (folder / "inbox").mkdir(exist_ok=True)
    (folder / "inbox" / ".a.png").write_bytes(photo())
    (folder / "inbox" / ".a.png").rename(folder / "inbox" / "a.png")


@asynccontextmanager
async def process(*command: object) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {"PYTHONPATH": ":".join(sys.path)}
    arguments = [str(part) for part in command]
    started = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, env=environment
    )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.wait()


@asynccontextmanager
async def cloud(folder: Path, patience: float = 60) -> AsyncIterator[int]:
    """A service whose engine asks for a crop, on a port."""
    port = free_port()
    async with process(SERVER, folder / "cloud", "none", patience, port) as server:
        async with asyncio.timeout(DEADLINE):
            assert await server.stdout.readline()
        yield port


@asynccontextmanager
async def running(folder: Path, port: int, **options):
    """An agent in this process, running; gives its outbox."""
    async with agent(folder, port, **options) as (made, outbox):
        task = asyncio.create_task(made.run())
        try:
            yield outbox
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task.exception()


async def until(condition, seconds: float = DEADLINE) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def analysis_of(client: AsyncClient, outbox) -> Analysis:
    (entry,) = outbox.in_state(*State)
    return await client.get(document_id=entry.document_id)


@pytest.mark.parametrize(
    "fault", ["heard, not cut", "cut, not stored", "stored, not sent", "three chunks sent", "all sent, not noted"]
)
async def test_a_killed_agent_goes_on_and_sends_every_byte_once(tmp_path, fault):
    put(tmp_path)
    async with cloud(tmp_path) as port:
        async with process(AGENT, tmp_path, port, fault) as doomed, asyncio.timeout(DEADLINE):
            assert await doomed.wait() == -signal.SIGKILL
        outbox = tmp_path / "state" / "outbox.sqlite"
        async with process(AGENT, tmp_path, port, "none"):
            await until(lambda: rows(outbox, "SELECT state FROM documents") == [("settled",)])
        assert rows(outbox, "SELECT count(*) FROM supplies") == [(0,)]
        store = tmp_path / "cloud" / "store.sqlite"
        assert rows(store, "SELECT engine FROM versions ORDER BY version") == [("edge",), ("echo",), ("echo",)]
        assert rows(store, "SELECT state FROM wants") == [("SUPPLIED",)]
        starts = [start for (start,) in rows(store, "SELECT start FROM chunks ORDER BY start")]
        # One row a chunk, each begun once: nothing was sent twice but what was under way at the kill.
        assert starts == [CHUNK * number for number in range(len(starts))]
        assert len(starts) > 3


async def test_a_link_cut_in_the_middle_of_a_chunk_goes_on_from_what_was_received(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "MAX_CHUNK_BYTES", CHUNK)
    put(tmp_path)
    async with (
        cloud(tmp_path) as port,
        proxied(port) as proxy,
        AsyncClient.connect(f"127.0.0.1:{port}") as direct,
        running(tmp_path, proxy.port) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.DELIVERED)))
        # The crop is on its way now or soon: three more chunks and a half.
        proxy.cut_after = 14_000
        await until(lambda: bool(outbox.in_state(State.SETTLED)))
        done = await analysis_of(direct, outbox)
    assert proxy.cut_after is None
    assert proxy.taken >= 2
    assert [want.state for want in done.past_wants] == [Want.STATE_SUPPLIED]
    assert not done.versions[-1].interpretation.notices
    crops = next(part.bytes for part in done.traffic.parts if part.kind == "crop")
    assert crops == done.past_wants[0].received


async def test_a_dark_link_is_noticed_and_taken_up_again_when_it_returns(tmp_path):
    put(tmp_path)
    async with (
        cloud(tmp_path) as port,
        proxied(port) as proxy,
        AsyncClient.connect(f"127.0.0.1:{port}") as direct,
        running(tmp_path, proxy.port, keep_s=3600.0) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.SETTLED)))
        analysis_id = (await analysis_of(direct, outbox)).analysis_id
        proxy.go_dark()
        went_dark, taken, ended = time.monotonic(), proxy.taken, proxy.ended
        part_id, _ = await direct.request_part(analysis_id)
        # The connection looks alive to TCP; only the unanswered ping tells.
        await until(lambda: proxy.ended > ended)
        noticed = time.monotonic() - went_dark
        # Further attempts vanish as well.
        await until(lambda: proxy.taken >= taken + 2)
        assert [want.part_id for want in (await direct.get(analysis_id)).wants] == [part_id]
        proxy.dark = False
        returned = time.monotonic()
        while (await direct.get(analysis_id)).wants:
            await asyncio.sleep(0.05)
            assert time.monotonic() - returned < DEADLINE
        back = time.monotonic() - returned
        (want,) = [want for want in (await direct.get(analysis_id)).past_wants if want.part_id == part_id]
    assert want.state == Want.STATE_SUPPLIED
    # A busy machine may add to both; the bounds by which the defaults keep their 60 s are tested with the channel.
    assert noticed < LINK.silent + 5
    assert back < LINK.back_within + 5


async def test_the_cloud_killed_while_it_waits_gets_its_picture_after_all(tmp_path):
    put(tmp_path)
    port = free_port()
    async with running(tmp_path, port) as outbox:
        for fault in ("begun, not acknowledged", "supplied, not acknowledged", "none"):
            async with process(SERVER, tmp_path / "cloud", fault, 60, port) as server:
                if fault == "none":
                    await until(lambda: bool(outbox.in_state(State.SETTLED)))
                elif fault == "supplied, not acknowledged":
                    async with asyncio.timeout(DEADLINE):
                        assert await server.wait() == -signal.SIGKILL
    store = tmp_path / "cloud" / "store.sqlite"
    assert rows(store, "SELECT engine FROM versions ORDER BY version") == [("edge",), ("echo",), ("echo",)]
    assert rows(store, "SELECT state FROM wants") == [("SUPPLIED",)]


async def test_an_operator_who_sends_no_pictures_is_obeyed_and_the_cloud_knows_why(tmp_path):
    put(tmp_path)
    never = SupplyPolicy(refusal=lambda _entry, _want: "the operator never sends pictures")
    async with (
        cloud(tmp_path) as port,
        AsyncClient.connect(f"127.0.0.1:{port}") as client,
        running(tmp_path, port, supply_policy=never) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.SETTLED)))
        done = await analysis_of(client, outbox)
    (want,) = done.past_wants
    assert (want.state, want.received) == (Want.STATE_REFUSED, 0)
    assert (want.refusal.code, want.refusal.detail) == ("POLICY", "the operator never sends pictures")
    (notice,) = done.versions[-1].interpretation.notices
    assert (notice.code, "POLICY: the operator never sends pictures" in notice.detail) == ("PARTS_REFUSED", True)
    assert "crop" not in {part.kind for part in done.traffic.parts}


async def test_a_mask_is_laid_over_whatever_is_pulled(tmp_path):
    put(tmp_path)
    black = SupplyPolicy(mask=lambda _entry, _page, _box, pixels: np.zeros_like(pixels))
    async with (
        cloud(tmp_path) as port,
        AsyncClient.connect(f"127.0.0.1:{port}") as client,
        running(tmp_path, port, supply_policy=black) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.SETTLED)))
        done = await analysis_of(client, outbox)
        part, data = await client.part(done.analysis_id, done.past_wants[0].part_id)
    assert part.kind == envelope_pb2.PART_KIND_CROP
    with Image.open(io.BytesIO(data)) as picture:
        assert np.asarray(picture.convert("L")).max() <= 2


async def test_a_device_that_is_away_holds_the_answer_up_no_longer_than_stated(tmp_path):
    put(tmp_path)
    async with (
        cloud(tmp_path, patience=1) as port,
        AsyncClient.connect(f"127.0.0.1:{port}") as client,
        running(tmp_path, port) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.SUBMITTED, State.DELIVERED, State.SETTLED)))
        (entry,) = outbox.in_state(*State)
        asked = await client.get(document_id=entry.document_id)
        while not finished((await client.get(asked.analysis_id)).state):
            await asyncio.sleep(0.05)
        done = await client.get(asked.analysis_id)
        # Whether the agent was quick enough before it left is a race; that an answer is there is not.
        assert done.state == Analysis.STATE_SUCCEEDED
        notices = [notice.code for notice in done.versions[-1].interpretation.notices]
        assert notices == ([] if done.past_wants[0].state == Want.STATE_SUPPLIED else ["PARTS_MISSING"])


async def test_a_viewer_fetches_the_page_while_the_original_is_kept_and_is_told_when_it_is_gone(tmp_path):
    put(tmp_path)
    async with (
        cloud(tmp_path) as port,
        AsyncClient.connect(f"127.0.0.1:{port}") as client,
        running(tmp_path, port, keep_s=3600.0) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.SETTLED)))
        (entry,) = outbox.in_state(State.SETTLED)
        done = await client.get(document_id=entry.document_id)
        part_id, _ = await client.request_part(done.analysis_id)
        after = await settled(client, done.analysis_id)
        part, data = await client.part(done.analysis_id, part_id)
        assert (part.kind, part.media_type) == (envelope_pb2.PART_KIND_PAGE, "image/webp")
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == (1200, 1600)
        assert len(after.versions) == len(done.versions)
        assert outbox.originals.give_back()
        gone, _ = await client.request_part(done.analysis_id, box=(0.0, 0.0, 0.5, 0.5))
        after = await settled(client, done.analysis_id)
        refused = next(want for want in after.past_wants if want.part_id == gone)
        assert (refused.state, refused.refusal.code) == (Want.STATE_REFUSED, "NOT_KEPT")


async def test_an_analysis_deleted_in_the_cloud_takes_the_kept_original_along(tmp_path):
    put(tmp_path)
    async with (
        cloud(tmp_path) as port,
        AsyncClient.connect(f"127.0.0.1:{port}") as client,
        running(tmp_path, port, keep_s=3600.0) as outbox,
    ):
        await until(lambda: bool(outbox.in_state(State.SETTLED)))
        (entry,) = outbox.in_state(State.SETTLED)
        assert outbox.originals.kept() == [entry.document_id]
        await client.delete((await client.get(document_id=entry.document_id)).analysis_id)
        await until(lambda: outbox.originals.image(entry.document_id) is None)
        assert outbox.originals.kept() == []


async def settled(client: AsyncClient, analysis_id: str) -> Analysis:
    """The analysis once nothing is wanted about it any more."""
    async with asyncio.timeout(DEADLINE):
        while (found := await client.get(analysis_id)).wants:
            await asyncio.sleep(0.05)
        return found
