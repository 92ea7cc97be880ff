"""The client SDK, blocking and not: the same methods, errors and manners on a real socket."""

import asyncio
import inspect
import uuid

import pytest
import pytest_asyncio

import docferry
from docferry import AsyncClient, Client
from docferry.channel import LinkTimes
from docferry.errors import ConfigurationError, InputError, NotFound, Unauthenticated, Unavailable
from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1.analysis_pb2 import Analysis
from docferry.v1.event_pb2 import Event
from tests.end_to_end.proxy import proxied

pytestmark = pytest.mark.asyncio(loop_scope="module")
LINK = LinkTimes(ping=0.4, pong=0.4, connect=1.0, first_pause=0.05, longest_pause=0.2)


class Blocking:
    """The blocking client, called in a thread so that the test reads like the other."""

    def __init__(self, target, **options):
        self._client = Client.connect(target, **options)

    def __getattr__(self, name):
        async def call(*args, **kwargs):
            return await asyncio.to_thread(getattr(self._client, name), *args, **kwargs)

        return call

    async def watch(self, *args, **kwargs):
        events = self._client.watch(*args, **kwargs)
        try:
            while True:
                yield await asyncio.to_thread(next, events)
        finally:
            await asyncio.to_thread(events.close)


@pytest.fixture(params=["AsyncClient", "Client"])
def connect(request):
    return AsyncClient.connect if request.param == "AsyncClient" else Blocking


@pytest_asyncio.fixture(loop_scope="module")
async def client(service, caller, connect):
    made = connect(service.address, token=caller.token)
    yield made
    await made.close()


@pytest.fixture
def picture(tmp_path, small_png):
    def make(name="receipt.png", more=b""):
        file = tmp_path / name
        file.write_bytes(small_png + more)
        return file

    return make


async def events_of(client, analysis_id, **options):
    seen = []
    events = client.watch(analysis_id=analysis_id, **options)
    async for event in events:
        seen.append(event)
        if event.type == Event.TYPE_SUCCEEDED:
            break
    await events.aclose()
    return seen


async def test_both_have_the_same_methods_with_the_same_arguments():
    def offered(kind):
        found = {
            name: str(inspect.signature(value).replace(return_annotation=inspect.Signature.empty))
            for name, value in vars(kind).items()
            if not name.startswith("_") and callable(value)
        }
        return found, inspect.signature(kind.connect)

    assert offered(Client) == offered(AsyncClient)
    assert set(docferry.__all__) >= {"Client", "AsyncClient"}
    with pytest.raises(AttributeError):
        docferry.Nothing  # noqa: B018


async def test_submit_wait_get_ask_export_and_delete(client, picture):
    file = picture()
    taken = await client.submit_file(file)
    done = await client.wait(taken.analysis_id, within=20)
    assert done.state == Analysis.STATE_SUCCEEDED
    assert (await client.get(document_id=done.document_id)).analysis_id == taken.analysis_id
    answer = await client.ask(taken.analysis_id, "What is the total?")
    assert answer.question == "What is the total?"
    data, media_type = await client.export(taken.analysis_id, pb.ExportRequest.FORMAT_JSON)
    assert data.startswith(b"{")
    assert media_type.startswith("application/json")
    assert (await client.part(taken.analysis_id, "original"))[1] == file.read_bytes()
    await client.delete(taken.analysis_id)
    with pytest.raises(NotFound) as raised:
        await client.get(taken.analysis_id)
    assert raised.value.remedy


async def test_the_same_request_id_makes_no_second_analysis_and_large_files_go_in_chunks(client, picture):
    request_id, sent = str(uuid.uuid4()), []
    file = picture("large.png", bytes(1_200_000))
    taken = await client.submit_file(file, request_id=request_id, progress=lambda done, total: sent.append(done))
    again = await client.submit_file(file, request_id=request_id)
    assert again.analysis_id == taken.analysis_id
    assert len(sent) > 1
    assert sent[-1] == file.stat().st_size
    assert (await client.wait(taken.analysis_id, within=20)).state == Analysis.STATE_SUCCEEDED


async def test_watching_goes_on_from_a_token(client, picture):
    taken = await client.submit_file(picture())
    whole = await events_of(client, taken.analysis_id)
    rest = await events_of(client, taken.analysis_id, resume_token=whole[0].resume_token)
    assert [event.event_id for event in rest] == [event.event_id for event in whole[1:]]


async def test_a_broken_link_is_taken_up_again_where_it_stopped(service, caller, connect, make_envelope):
    async with asyncio.timeout(40), proxied(int(service.address.rpartition(":")[2])) as link:
        client = connect(f"127.0.0.1:{link.port}", token=caller.token, times=LINK)
        events = client.watch()
        seen = []
        for _ in range(3):
            taken = await caller.submit(make_envelope())
            async for event in events:
                seen.append(event)
                if event.type == Event.TYPE_SUCCEEDED and event.analysis_id == taken.analysis_id:
                    break
            for writer in list(link._writers):
                writer.transport.abort()
        assert link.taken >= 3
        whole = []
        async for answer in caller.watch():
            if answer.HasField("heartbeat"):
                break
            whole.append(answer.event.event_id)
        assert [event.event_id for event in seen] == whole
        await events.aclose()
        await client.close()


async def test_errors_are_typed_and_say_what_to_do(client, connect, service, tmp_path):
    with pytest.raises(NotFound):
        await client.get("f8b0e0f3-0000-4000-8000-000000000000")
    with pytest.raises(NotFound, match="no such file"):
        await client.submit_file(tmp_path / "missing.jpg")
    with pytest.raises(InputError):
        await anext(client.watch("nonsense"))
    with pytest.raises(ConfigurationError, match="is not an address"):
        connect("nowhere")
    stranger = connect(service.address, token="wrong")
    with pytest.raises(Unauthenticated):
        await stranger.get("f8b0e0f3-0000-4000-8000-000000000000")
    await stranger.close()


async def test_what_does_not_finish_in_time_is_said(client, make_envelope, make_part, large_picture):
    envelope = make_envelope(parts=[make_part(large_picture, inline=False)])
    taken = await client.submit(pb.SubmitRequest(envelope=envelope))
    with pytest.raises(Unavailable, match="did not finish within"):
        await client.wait(taken.analysis_id, within=0.2)


async def test_a_closed_blocking_client_says_so(service):
    client = Client.connect(service.address)
    await asyncio.to_thread(client.close)
    await asyncio.to_thread(client.close)
    with pytest.raises(RuntimeError, match="closed"):
        client.get("x")


async def test_a_link_is_open_for_as_long_as_was_asked(client, picture):
    taken = await client.submit_file(picture())
    with pytest.raises(InputError, match="would be open for 864000 s"):
        await client.claim(taken.analysis_id, open_within_s=864_000.0)
    await client.claim(taken.analysis_id, open_within_s=600.0)
