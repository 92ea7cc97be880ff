"""The full model behind a running service: deep answers, fast ones that stand in for them, versions that follow."""

import asyncio
import io
import json
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from docferry.cli import application
from docferry.document import Page, Quality
from docferry.v1 import analysis_service_pb2, envelope_pb2, event_pb2
from docferry_cloud.engine import Task
from docferry_cloud.vlm.reader import FullReader
from docferry_cloud.vlm.servers import Servers, ServerTimes
from docferry_cloud.vlm.two_steps import TwoSteps
from tests.cloud.service.running import QUICK, running_server
from tests.cloud.vlm.openai_server import fake_server
from tests.cloud.vlm.tiny_model import ANSWERS

TIMES = replace(QUICK, deep_retry=0.3)


class BlindEngine:
    """Sees a page and nothing on it, as a layout network does that knows no such page."""

    name = "fast"
    tasks = frozenset({Task.TEXT})

    def read(self, page, effort, cancelled):
        return Page(400, 300, quality=Quality(orientation_score=1.0))


def answers(prompt, picture, body):
    return {"text": f"{ANSWERS[prompt]}<|im_end|>", "usage": {"prompt_tokens": 30, "completion_tokens": 5}}


@asynccontextmanager
async def deep_service(folder, url, **settings):
    """A service whose full model is behind `url`."""
    model = Servers([url], model="tiny", times=ServerTimes(connect=2.0, silence=10.0, open=0.1, pauses=()))

    def engine():
        return TwoSteps(BlindEngine(), FullReader(model))

    async with running_server(folder, engine, TIMES, **settings) as service:
        yield service
    model.close()


@pytest.fixture
def page_png() -> bytes:
    image = np.full((300, 400, 3), 250, np.uint8)
    image[40:60, 30:370] = 30
    data = io.BytesIO()
    Image.fromarray(image).save(data, "PNG")
    return data.getvalue()


@pytest.fixture
def deep_envelope(make_envelope, make_part, page_png):
    def make(effort=envelope_pb2.EFFORT_DEEP):
        part = make_part(page_png, kind=envelope_pb2.PART_KIND_ORIGINAL)
        return make_envelope(structure=None, parts=[part], effort=effort)

    return make


def codes(version):
    return [notice.code for notice in version.interpretation.notices]


async def deepened(caller, analysis_id):
    """The analysis once a version was added to it after it had finished."""
    kind = event_pb2.Event.TYPE_VERSION_ADDED
    await caller.events(lambda event: event.type == kind, analysis_id=analysis_id)
    return await caller.get(analysis_id)


async def test_submit_with_deep_effort_yields_title_text_table_and_formula(tmp_path, page_png):
    file = tmp_path / "page.png"
    file.write_bytes(page_png)
    with fake_server(answers) as server:
        async with deep_service(tmp_path, server.url) as service:
            caller = service.caller()
            arguments = ("submit", file, "--effort", "deep", "--wait", "--json", "--to", service.address)
            arguments += ("--token", caller.token)
            told = await asyncio.to_thread(CliRunner().invoke, application(), [str(each) for each in arguments])
    assert told.exit_code == 0, told.output
    tree = json.loads(told.stdout)
    assert tree["engine"] == "vlm"
    title, text, table, formula = tree["pages"][0]["regions"]
    assert [region["type"] for region in (title, text, table, formula)] == ["title", "text", "table", "equation"]
    assert text["lines"][0]["text"] == "The quick brown fox"
    assert text["lines"][0]["provenance"] == "cloud:vlm-tiny"
    assert table["html"] == '<table><tr><td colspan="2">A</td></tr><tr><td>1</td><td>2</td></tr></table>'
    assert formula["latex"] == "E=mc^{2}"
    assert "$$\nE=mc^{2}\n$$" in tree["markdown"]
    (cost,) = tree["notices"]
    assert cost["code"] == "DEEP_COST"
    assert "5 questions to the full model, 150 tokens in, 25 out" in cost["detail"]


