"""Start the installed agent, hand it one picture, stop it, and look into its outbox.

    python agent_smoke.py PICTURE ANSWER COMMAND...

COMMAND starts the agent with `--json`. There is no cloud: the edge's own answer must come, the picture must leave
the inbox, and what is to be sent must stand in the outbox, packed, after the agent has ended by itself on SIGTERM.
The answer goes to the file ANSWER.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from docferry.settings import load
from docferry.v1 import analysis_service_pb2
from docferry_edge.entry import State
from docferry_edge.outbox import Outbox
from docferry_edge.settings import SETTINGS, EdgeSettings, edge_settings

PATIENCE_S = 3600.0
"""An emulated processor is slow, and the machine under it may be busy."""


def main(picture: Path, kept: Path, command: list[str]) -> None:
    """Do all of it; an assertion says what went wrong."""
    settings = edge_settings(load(SETTINGS, Path(command[command.index("--config") + 1])))
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as agent:
        try:
            assert agent.stdout is not None
            _next(agent.stdout, "ready")
            print(f"ready after {time.monotonic() - began:.1f} s")
            _hand_in(picture, settings)
            began = time.monotonic()
            answer = _next(agent.stdout, "read")
        finally:
            agent.terminate()
        status = agent.wait(PATIENCE_S)
    kept.write_text(json.dumps(answer) + "\n", encoding="utf-8")
    lines = sum(len(region["lines"]) for page in answer["pages"] for region in page["regions"])
    print(f"answered after {time.monotonic() - began:.1f} s: {lines} lines, route {answer['route']['decision']}")
    assert lines > 0
    assert status == 0, f"the agent ended with {status}"
    assert not (settings.inbox / picture.name).exists(), "the picture is still in the inbox"
    _look(settings, answer["document_id"])


def _hand_in(picture: Path, settings: EdgeSettings) -> None:
    growing = settings.inbox / f".{picture.name}"
    growing.write_bytes(picture.read_bytes())
    growing.rename(settings.inbox / picture.name)


def _next(output: IO[bytes], status: str) -> dict[str, Any]:
    """The agent's next JSON line, which must have this status."""
    readable, _, _ = select.select([output], [], [], PATIENCE_S)
    assert readable, f"no line with status {status} within {PATIENCE_S:.0f} s"
    line = output.readline()
    assert line, f"the agent ended before status {status}"
    tree: dict[str, Any] = json.loads(line)
    assert tree["status"] == status, f"{tree} instead of status {status}"
    return tree


def _look(settings: EdgeSettings, document_id: str) -> None:
    outbox = Outbox(settings.state)
    try:
        entry = outbox.get(document_id)
        request = outbox.request(document_id)
    finally:
        outbox.close()
    assert entry.state is State.PACKED, f"the document is {entry.state}"
    assert request is not None
    envelope = analysis_service_pb2.SubmitRequest.FromString(request).envelope
    assert envelope.document_id == document_id
    print(f"outbox: {entry.file_name} is {entry.state}, {len(request)} bytes of request")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
