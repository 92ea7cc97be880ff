"""The doctor finds what is really wrong, one thing at a time, and says what to do."""

import json
import shutil
import socket

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from docferry import doctor as looks
from docferry.doctor import FAILED, OK, WARNING
from docferry.model_store import default_store
from docferry_cloud.access.keys import Keys
from docferry_cloud.access.rules import Scope
from docferry_cloud.commands import cloud_app
from docferry_cloud.database import Database
from docferry_cloud.doctor import examine
from docferry_cloud.settings import CloudSettings


@pytest.fixture
def look(tmp_path):
    """Examines settings that are in order but for what is changed; the findings by name."""
    (tmp_path / "blobs").mkdir()
    database = Database(tmp_path / "store.sqlite")
    database.create()
    database.close()

    def examined(**changes):
        settings = CloudSettings(**({"directory": tmp_path, "port": 0} | changes))
        return {finding.name: finding for finding in examine(settings, default_store())}

    return examined


def test_what_is_in_order_is_said_to_be(look):
    found = look()
    assert {finding.state for finding in found.values()} == {OK}, found
    assert len(found) == 13


def test_a_service_that_was_never_started_has_nothing_yet_and_that_is_no_failure(tmp_path):
    settings = CloudSettings(directory=tmp_path / "new", port=0)
    found = {finding.name: finding.state for finding in examine(settings, default_store())}
    assert {found["data folder"], found["database"], found["blobs"]} == {WARNING}
    assert FAILED not in found.values()
    assert not (tmp_path / "new").exists()


def test_a_database_that_cannot_be_reached_fails_and_the_rest_is_looked_at(look):
    found = look(database="postgresql://nobody:x@127.0.0.1:1/nothing")
    assert found["database"].state == found["clock"].state == FAILED
    assert found["blobs"].state == OK


def test_a_database_of_a_newer_release_fails_and_one_of_an_older_is_said(look, tmp_path):
    database = Database(tmp_path / "store.sqlite")
    for step, state in (("9999", FAILED), ("0001", WARNING)):
        with database.write() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = :step"), {"step": step})
        assert look()["database"].state == state
    database.close()


def test_a_store_that_does_not_answer_fails(look):
    found = look(blobs="s3://bucket/folder", blobs_endpoint="http://127.0.0.1:1")
    assert found["blobs"].state == FAILED


def test_a_disk_that_is_nearly_full_fails(look):
    assert look(min_free_bytes=1 << 60)["data folder"].state == FAILED


def test_a_missing_model_fails_unless_no_engine_is_asked_for(look, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCFERRY_CACHE", str(tmp_path / "no-models"))
    found = look()["models"]
    assert (found.state, found.remedy) == (FAILED, "run: docferry models pull")
    assert look(workers=0)["models"].state == OK


def test_a_key_of_another_certificate_fails(look, certificate, tmp_path):
    made, key = certificate
    other = tmp_path / "other.pem"
    shutil.copy(made, other)
    found = look(certificate=made, key=other)["TLS"]
    assert (found.state, "belong together" in found.remedy) == (FAILED, True)
    # The test's certificate is good for two days.
    assert look(certificate=made, key=key)["TLS"].state == WARNING


def test_an_address_that_others_reach_without_keys_fails_until_there_is_one(look, certificate, tmp_path):
    made, key = certificate
    public = {"host": "0.0.0.0", "certificate": made, "key": key}
    assert look(**public)["access"].state == FAILED
    database = Database(tmp_path / "store.sqlite")
    Keys(database).create("shop", [Scope.READ])
    database.close()
    assert look(**public)["access"].state == OK


def test_a_port_that_is_taken_is_a_warning(look):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert look(port=taken.getsockname()[1])["address"].state == WARNING


def test_two_builds_of_opencv_fail(look, monkeypatch):
    monkeypatch.setattr(looks, "_installed", lambda name: name != "opencv-contrib-python-headless")
    assert look()["OpenCV"].state == FAILED


def test_the_command_says_it_line_by_line_and_ends_with_1_if_something_fails(tmp_path):
    config = tmp_path / "cloud.toml"
    config.write_text(f'[data]\ndirectory = "{tmp_path / "data"}"\n[listen]\nport = 0\n')
    done = CliRunner().invoke(cloud_app, ["doctor", "--config", str(config), "--json"])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0, done.output
    assert {"name", "state", "detail", "remedy"} == set(rows[0])
    config.write_text(config.read_text() + '[tls]\ncertificate = "/none"\nkey = "/none"\n')
    done = CliRunner().invoke(cloud_app, ["doctor", "--config", str(config)])
    assert done.exit_code == 1
    assert "failed   TLS" in done.stdout
