"""The worker in a process of its own: recycled, replaced when it dies or hangs, gone with its front end."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from docferry.errors import ModelError
from docferry.v1.analysis_pb2 import Analysis
from docferry_cloud.server import CloudServer, serve
from docferry_cloud.settings import CloudSettings
from tests.cloud.service.running import QUICK

SCRIPT = Path(__file__).with_name("attached_worker.py")
TIMES = replace(QUICK, hang=1.5)


def command(folder, database="", *, documents=0, fault="none"):
    return (sys.executable, str(SCRIPT), str(folder), database, str(documents), fault)


@pytest.fixture
def with_worker(running, tmp_path, database_url):
    """A front end whose worker is a process of its own."""
    database = database_url()

    def make(**options):
        return running(
            tmp_path, None, TIMES, worker_command=command(tmp_path, database, **options), database=database, workers=1
        )

    return make


def signed(analysis):
    """Process id and life of the process that read it."""
    (line,) = analysis.versions[-1].interpretation.document.pages[0].regions[0].lines
    return tuple(line.text.split())


def read_once(analysis) -> bool:
    return [version.engine for version in analysis.versions] == ["edge", "signing"]


async def healthy(service) -> bool:
    answer = await health_pb2_grpc.HealthStub(service.channel).Check(health_pb2.HealthCheckRequest())
    return answer.status == health_pb2.HealthCheckResponse.SERVING


async def until_healthy(service):
    stream = health_pb2_grpc.HealthStub(service.channel).Watch(health_pb2.HealthCheckRequest())
    async for answer in stream:
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            break
    stream.cancel()


async def test_what_is_taken_in_is_read_by_the_other_process_and_measured_here(with_worker, make_envelope):
    async with asyncio.timeout(60), with_worker() as service:
        caller = service.caller()
        done = await caller.finished((await caller.submit(make_envelope())).analysis_id)
        process, _ = signed(done)
        assert int(process) == service.server.worker_process.pid != os.getpid()
        await until_healthy(service)
        metrics = service.server.metrics
        assert metrics.value("docferry_interpret_seconds_count", outcome="succeeded") == 1
        assert metrics.value("docferry_queue_wait_seconds_count") == 1
        assert metrics.value("docferry_worker_starts_total") == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


async def test_it_begins_anew_after_so_many_documents_and_each_is_read_once(with_worker, make_envelope):
    async with asyncio.timeout(120), with_worker(documents=3) as service:
        caller = service.caller()
        taken = [(await caller.submit(make_envelope())).analysis_id for _ in range(9)]
        done = [await caller.finished(name) for name in taken]
        seen = {signed(each) for each in done}
        processes, lives = {process for process, _ in seen}, {life for _, life in seen}
        assert len(processes) == 1
        assert len(lives) > 1
        # It gives way to its front end, and beginning anew adds nothing to that.
        front, worker = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, service.server.worker_process.pid))
        assert worker == max(front, 5)
        assert all(each.state == Analysis.STATE_SUCCEEDED and read_once(each) for each in done)
        await until_healthy(service)


@pytest.mark.parametrize("fault", ["die", "hang"])
async def test_one_that_dies_or_hangs_is_replaced_and_its_document_read(with_worker, make_envelope, fault):
    async with asyncio.timeout(60), with_worker(fault=fault) as service:
        caller = service.caller()
        first = await caller.submit(make_envelope())
        done = await caller.finished(first.analysis_id)
        assert done.state == Analysis.STATE_SUCCEEDED
        assert read_once(done)
        await until_healthy(service)
        assert service.server.metrics.value("docferry_worker_starts_total") == 2


async def test_without_its_worker_the_front_end_takes_in_but_is_not_healthy(with_worker, make_envelope, until):
    async with asyncio.timeout(60), with_worker() as service:
        caller = service.caller()
        await until_healthy(service)
        stopped = service.server.worker_process.pid
        os.kill(stopped, signal.SIGSTOP)
        taken = await caller.submit(make_envelope())
        while await healthy(service):
            await asyncio.sleep(0.02)
        # Hung for long enough it is killed, and the next one works.
        done = await caller.finished(taken.analysis_id)
        assert int(signed(done)[0]) != stopped


async def test_what_keeps_it_from_working_ends_the_service_with_its_own_error(tmp_path):
    settings = CloudSettings(directory=tmp_path, port=0)
    async with asyncio.timeout(30):
        with pytest.raises(ModelError, match="the model is missing") as raised:
            await serve(settings, worker_command=command(tmp_path, fault="missing"), times=TIMES)
    assert raised.value.remedy == "pull it"


async def test_it_ends_with_a_front_end_that_was_killed(tmp_path, until):
    """The front end is a process, so that it can be killed."""
    front = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from docferry_cloud.server import serve\n"
        "from docferry_cloud.settings import CloudSettings\n"
        "settings = CloudSettings(directory=Path(sys.argv[3]), port=0)\n"
        "asyncio.run(serve(settings, worker_command=sys.argv[1:], working=lambda name: print(name, flush=True)))\n"
    )
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", front, *command(tmp_path)), stdout=asyncio.subprocess.PIPE
    )
    assert killed.stdout is not None
    async with asyncio.timeout(60):
        assert await killed.stdout.readline() == b"signing\n"
        children = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
        assert len(children) == 1
        killed.kill()
        await killed.wait()
        await until(lambda: not Path(f"/proc/{children[0]}").exists())


async def test_a_front_end_without_a_worker_needs_no_engine(tmp_path):
    server = CloudServer(CloudSettings(directory=tmp_path, port=0, workers=0), times=QUICK)
    await server.start()
    await server.stop()
    assert server.worker_process is None
