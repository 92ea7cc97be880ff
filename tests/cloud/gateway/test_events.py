"""Server-sent events: in order, from where a client was, and over as soon as it has gone."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager

import pytest

from docferry.v1 import event_pb2

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def stream(client, headers=None, **params):
    async with client.stream("GET", "/v1/events", params=params, headers=headers or {}) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield blocks(answer)


async def blocks(answer):
    """The stream's blocks as dicts of id, event, data, comment."""
    block = {}
    async for line in answer.aiter_lines():
        if not line:
            yield block
            block = {}
            continue
        name, _, value = line.partition(":")
        block[name or "comment"] = value.strip()


async def until_event(found, name):
    """The blocks with data up to and with the first of this name."""
    seen = []
    async with asyncio.timeout(20):
        async for block in found:
            if "data" in block:
                seen.append({**block, "data": json.loads(block["data"])})
                if block["event"] == name:
                    return seen
    raise AssertionError("the stream ended")


async def test_the_past_comes_first_then_what_happens_now_in_the_order_of_the_log(http, make_envelope):
    first = await http.caller.submit(make_envelope())
    await http.caller.finished(first.analysis_id)
    async with stream(http.client) as found:
        past = await until_event(found, "succeeded")
        second = await http.caller.submit(make_envelope())
        live = await until_event(found, "succeeded")
    assert {block["data"]["analysis_id"] for block in past} == {first.analysis_id}
    assert {block["data"]["analysis_id"] for block in live} == {second.analysis_id}
    numbers = [int(block["data"]["sequence"]) for block in [*past, *live]]
    assert numbers == sorted(set(numbers))
    by_grpc = await http.caller.events(
        lambda event: event.type == event_pb2.Event.TYPE_SUCCEEDED and event.analysis_id == second.analysis_id
    )
    assert [block["data"]["event_id"] for block in [*past, *live]] == [event.event_id for event in by_grpc]
    assert all(block["id"] == block["data"]["resume_token"] for block in [*past, *live])


async def test_a_browser_that_comes_back_goes_on_after_the_last_id_it_saw(http, make_envelope):
    analysis = await http.caller.submit(make_envelope())
    await http.caller.finished(analysis.analysis_id)
    async with stream(http.client, analysis_id=analysis.analysis_id) as found:
        seen = await until_event(found, "succeeded")
    assert len(seen) > 1
    # Its address still says where it began.
    headers = {"last-event-id": seen[0]["id"]}
    async with stream(http.client, headers, analysis_id=analysis.analysis_id, resume_token="") as found:
        rest = await until_event(found, "succeeded")
    assert [b["id"] for b in rest] == [b["id"] for b in seen[1:]]


async def test_silence_is_broken_by_comments_that_carry_the_token(http):
    async with stream(http.client, live_only="true") as found, asyncio.timeout(20):
        beats = [block async for block in _some(found, 3)]
    assert beats[0] == {"retry": "1000"}
    assert all("comment" in beat and beat["id"] and "data" not in beat for beat in beats[1:])


async def _some(found, count):
    async for block in found:
        yield block
        count -= 1
        if not count:
            return


async def test_a_token_of_another_log_is_told_and_the_stream_goes_on_with_what_is_kept(http, make_envelope):
    analysis = await http.caller.submit(make_envelope())
    await http.caller.finished(analysis.analysis_id)
    token = base64.urlsafe_b64encode(b"1:another:5").decode()
    async with stream(http.client, {"last-event-id": token}) as found:
        seen = await until_event(found, "succeeded")
    assert seen[0]["event"] == "history_gone"
    assert seen[0]["id"] == ""
    assert seen[0]["data"]["error"]["reason"] == "HISTORY_GONE"
    assert seen[1]["event"] == "accepted"


async def test_a_malformed_token_is_refused(http):
    answer = await http.client.get("/v1/events", headers={"last-event-id": "nonsense"})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (400, "INVALID_INPUT")


async def test_ndjson_holds_the_same(http, make_envelope):
    analysis = await http.caller.submit(make_envelope())
    async with (
        asyncio.timeout(20),
        http.client.stream("GET", "/v1/events", headers={"accept": "application/x-ndjson"}) as answer,
    ):
        async for line in answer.aiter_lines():
            tree = json.loads(line)
            if tree.get("event", {}).get("type") == "TYPE_SUCCEEDED":
                assert tree["event"]["analysis_id"] == analysis.analysis_id
                return
    raise AssertionError("the stream ended")


async def test_when_the_client_has_gone_the_rpc_is_over(http, until):
    watchers = http.service.server._feed._watchers
    async with stream(http.client) as found:
        await anext(found)
        await until(lambda: len(watchers.get(http.caller.tenant, ())) == 1)
    await until(lambda: http.caller.tenant not in watchers)


async def test_nothing_of_anothers_is_told(http, make_envelope):
    analysis = await http.caller.submit(make_envelope())
    await http.caller.finished(analysis.analysis_id)
    async with http.other() as other, stream(other, analysis_id=analysis.analysis_id) as found, asyncio.timeout(20):
        assert all(["data" not in block async for block in _some(found, 3)])
