"""A worker without a front end: what is in the database gets done, and an old or large process begins anew."""

import asyncio
import itertools
import mmap
import os
import signal
import threading

import pytest

from docferry.errors import EngineError
from docferry_cloud import worker
from docferry_cloud.core import make_core
from docferry_cloud.parent_link import ParentLink
from docferry_cloud.rows import Caller, Submission
from docferry_cloud.schema import State
from docferry_cloud.settings import CloudSettings
from docferry_cloud.worker import own_memory_mb, work


@pytest.fixture
def settings(tmp_path, database_url):
    def make(**changes):
        return CloudSettings(directory=tmp_path, **({"database": url, "remember": False} | changes))

    url = database_url()
    return make


@pytest.fixture
def core(settings):
    made = make_core(settings())
    made.database.create()
    made.log.open()
    yield made
    made.database.close()


@pytest.fixture
def take(core, make_envelope):
    def one() -> str:
        envelope = make_envelope()
        new = Submission(
            caller=Caller("local", "local"),
            request_id=envelope.request_id,
            document_id=envelope.document_id,
            body=envelope.SerializeToString(),
            body_sha256=b"",
            file_name="",
            effort=0,
            route=b"",
            traffic=b"",
            announced=(),
            edge=None,
        )
        return core.store.take(new).analysis_id

    return one


@pytest.fixture
def growing(monkeypatch):
    """This process, as it is told, grows by 10 MB at every look."""
    monkeypatch.setattr(worker, "own_memory_mb", itertools.count(100, 10).__next__)


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("limit", [{"recycle_s": 0.5}, {"recycle_mb": 1}], ids=["old", "grown"])
async def test_a_worker_that_is_outgrown_gives_back_its_work_and_begins_anew(
    settings, core, take, echo_engine, quick_times, until, limit
):
    analysis_id, entered = take(), threading.Event()

    def held(_page, cancelled):
        entered.set()
        while not cancelled():
            entered.wait(0.01)
        raise EngineError("stopped", remedy="none needed")

    def state():
        return core.store.get("local", analysis_id=analysis_id).state

    async with asyncio.timeout(30):
        assert await work(settings(**limit), engine_factory=lambda: echo_engine(held), times=quick_times)
    if entered.is_set():
        assert state() is State.PENDING
    # The next one, as after a start of the process anew.
    async with asyncio.timeout(30):
        following = asyncio.create_task(work(settings(recycle_s=5.0), engine_factory=echo_engine, times=quick_times))
        await until(lambda: state() is State.SUCCEEDED)
        assert await following


async def test_a_worker_that_has_read_its_fill_begins_anew(settings, core, take, echo_engine, quick_times):
    analysis_id = take()
    async with asyncio.timeout(30):
        assert await work(settings(recycle_documents=1), engine_factory=echo_engine, times=quick_times)
    assert core.store.get("local", analysis_id=analysis_id).state is State.SUCCEEDED


@pytest.mark.usefixtures("growing")
async def test_its_lease_holds_before_it_takes_up_anything(settings, core, echo_engine, quick_times, monkeypatch):
    start, living = worker.Workflows.start, []

    def started(workflows):
        living.append(core.work.living())
        start(workflows)

    monkeypatch.setattr(worker.Workflows, "start", started)
    async with asyncio.timeout(30):
        await work(settings(recycle_mb=1), engine_factory=echo_engine, times=quick_times)
    assert [len(each) for each in living] == [1]


class Signalled(ParentLink):
    """The operator's signal comes just as the process gives back its work to begin anew."""

    def recycling(self):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.usefixtures("growing")
async def test_a_signal_while_it_gives_back_its_work_ends_it_for_good(settings, core, echo_engine, quick_times):
    async with asyncio.timeout(30):
        anew = await work(settings(recycle_mb=1), engine_factory=echo_engine, times=quick_times, parent=Signalled())
    assert not anew
    assert not core.work.living()


async def test_a_worker_that_cannot_tell_its_size_ends_with_that_error(settings, echo_engine, quick_times, monkeypatch):
    def unknown():
        raise OSError("no /proc here")

    monkeypatch.setattr(worker, "own_memory_mb", unknown)
    async with asyncio.timeout(30):
        with pytest.raises(OSError, match="no /proc here"):
            await work(settings(recycle_mb=1), engine_factory=echo_engine, times=quick_times)


async def test_memory_that_documents_leave_behind_counts_and_the_engines_own_does_not(
    settings, core, take, echo_engine, quick_times, caplog
):
    kept = []

    def leaks(_page, _cancelled):
        kept.append(b"x" * (64 << 20))

    def large():
        kept.append(b"x" * (256 << 20))
        return echo_engine(leaks)

    take()
    async with asyncio.timeout(30):
        assert await work(settings(recycle_mb=32), engine_factory=large, times=quick_times)
    (grown,) = [int(record.getMessage().split()[-2]) for record in caplog.records if "anew" in record.getMessage()]
    assert 32 < grown < 200


def test_mapped_files_are_no_memory_of_this_process(tmp_path):
    weights = tmp_path / "weights"
    weights.write_bytes(b"x" * (128 << 20))
    with weights.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        before = own_memory_mb()
        assert mapped.find(b"y") == -1
        assert own_memory_mb() - before < 64
    assert 10 < own_memory_mb() < 100_000
