"""What keeps the worker process alive, with a stand-in for the worker that only says what a test has it say."""

import asyncio
import json
import os
import signal
import stat
import sys
from dataclasses import replace

import pytest

from docferry.errors import EngineError
from docferry_cloud import worker_process
from docferry_cloud.core import make_core
from docferry_cloud.settings import CloudSettings
from docferry_cloud.worker_process import WorkerProcess
from tests.cloud.service.running import QUICK

WORKER = """#!{python} -IS
import os, signal, socket, sys
first = not os.path.exists("{folder}/lived")
open("{folder}/lived", "w").close()
link = socket.socket(fileno=int(sys.argv[-1]))
def say(line):
    link.sendall(line)
def work():
    say(b'{working}\\n')
def die():
    os.kill(os.getpid(), signal.SIGKILL)
if first:
{first}
else:
    work()
link.recv(1)
"""
WORKING = json.dumps({"status": "working", "owner": "worker-1", "engine": "none"})


@pytest.fixture
def supervised(tmp_path, monkeypatch):
    """Makes the supervisor of a stand-in, of which the first life is given as lines of Python."""
    core = make_core(CloudSettings(directory=tmp_path / "data"))
    core.database.create()

    def make(first: str, *, pause: float = 0.01, **times) -> WorkerProcess:
        monkeypatch.setattr(worker_process, "_FIRST_PAUSE_S", pause)
        script = tmp_path / "worker"
        lines = "".join(f"    {line}\n" for line in first.splitlines())
        script.write_text(WORKER.format(python=sys.executable, folder=tmp_path, working=WORKING, first=lines))
        script.chmod(stat.S_IRWXU)
        return WorkerProcess(core, (str(script),), replace(QUICK, **times))

    make.starts = lambda: core.metrics.value("docferry_worker_starts_total")
    yield make
    core.database.close()


@pytest.mark.parametrize(
    "last",
    ['say(b\'{"status": "wor\')\ndie()', "say(b'x' * 200_000 + b'\\n')\nlink.recv(1)", "die()"],
    ids=["half a line", "a line too long", "nothing"],
)
async def test_whatever_it_says_last_it_is_begun_again(supervised, until, last):
    process = supervised(f"work()\n{last}")
    async with asyncio.timeout(20):
        await process.come_up()
        await until(lambda: supervised.starts() == 2 and process.pid)
        await process.stop()


@pytest.mark.parametrize(
    "line",
    [b"no JSON", b"[]", b"{}", b'{"status": "measured", "kind": "count", "name": "none", "value": 1, "labels": []}'],
)
async def test_a_line_that_is_not_understood_is_skipped_and_logged(supervised, caplog, line):
    process = supervised(f"say({line!r} + b'\\n')\nwork()")
    async with asyncio.timeout(20):
        await process.come_up()
        assert process.pid
        assert supervised.starts() == 1
        await process.stop()
    assert "is not understood" in caplog.text
    assert line.decode() in caplog.text


async def test_a_start_that_fails_is_tried_again(supervised, tmp_path, until, caplog):
    process = supervised(f"work()\nos.rename('{tmp_path}/worker', '{tmp_path}/away')\ndie()")
    async with asyncio.timeout(20):
        await process.come_up()
        await until(lambda: "FileNotFoundError" in caplog.text)
        (tmp_path / "away").rename(tmp_path / "worker")
        await until(lambda: supervised.starts() == 2 and process.pid)
        await process.stop()


async def test_a_first_start_that_fails_is_told(supervised, tmp_path):
    process = supervised("work()")
    (tmp_path / "worker").unlink()
    async with asyncio.timeout(20):
        with pytest.raises(EngineError, match="before it worked"):
            await process.come_up()


async def test_one_that_has_ended_is_not_waited_for_at_a_stop(supervised, until):
    """Between two lives it is not killed either, which would raise."""
    process = supervised("work()\ndie()", pause=3600.0, drain=30.0)
    async with asyncio.timeout(20):
        await process.come_up()
        await until(lambda: not process.pid)
        await process.stop()
    assert supervised.starts() == 1


async def test_one_that_has_ended_is_not_killed_for_hanging(supervised, tmp_path, until):
    """A child of it holds the socket, so that its end is not heard."""
    process = supervised(
        f"work()\nchild = os.fork()\nif child:\n    open('{tmp_path}/child', 'w').write(str(child))\n    die()",
        health=1.0,
        hang=0.5,
    )
    async with asyncio.timeout(20):
        await process.come_up()
        await until(lambda: not process.pid)
        assert not await process.healthy()
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
        await process.stop()
