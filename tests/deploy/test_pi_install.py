"""deploy/pi/install.sh, as a trial under a folder of its own. On an emulated Pi, `make test-arm64` runs it for real."""

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from docferry.model_store import default_store
from docferry.model_store.bundle import Bundle, describe, write_manifest

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ("ppocrv5-det", "ppocrv6-rec-small", "layout-cdla", "page-orientation")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "deploy" / "pi" / "install.sh", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def python_that_says(folder: Path, facts: str) -> Path:
    file = folder / "python-of-another-kind"
    file.write_text(f"#!/bin/sh\necho {facts}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--what",), "unknown argument: --what"),
        (("--wheels",), "--wheels needs a value"),
        (("--wheels", ""), "--wheels needs a value"),
        (("--wheel", "a.whl", "--wheels", "b"), "exclude each other"),
        (("--purge",), "--purge goes with --uninstall"),
        (("--uninstall", "--bundle", "b"), "--uninstall takes no"),
    ],
)
def test_misuse_is_answered_with_the_usage(arguments: tuple[str, ...], complaint: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "usage: install.sh" in done.stderr


def test_help_is_no_error() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--uninstall" in done.stdout


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ("aarch64 64 3.10", "is Python 3.10; Docferry runs on 3.11 to 3.13"),
        ("aarch64 64 3.14", "is Python 3.14; Docferry runs on 3.11 to 3.13"),
        ("aarch64 32 3.11", "this is a 32-bit system on aarch64"),
        ("armv7l 32 3.11", "install 64-bit Raspberry Pi OS"),
        ("riscv64 64 3.13", "onnxruntime has no wheel for it"),
    ],
)
def test_a_machine_that_cannot_run_it_is_refused_and_left_as_it_was(tmp_path: Path, facts: str, complaint: str) -> None:
    prefix = tmp_path / "root"
    done = run("--prefix", prefix, "--python", python_that_says(tmp_path, facts))
    assert done.returncode == 1
    assert complaint in done.stderr
    assert list(prefix.iterdir()) == []


def test_without_python_it_names_the_package(tmp_path: Path) -> None:
    done = run("--prefix", tmp_path, "--python", "python-that-is-not-there")
    assert done.returncode == 1
    assert "apt-get install python3 python3-venv" in done.stderr


@pytest.mark.parametrize(
    ("held", "with_models", "complaint"),
    [
        ((), True, "there is no"),
        (("docferry-1-py3-none-any.whl", "docferry-2-py3-none-any.whl"), True, "holds 2 wheels of docferry"),
        (("docferry-1-py3-none-any.whl",), False, "the models need a folder too"),
    ],
)
def test_a_folder_that_is_not_complete_is_refused_before_anything_is_made(
    tmp_path: Path, held: tuple[str, ...], with_models: bool, complaint: str
) -> None:
    prefix, wheels = tmp_path / "root", tmp_path / "wheels"
    wheels.mkdir()
    for name in held:
        (wheels / name).touch()
    models = ("--bundle", wheels) if with_models else ()
    done = run("--prefix", prefix, "--python", sys.executable, "--wheels", wheels, *models)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert list(prefix.iterdir()) == []


@dataclass
class Trial:
    prefix: Path
    wheel: Path
    bundle: Path
    first: str

    def install(self, wheel: Path | None = None) -> str:
        given = ("--wheel", wheel or self.wheel, "--bundle", self.bundle, "--python", sys.executable)
        done = run("--prefix", self.prefix, *given)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """An installation with a wheel made here and a bundle whose models are the originals themselves."""
    folder = tmp_path_factory.mktemp("trial")
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([*build, "--wheel-dir", folder, ROOT], check=True)
    bundle = folder / "bundle"
    bundle.mkdir()
    store = default_store()
    models = {}
    for name in NETWORKS:
        file = bundle / f"{name}.onnx"
        file.symlink_to(store.path(name))
        models[name] = describe(name, file, store.sha256(name))
    write_manifest(bundle, Bundle(models, 0, {}))
    (wheel,) = folder.glob("docferry-*.whl")
    made = Trial(folder / "root", wheel, bundle, "")
    made.first = made.install()
    return made


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in files}


