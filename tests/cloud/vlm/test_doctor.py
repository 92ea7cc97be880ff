import json

import pytest

from docferry.doctor import FAILED, OK, WARNING
from docferry.errors import ConfigurationError
from docferry.settings import load
from docferry_cloud.settings import SETTINGS, cloud_settings
from docferry_cloud.vlm.doctor import look
from docferry_cloud.vlm.settings import VlmSettings
from tests.cloud.vlm.openai_server import fake_server

BLOCK = "<|box_start|>050 040 950 100<|box_end|><|ref_start|>title<|ref_end|><|rotate_up|>"


def with_specials(prompt, picture, body):
    return {"text": BLOCK}


def without_specials(prompt, picture, body):
    return {"text": "050 040 950 100title"}


def test_a_server_that_is_well_is_named_with_its_model():
    with fake_server(with_specials) as server:
        found = look(VlmSettings(servers=(server.url,)))
    assert found.state == OK
    assert f"{server.url} serves tiny and returns special tokens" in found.detail


def test_a_server_that_strips_special_tokens_is_told_from_one_that_is_gone():
    with fake_server(without_specials) as server:
        strips = look(VlmSettings(servers=(server.url,)))
    gone = look(VlmSettings(servers=(server.url,)))
    assert (strips.state, gone.state) == (WARNING, FAILED)
    assert "--special" in strips.remedy
    assert "ConnectError" in gone.detail


def test_one_server_of_two_is_enough_to_work_but_not_to_be_content():
    with fake_server(with_specials) as server, fake_server() as other:
        other.statuses = [500]
        found = look(VlmSettings(servers=(server.url, other.url), model="tiny"))
    assert found.state == WARNING
    assert "returns special tokens" in found.detail
    assert "500" in found.detail


def test_no_model_is_fine_and_a_directory_is_looked_at_without_loading_it(tmp_path):
    assert look(VlmSettings()).state == OK
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2_vl"}))
    lacking = look(VlmSettings(directory=tmp_path))
    assert (lacking.state, "safetensors" in lacking.detail) == (FAILED, True)
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert "tokenizer" in look(VlmSettings(directory=tmp_path)).detail
    (tmp_path / "tokenizer.json").write_text("{}")
    assert look(VlmSettings(directory=tmp_path)).state == OK


@pytest.mark.parametrize(
    "text",
    [
        'directory = "/m"\nservers = ["http://gpu:8000"]',
        'servers = ["gpu:8000"]',
        "servers = [7]",
        'picture_format = "gif"',
        'dtype = "int4"',
        'quantize = "int2"',
        'layout = "never"',
        "batch = 0",
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, text):
    file = tmp_path / "cloud.toml"
    file.write_text(f"[vlm]\n{text}\n")
    with pytest.raises(ConfigurationError, match="vlm"):
        cloud_settings(load(SETTINGS, file, {}))


def test_settings_reach_the_model(tmp_path):
    file = tmp_path / "cloud.toml"
    file.write_text('[vlm]\nservers = ["http://gpu:8000/v1"]\nlayout = "always"\nconcurrency = 2\n')
    settings = cloud_settings(load(SETTINGS, file, {})).vlm
    assert (settings.servers, settings.always_layout, settings.there) == (("http://gpu:8000",), True, True)
    assert not cloud_settings(load(SETTINGS, None, {})).vlm.there
