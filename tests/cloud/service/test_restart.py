"""Stop and start on the same folder, work that fails, health, and what the sweeper makes up for."""

import asyncio
import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from docferry.errors import EngineError, StorageFull, Unavailable
from docferry.status import error_of
from docferry.v1 import analysis_pb2, event_pb2
from docferry.v1 import analysis_service_pb2 as pb
from docferry_cloud.work import WorkList
from docferry_cloud.workflow import Workflows

Analysis = analysis_pb2.Analysis
HealthStatus = health_pb2.HealthCheckResponse


class Gate:
    """An engine hook that holds pages until it is opened, or until the work is cancelled."""

    def __init__(self):
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, _page, cancelled):
        self.entered.set()
        while not self.opened.wait(0.01):
            if cancelled():
                raise EngineError("stopped", remedy="none needed")


async def test_a_restart_finishes_what_was_running_and_what_was_waiting(
    running, tmp_path, echo_engine, make_envelope, until
):
    gate = Gate()
    envelopes = [make_envelope() for _ in range(4)]
    async with running(tmp_path, lambda: echo_engine(gate)) as service:
        caller = service.caller()
        ids = [(await caller.submit(envelope)).analysis_id for envelope in envelopes]
        await until(gate.entered.is_set)
    async with running(tmp_path) as service:
        caller = service.caller(0)
        done = [await caller.finished(analysis_id) for analysis_id in ids]
        assert {analysis.state for analysis in done} == {Analysis.STATE_SUCCEEDED}
        assert all(len(analysis.versions) == 2 for analysis in done)
        everything = []
        async for answer in caller.watch():
            if answer.HasField("heartbeat"):
                break
            everything.append((answer.event.type, answer.event.analysis_id))
        assert len(everything) == len(set(everything)) == 8


async def test_a_row_without_a_workflow_is_enqueued_by_the_sweeper(
    running, tmp_path, make_envelope, monkeypatch, until
):
    lost = threading.Event()
    real = Workflows.enqueue

    def lose_the_first(self, analysis_id, place=0):
        if lost.is_set():
            real(self, analysis_id, place)
        lost.set()

    monkeypatch.setattr(Workflows, "enqueue", lose_the_first)
    monkeypatch.setattr("docferry_cloud.taking.DIRECT_LEASE_S", 0)
    async with running(tmp_path) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        assert (await caller.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED
        assert lost.is_set()


async def test_a_workflow_that_is_over_without_an_outcome_is_made_anew(running, tmp_path, make_envelope, monkeypatch):
    seen = threading.Event()
    real = WorkList.claim

    def break_once(self, analysis_id):
        if not seen.is_set():
            seen.set()
            raise RuntimeError("the database was away")
        return real(self, analysis_id)

    monkeypatch.setattr(WorkList, "claim", break_once)
    monkeypatch.setattr("docferry_cloud.taking.DIRECT_LEASE_S", 0)
    async with running(tmp_path) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        assert (await caller.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED


async def test_an_outcome_that_could_not_be_stored_is_made_again(running, tmp_path, make_envelope, monkeypatch):
    failed = threading.Event()
    real = WorkList.finish

    def fail_once(self, analysis_id, version, key, **more):
        if not failed.is_set():
            failed.set()
            raise StorageFull("the disk is full", remedy="free some space")
        return real(self, analysis_id, version, key, **more)

    monkeypatch.setattr(WorkList, "finish", fail_once)
    async with running(tmp_path) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        done = await caller.finished(taken.analysis_id)
        assert done.state == Analysis.STATE_SUCCEEDED
        assert [version.engine for version in done.versions] == ["edge", "echo"]


async def test_an_engine_that_fails_fails_the_analysis_once_with_its_reason(
    running, tmp_path, echo_engine, make_envelope
):
    def broken(page, _cancelled):
        if page.reading.lines[0].text == "TOTAL 9.00":
            raise ZeroDivisionError("inside the engine")

    async with running(tmp_path, lambda: echo_engine(broken)) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        failed = await caller.finished(taken.analysis_id)
        assert failed.state == Analysis.STATE_FAILED
        error = error_of(failed.error)
        assert isinstance(error, EngineError)
        assert "ZeroDivisionError" in error.reason
        assert "inside the engine" not in str(error)
        assert error.metadata["error_id"]
        assert [version.engine for version in failed.versions] == ["edge"]


async def test_an_engine_that_is_away_for_a_moment_is_asked_again(
    running, tmp_path, echo_engine, make_envelope, monkeypatch
):
    monkeypatch.setattr("docferry_cloud.interpreter._RETRY_WAIT_S", 0.0)
    calls = []

    def away_once(_page, _cancelled):
        calls.append(1)
        if len(calls) == 1:
            raise Unavailable("the model server is away", remedy="wait")

    async with running(tmp_path, lambda: echo_engine(away_once)) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        assert (await caller.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED
        assert len(calls) == 2


async def test_a_cancelled_analysis_stops_its_engine_and_stays_cancelled(
    running, tmp_path, echo_engine, make_envelope, until
):
    gate = Gate()
    async with running(tmp_path, lambda: echo_engine(gate), workers=1) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        await until(gate.entered.is_set)
        await caller("Cancel", pb.CancelRequest(analysis_id=taken.analysis_id))
        gate.entered.clear()
        # The one worker takes the next document only once it has let go of the first.
        following = await caller.submit(make_envelope())
        await until(gate.entered.is_set)
        gate.opened.set()
        assert (await caller.finished(following.analysis_id)).state == Analysis.STATE_SUCCEEDED
        assert (await caller.get(taken.analysis_id)).state == Analysis.STATE_CANCELLED


async def test_an_analysis_deleted_while_it_is_read_leaves_nothing_and_nobody_waiting(
    running, tmp_path, echo_engine, make_envelope, until, reason_of
):
    gate = Gate()
    async with running(tmp_path, lambda: echo_engine(gate), workers=1) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        await until(gate.entered.is_set)
        await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=taken.analysis_id))
        gate.opened.set()
        following = await caller.submit(make_envelope())
        assert (await caller.finished(following.analysis_id)).state == Analysis.STATE_SUCCEEDED
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.get(taken.analysis_id)
        assert reason_of(failure.value) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


@pytest.mark.parametrize("times", [50, 5000], ids=["in rows", "in a blob"])
async def test_deleted_data_is_gone_from_the_disk(running, tmp_path, make_envelope, make_part, until, times):
    def files():
        return [path for path in tmp_path.rglob("*") if path.is_file()]

    secret = b"a-text-that-stands-nowhere-else" * times
    part = make_part(secret, kind=4, inline=False, media_type="application/octet-stream")
    async with running(tmp_path) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope(parts=[part], file_name="private-name.jpg"))
        await caller.supply(taken.analysis_id, part, secret)
        await caller.finished(taken.analysis_id)
        blobs = tmp_path / "blobs"
        await until(lambda: any(path.is_file() for path in blobs.rglob("*")) == (times > 50))
        await caller("Delete", pb.AnalysisServiceDeleteRequest(analysis_id=taken.analysis_id))
        await caller.events(lambda event: event.type == event_pb2.Event.TYPE_DELETED)
        left = b"".join(path.read_bytes() for path in files())
        assert b"a-text-that-stands-nowhere-else" not in left
        assert b"private-name" not in left


