"""Bad input gets a clear error that names the file, the reason and the remedy, and harms nothing."""

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest


def bad_files(folder: Path, good: Path) -> dict[str, Path]:
    jpeg = good.read_bytes()
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))  # noqa: E731
    huge = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0))
    huge += chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    contents = {
        "empty.jpg": b"",
        "text.jpg": b"this is not a picture at all\n" * 20,
        "truncated.jpg": jpeg[: len(jpeg) // 2],
        "huge.png": huge,
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in contents}


def docferry(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "docferry.cli", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


@pytest.fixture
def black(tmp_path: Path) -> Path:
    file = tmp_path / "black.jpg"
    assert cv2.imwrite(str(file), np.zeros((1200, 900, 3), np.uint8))
    return file


def test_read_names_every_bad_file_and_reads_the_good_one(tmp_path, photos, black, quiet_environment) -> None:
    bad = bad_files(tmp_path, photos["thermal_receipt"])
    files = [*map(str, bad.values()), str(tmp_path / "missing.jpg"), str(black), str(photos["thermal_receipt"])]
    done = docferry("read", *files, "--json", environment=quiet_environment)
    trees = [json.loads(line) for line in done.stdout.splitlines()]
    assert [tree["file"] for tree in trees] == files
    codes = {Path(tree["file"]).name: tree.get("error", {}).get("code", tree["status"]) for tree in trees}
    assert codes == {
        "empty.jpg": "UNREADABLE_IMAGE",
        "text.jpg": "UNREADABLE_IMAGE",
        "truncated.jpg": "UNREADABLE_IMAGE",
        "huge.png": "IMAGE_TOO_LARGE",
        "missing.jpg": "NOT_FOUND",
        "black.jpg": "read",
        "thermal_receipt.jpg": "read",
    }
    for tree in trees[:5]:
        assert Path(tree["file"]).name in tree["error"]["reason"]
        assert tree["error"]["remedy"]
    # An all-black photo is a picture with nothing on it: it must not pass for an easy one.
    assert trees[5]["route"]["decision"] == "page"
    assert trees[5]["route"]["reasons"][0]["code"] == "NOTHING_READ"
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("submit", "x.jpg", "--to", "nowhere"), "HOST:PORT"),
        (("submit", "x.jpg", "--effort", "much"), "fast, deep or auto"),
        (("edge", "run", "--config", "/does/not/exist.toml"), "no such file"),
        (("cloud", "serve", "--config", "/does/not/exist.toml"), "no such file"),
        (("get", "someone", "--to", "127.0.0.1:9"), "check the address"),
    ],
)
def test_what_a_user_can_cause_ends_in_one_message(arguments, says, quiet_environment) -> None:
    done = docferry(*arguments, environment=quiet_environment)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_bad_files_in_the_inbox_are_told_and_the_good_one_arrives(system, tmp_path, photos, black) -> None:
    files = bad_files(tmp_path, photos["thermal_receipt"])
    system.start("cloud")
    system.start("edge")
    for file in [*files.values(), black, photos["chinese_receipt"]]:
        system.put(file)
    system.until(lambda: len(system.said("edge", "failed")) == 4 and len(system.said("edge", "done")) == 2)
    for tree in system.said("edge", "failed"):
        assert tree["file"] in tree["error"]["reason"]
        assert tree["error"]["remedy"]
    nothing = next(tree for tree in system.said("edge", "done") if tree["file"] == "black.jpg")
    assert nothing["fields"] == []
    assert nothing["route"]["decision"] == "page"


def test_files_submitted_without_an_edge_are_refused_or_failed_by_name(
    system, tmp_path, photos, quiet_environment
) -> None:
    files = bad_files(tmp_path, photos["thermal_receipt"])
    system.start("cloud")
    system.until(lambda: system.said("cloud", "ready"))
    names = [*map(str, files.values()), str(photos["thermal_receipt"])]
    to = ("--to", f"127.0.0.1:{system.port}", "--wait", "--json")
    done = docferry("submit", *names, *to, environment=quiet_environment)
    trees = [json.loads(line) for line in done.stdout.splitlines()]
    assert [tree["status"] for tree in trees] == ["failed"] * 4 + ["done"], done.stderr
    assert all(tree["error"]["remedy"] for tree in trees[:4])
    assert {field["name"] for field in trees[4]["fields"]} >= {"total", "date"}
    assert trees[4]["route"]["decision"] == "original"
    found = docferry("get", trees[4]["document_id"], *to[:2], "--json", environment=quiet_environment)
    assert json.loads(found.stdout)["fields"] == trees[4]["fields"]
    edge = docferry("submit", names[4], "--edge", *to, environment=quiet_environment)
    tree = json.loads(edge.stdout)
    assert tree["route"]["decision"] in {"structure", "overview", "crops", "page"}
    assert tree["traffic"]["sent_bytes"] < tree["traffic"]["original_bytes"]
