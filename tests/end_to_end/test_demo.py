"""`docferry demo` shows the whole way of each sample, and what the README says is so."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.metrics import same_field

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_ends_with_fields_route_bytes_and_notification_of_each_sample(photos, quiet_environment) -> None:
    command = [sys.executable, "-m", "docferry.cli", "demo", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=quiet_environment, timeout=180)
    assert done.returncode == 0, done.stderr
    trees = {Path(tree["file"]).stem: tree for tree in map(json.loads, done.stdout.splitlines())}
    assert list(trees) == list(photos)
    truth = json.loads((ROOT / "benchmarks" / "generator" / "samples_truth.json").read_text())
    for name, tree in trees.items():
        assert (tree["status"], tree["engine"]) == ("done", "pipeline")
        # An answer more where the cloud asked for sharper pixels first.
        assert tree["version"] == len(tree["versions"]) in {2, 3}
        assert tree["route"]["reasons"]
        assert 0 < tree["traffic"]["sent_bytes"] < tree["traffic"]["original_bytes"]
        assert tree["notified"][0]["sink"] == "webhook"
        assert tree["notified"][0]["event_id"]
        found = {field["name"]: field["normalized"] for field in tree["fields"]}
        for field in ("date", "total"):
            if field in truth[name]["normalized"]:
                assert same_field(field, truth[name]["normalized"][field], found[field]), (name, field)
    assert trees["two_column_page"]["fields"] == []
    assert re.search(r"^# \w", trees["two_column_page"]["markdown"], re.MULTILINE)


def test_a_bad_file_among_good_ones_fails_the_demo_and_stops_nothing(tmp_path, photos, quiet_environment) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"not a picture")
    command = [sys.executable, "-m", "docferry.cli", "demo", str(bad), str(photos["thermal_receipt"]), "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=quiet_environment, timeout=180)
    trees = [json.loads(line) for line in done.stdout.splitlines()]
    assert [tree["status"] for tree in trees] == ["failed", "done"]
    assert trees[0]["error"]["code"] == "UNREADABLE_IMAGE"
    assert done.returncode == 1


def readme_code() -> str:
    (code,) = re.findall(r"```python\n(.+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(code)


def test_the_readmes_client_code_prints_the_fields(system, photos, quiet_environment) -> None:
    system.start("cloud")
    system.until(lambda: system.said("cloud", "listening"))
    code = readme_code().replace("127.0.0.1:50051", f"127.0.0.1:{system.port}")
    code = code.replace("receipt.jpg", str(photos["thermal_receipt"]))
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=quiet_environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed = {line.split()[0] for line in done.stdout.splitlines()}
    assert {"merchant", "date", "total"} <= printed


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = (ROOT / "README.md").read_text()
    for name in ("thermal_receipt", "invoice_table", "two_column_page", "chinese_receipt"):
        assert f"{name}.jpg" in shown
    for word in ("route ", "bytes ", "notified by webhook"):
        assert word in shown


@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "proto", "test-long", "docs", "samples"])
def test_the_makefile_has_the_tasks_that_are_promised(target: str) -> None:
    done = subprocess.run(["make", "-n", target, "DATA=x"], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
