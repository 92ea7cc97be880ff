"""The whole system on one machine: the cloud service and the agent as subprocesses, and a webhook receiver.

Used by `docferry demo` and by the end-to-end benchmark. Nothing here is a double: the agent watches a real folder,
the envelope goes over a real gRPC socket, and the webhook is a real, signed HTTP request.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docferry.errors import Unavailable

Tree = dict[str, Any]
_START_S = 120.0
# Pushes of Web Push need somebody to turn to, stated; nobody is told from a demo.
_PAGES = '[http]\nport = 0\n[web_push]\ncontact = "mailto:demo@docferry.invalid"\n'


@dataclass(slots=True)
class _Job:
    """A file on its way: when it was put into the inbox, and what has come back."""

    file: str
    began: float
    done: asyncio.Future[Tree]
    notified: asyncio.Future[Tree]
    on_edge: Callable[[Tree], None] | None = None


@dataclass(slots=True)
class Embedded:
    """A running system; made by `running`.

    Attributes:
        folder: Everything it keeps: inbox, outbox, databases, logs.
        target: Address of the cloud service.
        results, kiosk: The pages' addresses; empty where none are served.
    """

    folder: Path
    target: str = ""
    results: str = ""
    kiosk: str = ""
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _by_document: dict[str, _Job] = field(default_factory=dict)
    _early: dict[str, Tree] = field(default_factory=dict)

    async def process(
        self, file: Path, *, on_edge: Callable[[Tree], None] | None = None, within: float = 300.0
    ) -> Tree:
        """Put a file into the inbox and wait for its answer and the notification.

        Gives the document's JSON object; `on_edge` hears of the edge's own answer as soon as it is there.

        Raises:
            NotFound, UnreadableImage: The file cannot be copied.
            Unavailable: Nothing came within `within` seconds.
        """
        from docferry.client import read_file

        loop = asyncio.get_running_loop()
        name = f"{len(self._jobs):06d}-{file.name}"
        data = read_file(file)
        partial = self.folder / "inbox" / f".{name}"
        partial.write_bytes(data)
        job = _Job(str(file), time.time(), loop.create_future(), loop.create_future(), on_edge)
        self._jobs[name] = job
        partial.rename(partial.with_name(name))
        try:
            async with asyncio.timeout(within):
                tree = await job.done
                if tree["status"] == "done":
                    tree["notified"] = [await job.notified]
        except TimeoutError:
            raise Unavailable(
                f"{file}: no answer within {within:g} s", remedy=f"look into {self.folder}/cloud.log and edge.log"
            ) from None
        finally:
            (partial.with_name(name)).unlink(missing_ok=True)
        return {**tree, "file": str(file)}

    def heard_from_edge(self, tree: Tree) -> None:
        """The agent has printed a document."""
        job = self._jobs.get(str(tree.get("file")))
        if job is None:
            return
        document_id = str(tree.get("document_id"))
        self._by_document[document_id] = job
        if document_id in self._early:
            self.heard_from_cloud(self._early.pop(document_id))
        if tree["status"] == "read":
            if job.on_edge is not None:
                job.on_edge({**tree, "file": job.file})
        elif not job.done.done():
            job.done.set_result(tree)

    def heard_from_cloud(self, hook: Tree) -> None:
        """A webhook about a finished analysis has come."""
        document_id = str(hook["data"]["document_id"])
        job = self._by_document.get(document_id)
        if job is None:
            self._early[document_id] = hook
        elif not job.notified.done():
            ms = round((hook["received"] - job.began) * 1000)
            job.notified.set_result({"sink": "webhook", "event_id": hook["event_id"], "ms": ms})


@contextlib.asynccontextmanager
async def running(folder: Path, edge_settings: str = "", *, pages: bool = False) -> AsyncIterator[Embedded]:
    """Start the service and the agent in `folder`, and stop both at the end.

    Args:
        folder: An empty or a former folder of this kind.
        edge_settings: More lines for the agent's TOML file.
        pages: Serve the pages of both too, each on a free port of this machine.

    Raises:
        Unavailable: One of them did not start; the reason it gave is in the error.
    """
    (folder / "inbox").mkdir(parents=True, exist_ok=True)
    system = Embedded(folder)
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    async with contextlib.AsyncExitStack() as stack:
        hook = stack.enter_context(_receiver(secret, system.heard_from_cloud, asyncio.get_running_loop()))
        endpoint = f'{{url = "{hook}", secret = "{secret}", tenant = "local"}}'
        (folder / "cloud.toml").write_text(
            f'[listen]\nport = 0\n[data]\ndirectory = "{folder / "cloud"}"\n'
            f"[webhooks]\nallow_private = true\nendpoints = [{endpoint}]\n" + (_PAGES if pages else "")
        )
        cloud = await _start(stack, folder, "cloud", "serve")
        listening = await _first_line(cloud, folder / "cloud.log")
        system.target = str(listening["address"])
        if pages:
            port = _free_port()
            system.results, system.kiosk = f"{listening['http']}/r/", f"http://127.0.0.1:{port}/"
            edge_settings = f"{edge_settings}\n[kiosk]\nport = {port}\n"
        (folder / "edge.toml").write_text(
            f'[inbox]\ndirectory = "{folder / "inbox"}"\nsettle_ms = 0\n[state]\ndirectory = "{folder / "edge"}"\n'
            f'[cloud]\ntarget = "{system.target}"\n{edge_settings}'
        )
        edge = await _start(stack, folder, "edge", "run")
        ready = await _first_line(cloud, folder / "cloud.log")
        if ready.get("status") != "ready":
            raise Unavailable(f"the service said {ready}", remedy=f"look into {folder}/cloud.log")
        await _first_line(edge, folder / "edge.log")
        follow = asyncio.create_task(_follow(edge, system.heard_from_edge))
        stack.callback(follow.cancel)
        yield system


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _start(stack: contextlib.AsyncExitStack, folder: Path, *command: str) -> asyncio.subprocess.Process:
    log = stack.enter_context((folder / f"{command[0]}.log").open("ab"))
    config = folder / f"{command[0]}.toml"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "docferry.cli", *command, "--config", str(config), "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
        limit=64 << 20,
    )
    stack.push_async_callback(_stop, process)
    return process


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(15):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _first_line(process: asyncio.subprocess.Process, log: Path) -> Tree:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            line = await process.stdout.readline()
    except TimeoutError:
        line = b""
    if not line:
        raise Unavailable(f"{log.stem} did not start: {_end_of(log)}", remedy=f"look into {log}")
    tree: Tree = json.loads(line)
    return tree


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip()[-600:]


async def _follow(process: asyncio.subprocess.Process, heard: Callable[[Tree], None]) -> None:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        heard(json.loads(line))


@contextlib.contextmanager
def _receiver(secret: str, heard: Callable[[Tree], None], loop: asyncio.AbstractEventLoop) -> Any:
    """A webhook receiver on a free port; checks the signature and passes finished analyses on to the loop."""
    key = base64.b64decode(secret.removeprefix("whsec_"))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
            wanted = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
            given = (self.headers.get("webhook-signature") or "").split()
            good = any(hmac.compare_digest(wanted, one) for one in given)
            self.send_response(204 if good else 401)
            self.end_headers()
            if good:
                hook = json.loads(body)
                if hook["type"] == "analysis.succeeded":
                    hook |= {"received": time.time(), "event_id": self.headers["webhook-id"]}
                    loop.call_soon_threadsafe(heard, hook)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Quiet: requests are reported by what they lead to."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
