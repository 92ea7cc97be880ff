"""Real processes: `docferry cloud serve` and `docferry edge run`, with the real models, on loopback and in a folder."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from docferry import samples


class System:
    """Both programs with their folders; either can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        self.inbox.mkdir()
        self.port = free_port()
        (folder / "cloud.toml").write_text(
            f'[listen]\nport = {self.port}\n[data]\ndirectory = "{folder / "cloud"}"\n[queue]\nlimit = 100\n'
        )
        (folder / "edge.toml").write_text(
            f'[inbox]\ndirectory = "{self.inbox}"\n[state]\ndirectory = "{folder / "edge"}"\n'
            f'[cloud]\ntarget = "127.0.0.1:{self.port}"\n[route]\naudit_share = 0.0\n'
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        command = {"cloud": "serve", "edge": "run"}[name]
        with (self.folder / f"{name}.jsonl").open("ab") as out, (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [
                    *(sys.executable, "-m", "docferry.cli", name, command),
                    *("--config", str(self.folder / f"{name}.toml"), "--json"),
                ],
                stdout=out,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        assert process.poll() is None, self.log(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def put(self, file: Path, name: str = "") -> None:
        target = self.inbox / (name or file.name)
        partial = target.with_name(f".{target.name}")
        partial.write_bytes(file.read_bytes())
        partial.rename(target)

    def said(self, name: str, status: str) -> list[dict[str, Any]]:
        file = self.folder / f"{name}.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return [tree for line in lines if (tree := json.loads(line))["status"] == status]

    def outbox(self, query: str) -> list[tuple[Any, ...]]:
        return rows(self.folder / "edge" / "outbox.sqlite", query)

    def store(self, query: str) -> list[tuple[Any, ...]]:
        return rows(self.folder / "cloud" / "store.sqlite", query)

    def until(self, condition: Callable[[], Any], seconds: float = 90.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            for name, process in self.processes.items():
                assert process.poll() is None, f"{name} ended: {self.log(name)}"
            assert time.monotonic() < end, {name: self.log(name) for name in ("cloud", "edge")}
            time.sleep(0.002)

    def log(self, name: str) -> str:
        file = self.folder / f"{name}.log"
        return file.read_text(errors="replace")[-2000:] if file.exists() else ""


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    if not file.exists():
        return []
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise
    finally:
        connection.close()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    running = System(tmp_path)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def photos() -> dict[str, Path]:
    return {path.stem: path for path in samples.paths()}


@pytest.fixture
def quiet_environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