async def test_a_server_killed_midway_gives_the_fast_answer_marked_and_the_deep_one_later(
    tmp_path, database_url, deep_envelope
):
    reached, killed = threading.Event(), threading.Event()

    def dies(prompt, picture, body):
        if "Layout" in prompt:
            return answers(prompt, picture, body)
        reached.set()
        killed.wait(20)
        raise ConnectionResetError

    with fake_server(dies) as server:
        url, port = server.url, server.server_address[1]
        async with deep_service(tmp_path, url, database=database_url()) as service:
            caller = service.caller()
            submitted = await caller.submit(deep_envelope())
            assert await asyncio.to_thread(reached.wait, 20)
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            killed.set()
            fast = await caller.finished(submitted.analysis_id)
            assert [version.engine for version in fast.versions] == ["fast"]
            assert codes(fast.versions[0]) == ["DEEP_UNAVAILABLE"]
            with fake_server(answers, port):
                deep = await deepened(caller, submitted.analysis_id)
    assert [version.engine for version in deep.versions] == ["fast", "vlm"]
    assert codes(deep.versions[1]) == ["DEEP_COST"]
    assert "The quick brown fox" in deep.versions[1].interpretation.markdown
    assert deep.state == fast.state


async def test_automatic_effort_answers_now_and_better_later(tmp_path, database_url, deep_envelope):
    with fake_server(answers) as server:
        async with deep_service(tmp_path, server.url, database=database_url()) as service:
            caller = service.caller()
            server.gate.clear()
            submitted = await caller.submit(deep_envelope(envelope_pb2.EFFORT_AUTO))
            fast = await caller.finished(submitted.analysis_id)
            assert codes(fast.versions[0]) == ["DEEP_FOLLOWS"]
            server.gate.set()
            deep = await deepened(caller, submitted.analysis_id)
    assert [version.engine for version in deep.versions] == ["fast", "vlm"]


async def test_fast_effort_asks_nothing_of_the_full_model(tmp_path, deep_envelope):
    with fake_server(answers) as server:
        async with deep_service(tmp_path, server.url) as service:
            caller = service.caller()
            submitted = await caller.submit(deep_envelope(envelope_pb2.EFFORT_FAST))
            fast = await caller.finished(submitted.analysis_id)
        assert server.bodies == []
    assert [codes(version) for version in fast.versions] == [[]]


async def test_what_is_owed_outlives_the_process_and_a_deleted_analysis_is_owed_nothing(
    tmp_path, database_url, deep_envelope
):
    url = database_url()
    with fake_server(answers) as server:
        gone = server.url
        port = server.server_address[1]
    async with deep_service(tmp_path, gone, database=url) as service:
        caller = service.caller(0)
        kept, deleted = [(await caller.submit(deep_envelope())).analysis_id for _ in range(2)]
        for analysis_id in (kept, deleted):
            assert codes((await caller.finished(analysis_id)).versions[0]) == ["DEEP_UNAVAILABLE"]
        await caller("Delete", analysis_service_pb2.AnalysisServiceDeleteRequest(analysis_id=deleted))
    with fake_server(answers, port):
        async with deep_service(tmp_path, gone, database=url) as service:
            deep = await deepened(service.caller(0), kept)
            assert [version.engine for version in deep.versions] == ["fast", "vlm"]
            core = service.server._core
            assert await core.database.run(core.deepenings.lease, 1.0) == []


async def test_a_person_who_was_quicker_has_the_last_word(tmp_path, deep_envelope, until):
    with fake_server(answers) as server:
        server.gate.clear()
        async with deep_service(tmp_path, server.url) as service:
            caller = service.caller()
            analysis_id = (await caller.submit(deep_envelope(envelope_pb2.EFFORT_AUTO))).analysis_id
            await caller.finished(analysis_id)
            assert await asyncio.to_thread(server.entered.acquire, timeout=20)
            field = {"name": "total", "value": "9.00", "normalized": "9.00"}
            request = analysis_service_pb2.CorrectRequest(analysis_id=analysis_id, version=1, fields=[field])
            await caller("Correct", request)
            server.gate.set()
            core = service.server._core
            await until(lambda: server.under_way == 0 and not core.deepenings._held)
            found = await caller.get(analysis_id)
    assert [version.engine for version in found.versions] == ["fast", "person"]