together = pytest.mark.xdist_group("pi-trial")


@pytest.mark.long
@together
def test_the_first_run_says_what_it_made(trial: Trial) -> None:
    made = [line.split()[1] for line in trial.first.splitlines() if line.startswith("changed")]
    assert made == ["folder", "folder", "folder", "environment", "packages:", "models:", "settings", "unit"]
    assert "models: 4, hashes right" in trial.first
    assert trial.first.endswith("Done, 8 changes.\n")
    unit = trial.prefix / "etc/systemd/system/docferry-edge.service"
    assert unit.read_text() == (ROOT / "deploy/systemd/docferry-edge.service").read_text()


@pytest.mark.long
@together
def test_what_was_installed_runs(trial: Trial) -> None:
    program = trial.prefix / "opt/docferry/bin/docferry"
    environment = {"PATH": os.environ["PATH"], "DOCFERRY_CACHE": str(trial.prefix / "var/cache/docferry")}
    done = subprocess.run([program, "models", "verify"], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.count("built") == len(NETWORKS)


@pytest.mark.long
@together
def test_a_second_run_changes_nothing_and_says_so(trial: Trial) -> None:
    trial.install()
    before = everything(trial.prefix)
    said = trial.install()
    assert said.endswith("Nothing had to be changed.\n")
    assert not [line for line in said.splitlines() if line.startswith("changed")]
    assert everything(trial.prefix) == before


@pytest.mark.long
@together
def test_settings_that_are_there_are_left_alone(trial: Trial) -> None:
    settings = trial.prefix / "etc/docferry/edge.toml"
    settings.write_text('[cloud]\ntarget = "cloud.example.com:443"\n')
    assert "yours, left alone" in trial.install()
    assert "cloud.example.com" in settings.read_text()


@pytest.mark.long
@together
def test_another_wheel_of_the_same_version_replaces_the_one_that_is_there(trial: Trial, tmp_path: Path) -> None:
    other = tmp_path / trial.wheel.name
    shutil.copy(trial.wheel, other)
    with zipfile.ZipFile(other, "a") as archive:
        archive.comment = b"built again"
    assert "changed  packages:" in trial.install(other)
    assert "Nothing had to be changed." in trial.install(other)


@pytest.mark.long
@together
def test_an_environment_that_was_left_half_made_is_made_again(trial: Trial) -> None:
    (trial.prefix / "opt/docferry/bin/pip").unlink()
    said = trial.install()
    assert "changed  environment" in said
    assert "changed  packages:" in said


def installed_once(prefix: Path) -> tuple[Path, ...]:
    """What stands there after a kiosk has run for a while, as far as removing goes."""
    documents = prefix / "var/lib/docferry/edge/outbox.sqlite"
    waiting = prefix / "srv/docferry/inbox/a.jpg"
    settings = prefix / "etc/docferry/edge.toml"
    program = prefix / "opt/docferry/bin/docferry"
    model = prefix / "var/cache/docferry/models/m.onnx"
    unit = prefix / "etc/systemd/system/docferry-edge.service"
    files = (documents, waiting, settings, program, model, unit)
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return files


def test_uninstalling_keeps_documents_and_settings(tmp_path: Path) -> None:
    documents, waiting, settings, program, model, unit = installed_once(tmp_path)
    done = run("--uninstall", "--prefix", tmp_path)
    assert done.returncode == 0, done.stderr
    assert documents.exists()
    assert waiting.exists()
    assert settings.exists()
    assert not any(file.exists() for file in (program, model, unit))
    assert f"kept {tmp_path}/var/lib/docferry" in done.stdout
    again = run("--uninstall", "--prefix", tmp_path)
    assert again.stdout.endswith("Nothing had to be changed.\n")


def test_purging_removes_the_documents_too_and_nothing_of_others(tmp_path: Path) -> None:
    installed_once(tmp_path)
    neighbour = tmp_path / "etc/docferry/cloud.toml"
    neighbour.touch()
    done = run("--uninstall", "--purge", "--prefix", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [neighbour]
