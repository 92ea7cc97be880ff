"""The edge's doctor finds what is really wrong around an agent, and says what to do."""

import json

import grpc
import grpc.aio
import pytest
from typer.testing import CliRunner

from docferry.doctor import FAILED, OK, WARNING
from docferry.errors import DocferryError, Forbidden, NotFound, Unauthenticated
from docferry.model_store import default_store
from docferry.model_store.bundle import Bundle, describe, install_bundle, write_manifest
from docferry.settings import load
from docferry.status import abort
from docferry.v1 import analysis_service_pb2_grpc
from docferry_edge.commands import edge_app
from docferry_edge.doctor import _cloud, examine
from docferry_edge.read import MODELS
from docferry_edge.settings import SETTINGS, edge_settings

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def settings(tmp_path):
    """Makes an agent's settings, with folders that are there."""

    def made(text: str = "", target: str = NOWHERE):
        for name in ("inbox", "edge"):
            (tmp_path / name).mkdir(exist_ok=True)
        file = tmp_path / "edge.toml"
        file.write_text(
            f'[inbox]\ndirectory = "{tmp_path / "inbox"}"\n[state]\ndirectory = "{tmp_path / "edge"}"\n'
            f'[cloud]\ntarget = "{target}"\n{text}'
        )
        return edge_settings(load(SETTINGS, file))

    return made


def found_with(settings) -> dict[str, str]:
    return {finding.name: finding.state for finding in examine(settings, default_store())}


def test_an_agent_works_without_its_cloud_and_without_built_models_and_is_told_so(settings):
    found = found_with(settings())
    assert (found["cloud"], found["inbox"], found["outbox"], found["models"]) == (WARNING, OK, OK, OK)
    assert FAILED not in found.values()


def test_an_agent_that_sends_nothing_needs_no_cloud(settings):
    assert found_with(settings('[route]\nmode = "offline"\n'))["cloud"] == OK


def test_missing_models_and_a_missing_camera_fail(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCFERRY_CACHE", str(tmp_path / "no-models"))
    found = found_with(settings('[camera]\nsource = "/dev/none"\n'))
    assert found["models"] == found["camera"] == FAILED


def test_built_models_stand_in_for_originals_that_are_not_here(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCFERRY_CACHE", str(tmp_path / "cache"))
    store, bundle = default_store(), tmp_path / "bundle"
    bundle.mkdir()
    entries = {}
    for name in MODELS:
        (bundle / f"{name}.onnx").write_bytes(name.encode())
        entries[name] = describe(name, bundle / f"{name}.onnx", store.sha256(name))
    write_manifest(bundle, Bundle(entries, 1, {}))
    install_bundle(bundle, store)
    found = found_with(settings())
    assert found["models"] == found["built models"] == OK


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NotFound("there is no such analysis"), OK),
        (Unauthenticated("this key is not valid"), FAILED),
        (Forbidden("this key does not allow Get"), FAILED),
    ],
)
async def test_what_the_cloud_answers_tells_whether_it_knows_the_device(settings, error: DocferryError, state):
    class Servicer(analysis_service_pb2_grpc.AnalysisServiceServicer):
        async def Get(self, request, context):
            await abort(context, error)

    server = grpc.aio.server()
    analysis_service_pb2_grpc.add_AnalysisServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        assert (await _cloud(settings(target=f"127.0.0.1:{port}"))).state == state
    finally:
        await server.stop(None)


def test_the_command_ends_with_1_if_something_fails(settings, tmp_path, monkeypatch):
    settings()
    config = str(tmp_path / "edge.toml")
    done = CliRunner().invoke(edge_app, ["doctor", "--config", config, "--json"])
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()][:2] == ["inbox", "outbox"]
    monkeypatch.setenv("DOCFERRY_CACHE", str(tmp_path / "no-models"))
    done = CliRunner().invoke(edge_app, ["doctor", "--config", config])
    assert done.exit_code == 1
    assert "docferry models pull" in done.stdout
