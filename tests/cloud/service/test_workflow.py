"""The queue by itself: what DBOS is held to."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from docferry.errors import Conflict
from docferry_cloud.workflow import Stage, Workflows


@pytest.fixture
def gate():
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def started(tmp_path, gate):
    def body(analysis_id):
        bodies.append(analysis_id)
        if analysis_id == "slow":
            gate.wait(20)
        if analysis_id == "broken":
            raise RuntimeError("inside the body")

    bodies = []
    workflows = Workflows(tmp_path / "workflows.sqlite", executor_id="one", concurrency=4, body=body)
    workflows.start()
    yield workflows, bodies
    gate.set()
    workflows.stop(10)


async def test_an_analysis_is_worked_on_once_however_often_it_is_enqueued(started, until):
    workflows, bodies = started
    for _ in range(3):
        await _in_thread(workflows.enqueue, "a")
    await until(lambda: _stage(workflows, "a", Stage.OVER))
    await _in_thread(workflows.enqueue, "a")
    await _in_thread(workflows.enqueue, "b")
    await until(lambda: _stage(workflows, "b", Stage.OVER))
    assert bodies == ["a", "b"]
    await _in_thread(workflows.renew, "a")
    await until(lambda: bodies == ["a", "b", "a"])


async def test_what_is_over_can_be_dropped_and_what_runs_stays(started, until):
    workflows, _ = started
    for name in ("slow", "broken", "a"):
        await _in_thread(workflows.enqueue, name)
    await until(lambda: _stage(workflows, "a", Stage.OVER))
    await until(lambda: _stage(workflows, "broken", Stage.OVER))
    await until(lambda: _stage(workflows, "slow", Stage.RUNNING))
    now = datetime.now(UTC) + timedelta(seconds=1)
    assert await _in_thread(workflows.trim, now - timedelta(hours=1)) == 0
    assert await _in_thread(workflows.trim, now) == 2
    assert await _in_thread(workflows.stages, ["slow", "broken", "a"]) == {"slow": (Stage.RUNNING, "one")}


async def test_a_second_worker_in_one_process_is_refused(started, tmp_path):
    other = Workflows(tmp_path / "other.sqlite", executor_id="two", concurrency=1, body=print)
    with pytest.raises(Conflict):
        await _in_thread(other.start)


async def _in_thread(function, *args):
    # DBOS refuses its blocking calls where an event loop runs.
    return await asyncio.to_thread(function, *args)


async def _stage(workflows, analysis_id, wanted):
    stages = await _in_thread(workflows.stages, [analysis_id])
    return stages.get(analysis_id, (None,))[0] is wanted


def test_a_queue_that_cannot_come_up_goes_down_in_order_and_leaves_the_reason_to_tell(tmp_path):
    (tmp_path / "workflows.sqlite").write_bytes(b"this is no database, though it is as long as a header of one" * 20)
    workflows = Workflows(tmp_path / "workflows.sqlite", executor_id="one", concurrency=1, body=print)
    with pytest.raises(Exception, match="not a database"):
        workflows.start()
    workflows.stop(1)
    again = Workflows(tmp_path / "good.sqlite", executor_id="one", concurrency=1, body=print)
    again.start()
    again.stop(1)
