"""kill -9 at every step of a document's way, then a restart: it arrives once, and once only."""

import asyncio
import contextlib
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from docferry.channel import open_channel
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import analysis_service_pb2_grpc as grpc_api
from docferry.v1 import event_pb2

SERVER = Path(__file__).with_name("killable_server.py")
FAULTS = (
    "row stored, not acknowledged",
    "acknowledged, not enqueued",
    "enqueued, not claimed",
    "claimed, not read",
    "read, not stored",
    "stored, workflow still open",
)
DEADLINE = 30


@asynccontextmanager
async def _server(folder: Path, fault: str, database: str = "", role: str = "all", patience: float = 30):
    environment = {"PYTHONPATH": ":".join(sys.path)}
    arguments = (folder, fault, str(patience), "0", database, role)
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, *arguments, stdout=asyncio.subprocess.PIPE, env=environment
    )
    try:
        async with asyncio.timeout(DEADLINE):
            address = (await process.stdout.readline()).decode().strip()
        if role == "worker":
            yield process
            return
        async with open_channel(address) as channel:
            yield process, grpc_api.AnalysisServiceStub(channel), channel
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            status = await process.wait()
        assert status == (0 if fault == "none" else -signal.SIGKILL)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_killed_service_loses_and_duplicates_nothing(tmp_path, make_envelope, fault, database_url):
    database = database_url()
    request = pb.SubmitRequest(envelope=make_envelope())
    async with _server(tmp_path, fault, database) as (process, stub, _):
        # The answer may be lost with the process; what counts is what the next one makes of it.
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stub.Submit(request, timeout=DEADLINE)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == -signal.SIGKILL
    async with _server(tmp_path, "none", database) as (process, stub, _):
        if fault == FAULTS[0]:
            await stub.Submit(request, timeout=DEADLINE)
        events = []
        async for answer in stub.Watch(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE):
            if answer.HasField("event"):
                events.append(answer.event)
                if answer.event.type == event_pb2.Event.TYPE_SUCCEEDED:
                    break
        again = (await stub.Submit(request, timeout=DEADLINE)).analysis
        assert [event.type for event in events] == [
            event_pb2.Event.TYPE_ACCEPTED,
            event_pb2.Event.TYPE_SUCCEEDED,
        ]
        assert {event.analysis_id for event in events} == {again.analysis_id}
        assert [version.engine for version in again.versions] == ["edge", "echo"]
        listed = await stub.List(pb.AnalysisServiceListRequest(), timeout=DEADLINE)
        assert len(listed.analyses) == 1
        beyond = stub.Watch(pb.AnalysisServiceWatchRequest(resume_token=events[-1].resume_token), timeout=DEADLINE)
        assert (await beyond.read()).HasField("heartbeat")
        beyond.cancel()


async def test_two_processes_on_one_folder_do_every_document_once(tmp_path, make_envelope, database_url):
    documents, database = 24, database_url()
    async with (
        _server(tmp_path, "none", database) as (_, one, _),
        _server(tmp_path, "none", database) as (_, other, _),
    ):
        requests = [pb.SubmitRequest(envelope=make_envelope()) for _ in range(documents)]
        # Each goes to both, as from a device that changes its link in between.
        taken = await asyncio.gather(
            *(stub.Submit(request, timeout=DEADLINE) for request in requests for stub in (one, other))
        )
        ids = {answer.analysis.analysis_id for answer in taken}
        assert len(ids) == documents
        done: list[str] = []
        async for answer in other.Watch(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE):
            if answer.event.type == event_pb2.Event.TYPE_SUCCEEDED:
                done.append(answer.event.analysis_id)
            if answer.HasField("heartbeat") and len(done) >= documents:
                break
        assert sorted(done) == sorted(ids)


async def test_a_living_process_takes_over_from_a_killed_one(tmp_path, make_envelope, database_url):
    database = database_url()
    async with (
        _server(tmp_path, "claimed, not read", database) as (process, doomed, _),
        _server(tmp_path, "none", database) as (_, living, _),
    ):
        # Whichever of the two workers takes one: enough of them, and the doomed one takes its share.
        for _ in range(100):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await doomed.Submit(pb.SubmitRequest(envelope=make_envelope()), timeout=DEADLINE)
            if process.returncode is not None:
                break
        async with asyncio.timeout(DEADLINE):
            await process.wait()
        listed = await living.List(pb.AnalysisServiceListRequest(page_size=100), timeout=DEADLINE)
        ids = {analysis.analysis_id for analysis in listed.analyses}
        done: list[str] = []
        async for answer in living.Watch(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE):
            if answer.event.type == event_pb2.Event.TYPE_SUCCEEDED:
                done.append(answer.event.analysis_id)
            if len(done) == len(ids):
                break
        assert sorted(done) == sorted(ids)


async def test_front_ends_and_workers_on_one_postgresql_are_one_service(tmp_path, make_envelope, postgres):
    """Two of each; any front end answers for any analysis, and a killed worker's documents are done by the other."""
    database = postgres()
    async with (
        _server(tmp_path / "a", "none", database, "front") as (_, one, _),
        _server(tmp_path / "b", "none", database, "front") as (_, other, _),
        _server(tmp_path / "c", "claimed, not read", database, "worker") as doomed,
        _server(tmp_path / "d", "none", database, "worker"),
    ):
        requests = [pb.SubmitRequest(envelope=make_envelope()) for _ in range(16)]
        taken = await asyncio.gather(*(one.Submit(request, timeout=DEADLINE) for request in requests))
        ids = {answer.analysis.analysis_id for answer in taken}
        ended: list[tuple[int, str]] = []
        async for answer in other.Watch(pb.AnalysisServiceWatchRequest(), timeout=DEADLINE):
            if answer.event.type == event_pb2.Event.TYPE_SUCCEEDED:
                ended.append((answer.event.sequence, answer.event.analysis_id))
            if len(ended) == len(ids):
                break
        assert {analysis_id for _, analysis_id in ended} == ids
        assert ended == sorted(ended)
        for analysis_id in ids:
            answer = await other.Get(pb.AnalysisServiceGetRequest(analysis_id=analysis_id), timeout=DEADLINE)
            assert [version.engine for version in answer.analysis.versions] == ["edge", "echo"]
        async with asyncio.timeout(DEADLINE):
            await doomed.wait()
