"""`docferry models` shows what there is, and fails where something is wrong."""

from __future__ import annotations

import hashlib
import json

import pytest
from typer.testing import CliRunner

from docferry import model_commands
from docferry.errors import ModelError

FILE = "weights_of_ours-1.0-py3-none-any.whl"


@pytest.fixture
def run(store_of, package, index, monkeypatch):
    """Runs a command on the store of the test; an error on purpose comes through, as the CLI wants it."""
    index.files[FILE] = package.wheel
    monkeypatch.setattr(model_commands, "default_store", lambda: store_of(package))

    def invoke(*arguments: str):
        result = CliRunner().invoke(model_commands.application(), arguments)
        if isinstance(result.exception, ModelError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return invoke


def test_list_has_a_json_object_for_each_model(run, package):
    rows = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [(row["name"], row["state"], row["sets"]) for row in rows] == [
        ("small", "missing", ["edge"]),
        ("large", "missing", []),
    ]
    assert rows[1]["sha256"] == hashlib.sha256(package.weights["large"]).hexdigest()
    assert {"path", "size", "package", "version", "wheel_sha256", "licence", "upstream", "task"} <= rows[0].keys()


def test_list_in_a_pipe_is_plain_rows(run):
    assert run("list").stdout.splitlines()[0].split("\t")[:2] == ["small", "testing"]


def test_pull_brings_what_it_names_and_shows_no_bars_in_a_pipe(run):
    result = run("pull", "large")
    assert result.stdout.split("\t")[:4] == ["large", "testing", "0.3", "ready"]
    assert result.stderr == ""


def test_pull_without_names_brings_the_needed_sets(run, monkeypatch):
    monkeypatch.setattr(model_commands, "_NEEDED", ("edge",))
    assert [json.loads(line)["name"] for line in run("pull", "--json").stdout.splitlines()] == ["small"]


def test_pull_takes_a_folder_or_an_index(run, package, tmp_path, index):
    (tmp_path / FILE).write_bytes(package.wheel)
    run("pull", "large", "--from", str(tmp_path))
    assert index.requests == []
    run("pull", "small", "--index-url", index.url)
    assert len(index.downloads()) == 1


def test_verify_is_content_with_what_is_whole(run):
    run("pull", "all")
    assert [line.split("\t")[3] for line in run("verify").stdout.splitlines()] == ["ready", "ready"]


def test_verify_fails_on_damage_and_names_the_way_out(run, tmp_path):
    run("pull", "all")
    next((tmp_path / "cache").rglob("large.onnx")).write_bytes(b"!")
    with pytest.raises(ModelError, match=r"large is damaged.*docferry models pull large"):
        run("verify")


def test_verify_fails_on_what_was_asked_for_and_is_missing(run):
    with pytest.raises(ModelError, match="small is missing"):
        run("verify", "edge")


def test_verify_fails_where_there_is_nothing(run):
    with pytest.raises(ModelError, match="no model is on this machine"):
        run("verify")