async def test_health_follows_the_engine(running, tmp_path, echo_engine, make_envelope, until):
    loaded = threading.Event()

    def slow_factory():
        loaded.wait(20)
        return echo_engine()

    async with running(tmp_path, slow_factory) as service:
        health = health_pb2_grpc.HealthStub(service.channel)

        async def serving():
            return (await health.Check(health_pb2.HealthCheckRequest())).status == HealthStatus.SERVING

        try:
            assert not await serving()
            caller = service.caller()
            taken = await caller.submit(make_envelope())
            assert taken.state == Analysis.STATE_PENDING
        finally:
            loaded.set()
        await until(serving)
        assert (await caller.finished(taken.analysis_id)).state == Analysis.STATE_SUCCEEDED


async def test_an_engine_that_cannot_load_ends_the_service_with_its_error(tmp_path):
    from docferry.errors import ModelError
    from docferry_cloud.server import serve
    from docferry_cloud.settings import CloudSettings

    def missing():
        raise ModelError("the model is missing", remedy="pull it")

    async with asyncio.timeout(20):
        with pytest.raises(ModelError):
            await serve(CloudSettings(directory=tmp_path, port=0), engine_factory=missing)


async def test_a_port_in_use_is_a_clear_error(running, tmp_path, echo_engine):
    from docferry.errors import ConfigurationError
    from docferry_cloud.server import CloudServer
    from docferry_cloud.settings import CloudSettings

    async with running(tmp_path / "one") as service:
        port = int(service.address.rpartition(":")[2])
        other = CloudServer(CloudSettings(directory=tmp_path / "two", port=port), engine_factory=echo_engine)
        with pytest.raises(ConfigurationError, match="cannot be bound"):
            await other.start()
        await other.stop()


async def test_reflection_answers_only_when_it_is_switched_on(running, tmp_path):
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async with running(tmp_path / "on", reflection=True) as service:
        call = reflection_pb2_grpc.ServerReflectionStub(service.channel).ServerReflectionInfo(iter([request]))
        names = {entry.name for entry in (await call.read()).list_services_response.service}
        assert "docferry.v1.AnalysisService" in names
        call.cancel()
    async with running(tmp_path / "off") as service:
        call = reflection_pb2_grpc.ServerReflectionStub(service.channel).ServerReflectionInfo(iter([request]))
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call.read()
        assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
