"""A file is taken once it has come to rest, and only files meant to be taken."""

import os
from pathlib import Path

import pytest

from docferry.errors import ConfigurationError
from docferry_edge.capture import Inbox


def names(inbox: Inbox) -> list[str]:
    return [found.path.name for found in inbox.scan()]


def test_a_file_still_growing_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("docferry_edge.capture.time.monotonic", lambda: now[0])
    inbox = Inbox(tmp_path, settle_s=0.2)
    file = tmp_path / "a.jpg"
    for size in (10, 20, 30):
        file.write_bytes(b"x" * size)
        assert names(inbox) == []
        now[0] += 0.1
    assert names(inbox) == []
    now[0] += 0.2
    assert names(inbox) == ["a.jpg"]


def test_a_taken_file_is_not_offered_again_until_it_changes(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path, settle_s=0)
    file = tmp_path / "a.jpg"
    file.write_bytes(b"one")
    (found,) = inbox.scan()
    inbox.taken(found)
    assert names(inbox) == []
    file.write_bytes(b"other content")
    assert names(inbox) == ["a.jpg"]
    assert inbox.scan()[0].source != found.source


def test_hidden_and_unfinished_names_and_folders_are_left_alone(tmp_path: Path) -> None:
    for name in (".a.jpg", "b.jpg.part", "c.TMP", "d.crdownload"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    assert names(Inbox(tmp_path, settle_s=0)) == []


def test_a_missing_inbox_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="inbox cannot be read") as error:
        Inbox(tmp_path / "gone").scan()
    assert "inbox.directory" in error.value.remedy
