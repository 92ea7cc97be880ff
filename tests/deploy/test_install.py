"""The bare install is small, says what is missing, and the units and examples that ship are good."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docferry.settings import load
from docferry_cloud.settings import SETTINGS as CLOUD
from docferry_cloud.settings import cloud_settings
from docferry_edge.settings import AGENT_MB, edge_settings
from docferry_edge.settings import SETTINGS as EDGE

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the distribution and no extras, installed from a wheel built here."""
    folder = tmp_path_factory.mktemp("bare")
    quiet = ("--quiet", "--disable-pip-version-check")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    constraints = ("-c", str(ROOT / "deploy" / "constraints.txt"))
    subprocess.run([python, "-m", "pip", "install", *quiet, *constraints, str(ROOT)], check=True)
    return python


def test_the_bare_install_pulls_nothing_heavy(bare: Path) -> None:
    listed = subprocess.run([bare, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True)
    names = {line.split("==")[0].lower() for line in listed.stdout.splitlines()}
    assert {"grpcio", "protobuf", "zstandard", "docferry"} <= names
    heavy = {"numpy", "onnxruntime", "torch", "pillow", "sqlalchemy", "dbos", "paddleocr"}
    assert not names & heavy
    assert not [name for name in names if "opencv" in name]
    assert len(names) < 25


def test_the_client_and_its_commands_work_without_extras(bare: Path) -> None:
    code = "from docferry.async_client import AsyncClient; import docferry.cli, docferry.packing, docferry.fields"
    subprocess.run([bare, "-c", code], check=True)
    shown = subprocess.run([bare, "-m", "docferry.cli", "--help"], check=True, capture_output=True, text=True)
    for command in ("submit", "watch", "get", "read", "edge", "cloud", "demo", "models"):
        assert command in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(("read", "a.jpg"), "edge"), (("edge", "run"), "edge"), (("cloud", "serve"), "cloud")],
)
def test_a_command_whose_extra_is_missing_gives_the_pip_line(
    bare: Path, arguments: tuple[str, ...], extra: str
) -> None:
    done = subprocess.run([bare, "-m", "docferry.cli", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"pip install 'docferry[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("unit", ["docferry-edge", "docferry-cloud", "docferry-cloud-worker"])
def test_systemd_takes_the_units(tmp_path: Path, unit: str) -> None:
    # The verifier wants the program to exist: put this environment's in the place of /opt's.
    text = (ROOT / "deploy" / "systemd" / f"{unit}.service").read_text()
    program = Path(sys.executable).with_name("docferry")
    copy = tmp_path / f"{unit}.service"
    copy.write_text(text.replace("/opt/docferry/bin/docferry", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], check=False, capture_output=True, text=True
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if unit in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.parametrize("unit", ["docferry-edge", "docferry-cloud", "docferry-cloud-worker"])
def test_the_units_are_hardened(tmp_path: Path, unit: str) -> None:
    file = ROOT / "deploy" / "systemd" / f"{unit}.service"
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=30", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={"SYSTEMD_PAGER": "cat"})
    assert done.returncode == 0, done.stdout[-800:] + done.stderr


def test_the_units_ceiling_on_memory_is_the_settings() -> None:
    unit = (ROOT / "deploy" / "systemd" / "docferry-edge.service").read_text()
    (most,) = re.findall(r"^MemoryMax=(\d+)M$", unit, re.MULTILINE)
    for file in (None, ROOT / "deploy" / "config" / "edge.toml"):
        limits = edge_settings(load(EDGE, file, {})).limits
        assert limits.recycle_mb < limits.memory_mb
        assert 0 <= int(most) - limits.memory_mb - AGENT_MB <= 100
    # A reader that the kernel kills is the agent's to replace; what it looks at to spare the device must be visible.
    assert "OOMPolicy=continue" in unit
    assert "ProcSubset" not in unit


@pytest.mark.parametrize("unit", ["docferry-edge", "docferry-cloud", "docferry-cloud-worker"])
def test_the_units_leave_in_sight_what_the_programs_read_in_proc(unit: str) -> None:
    # ProcSubset=pid hides /proc/sys (the outbox needs the boot id) and /proc/cpuinfo (onnxruntime picks by it).
    assert "ProcSubset" not in (ROOT / "deploy" / "systemd" / f"{unit}.service").read_text()


def test_the_example_settings_are_taken() -> None:
    folder = ROOT / "deploy" / "config"
    assert edge_settings(load(EDGE, folder / "edge.toml", {})).remove_captured
    assert cloud_settings(load(CLOUD, folder / "cloud.toml", {})).port == 50051


def test_everything_the_container_copies_is_there() -> None:
    text = (ROOT / "deploy" / "container" / "Containerfile").read_text()
    sources = [
        source for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for source in line.split()[:-1]
    ]
    assert "pyproject.toml" in sources
    assert all((ROOT / source).exists() for source in sources)
    assert "USER docferry" in text


def test_the_top_level_is_what_the_design_says() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    top = {name.split("/")[0] for name in listed.stdout.splitlines()} - {".gitignore", ".dockerignore"}
    assert top == {
        *("pyproject.toml", "README.md", "LICENSE", "Makefile", ".ci"),
        *("proto", "shared", "edge", "cloud", "deploy", "tests", "benchmarks", "docs"),
    }
