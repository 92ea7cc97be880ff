"""The service's limits and what its settings change. Each test starts its own server."""

import asyncio
import threading
from dataclasses import replace

import grpc
import pytest

from docferry.channel import call_metadata, open_channel
from docferry.packing import pack_reading
from docferry.status import error_from_rpc
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import analysis_service_pb2_grpc, envelope_pb2
from docferry_cloud.settings_rows import Webhook
from docferry_cloud.watch import WatchTimes

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_full_queue_says_when_to_try_again(running, tmp_path, make_envelope, make_part, reason_of):
    async with running(tmp_path, queue_limit=2, tenant_limit=1) as service:
        part = make_part(b"later", kind=envelope_pb2.PART_KIND_ORIGINAL, inline=False)
        first, second = service.caller(), service.caller()
        await first.submit(make_envelope(parts=[part]))
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await first.submit(make_envelope(parts=[part]))
        assert reason_of(failure.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert error_from_rpc(failure.value).retry_after > 0
        await second.submit(make_envelope(parts=[part]))
        with pytest.raises(grpc.aio.AioRpcError):
            await service.caller().submit(make_envelope(parts=[part]))
        # What waits for its parts takes no room from work that can be done.
        whole = await first.submit(make_envelope())
        await first.finished(whole.analysis_id)


async def test_a_full_disk_takes_nothing(running, tmp_path, make_envelope, reason_of):
    async with running(tmp_path, min_free_bytes=1 << 60) as service:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await service.caller().submit(make_envelope())
        assert reason_of(failure.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORAGE_FULL")


async def test_a_watch_ends_cleanly_at_its_age_and_when_the_service_stops(running, quick_times, tmp_path):
    aging = replace(quick_times, watch=WatchTimes(heartbeat=0.1, max_age=0.3))
    async with running(tmp_path, times=aging) as service:
        call = service.caller().watch()
        assert [answer.HasField("heartbeat") async for answer in call]
        assert await call.code() == grpc.StatusCode.OK
    async with running(tmp_path) as service:
        call = service.caller().watch()
        await call.read()
        await service.server._feed.close()
        while await call.read() is not grpc.aio.EOF:
            pass
        assert await call.code() == grpc.StatusCode.OK


async def test_a_tenant_with_too_many_watchers_is_told_so(running, tmp_path, reason_of):
    async with running(tmp_path) as service:
        service.server._feed._max_watchers = 2
        caller = service.caller()
        calls = [caller.watch() for _ in range(2)]
        for call in calls:
            await call.read()
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await caller.watch().read()
        assert reason_of(failure.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        other = service.caller().watch()
        assert (await other.read()).HasField("heartbeat")
        for call in (*calls, other):
            call.cancel()


async def test_the_settings_webhooks_follow_the_settings(running, tmp_path, make_envelope, receiver):
    hooks = (Webhook(receiver.url, receiver.secret, "tenant-0"),)
    async with running(tmp_path, webhooks=hooks) as service:
        caller = service.caller(0)
        await caller.submit(make_envelope())
        assert b"analysis.accepted" in (await receiver.next()).body
        assert b"analysis.succeeded" in (await receiver.next()).body
    async with running(tmp_path) as service:
        caller = service.caller(0)
        taken = await caller.submit(make_envelope())
        await caller.finished(taken.analysis_id)
        assert receiver.requests.empty()


async def test_what_a_webhook_has_not_received_is_posted_after_a_restart(
    running, quick_times, tmp_path, make_envelope, receiver
):
    hooks = (Webhook(receiver.url, receiver.secret, "tenant-0"),)
    receiver.answer(500, 500)
    patient = replace(quick_times, webhook_waits=(2.0,))
    async with running(tmp_path, webhooks=hooks, times=patient) as service:
        caller = service.caller(0)
        taken = await caller.submit(make_envelope())
        await caller.finished(taken.analysis_id)
        before = {(await receiver.next()).headers["webhook-id"] for _ in range(2)}
    async with running(tmp_path, webhooks=hooks, times=patient):
        assert {(await receiver.next()).headers["webhook-id"] for _ in range(2)} == before


async def test_without_tokens_everyone_on_this_machine_is_the_local_tenant(running, tmp_path, make_envelope):
    async with running(tmp_path, tokens=()) as service:
        caller = service.caller()
        taken = await caller.submit(make_envelope())
        caller.token = ""
        assert (await caller.finished(taken.analysis_id)).analysis_id == taken.analysis_id


async def test_calls_are_taken_over_tls(running, tmp_path, certificate):
    made, key = certificate
    async with running(tmp_path, certificate=made, key=key) as service:
        target = f"localhost:{service.address.rpartition(':')[2]}"
        async with open_channel(target, token="token-1", ca=made) as channel:
            stub = analysis_service_pb2_grpc.AnalysisServiceStub(channel)
            answer = await stub.List(pb.AnalysisServiceListRequest(), timeout=20, metadata=call_metadata("token-1"))
            assert not answer.analyses


async def test_a_flood_of_one_tenant_lets_another_one_go_next(
    running, tmp_path, echo_engine, make_envelope, reading, until, database_url
):
    order, opened = [], threading.Event()

    def hook(page, _cancelled):
        order.append(page.reading.width)
        opened.wait(20)

    def envelope(width):
        page = replace(reading.document.pages[0], width=width)
        return make_envelope(
            structure=pack_reading(replace(reading, document=replace(reading.document, pages=(page,))))
        )

    async with running(tmp_path, lambda: echo_engine(hook), workers=1, database=database_url()) as service:
        flooding, other = service.caller(), service.caller()
        await flooding.submit(envelope(1))
        await until(lambda: order)
        flood = [await flooding.submit(envelope(number)) for number in range(2, 7)]
        # In the queue, and only then comes the other tenant.
        queued = service.server._worker.workflows.stages
        ids = [analysis.analysis_id for analysis in flood]

        async def all_queued():
            return len(await asyncio.to_thread(queued, ids)) == len(ids)

        await until(all_queued)
        mine = await other.submit(envelope(100))
        await until(lambda: asyncio.to_thread(queued, [mine.analysis_id]))
        opened.set()
        await other.finished(mine.analysis_id)
        for analysis_id in ids:
            await flooding.finished(analysis_id)
        assert order == [1, 100, 2, 3, 4, 5, 6]
