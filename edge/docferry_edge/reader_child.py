"""The program of the reader's process: `python -m docferry_edge.reader_child SETTINGS SOCKET`.

SETTINGS is a JSON object with values from the agent's table of settings, SOCKET the number of an inherited socket.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from docferry import logs
from docferry.errors import DocferryError
from docferry.malloc import give_back
from docferry_edge.desk import Desk, Hint
from docferry_edge.reader_wire import (
    FAULT,
    HINT,
    READY,
    Message,
    answer_message,
    error_message,
    job_of,
)

_log = logging.getLogger(__name__)

_FIRST_TO_GO = "500"
"""When the kernel must kill something, it is to be the reader and not the agent, which holds the documents."""


def main() -> None:
    """Serve the real reader until the agent hangs up."""
    told = json.loads(sys.argv[1])
    logs.configure(told.get("log.format", "console"), told.get("log.level", "info"))
    serve(lambda: _desk(sys.argv[1]), int(sys.argv[2]))


def serve(load: Callable[[], Desk], socket_number: int) -> None:
    """Load a desk, say so, and do one job after the other until the other end hangs up."""
    # The agent alone decides when this process ends: a signal to all of a service's processes, or to a terminal's,
    # would else look like a document that kills the reader.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    _be_first_to_go()
    connection = Connection(socket_number)
    threading.Thread(target=_end_with, args=(socket_number,), name="hang-up", daemon=True).start()
    try:
        try:
            desk = load()
            desk.ready()
        except DocferryError as error:
            error_message(error).send(connection)
            return
        Message(READY, {}).send(connection)
        while True:
            received = Message.receive(connection)
            _result(desk, received, connection).send(connection)
            del received
            give_back()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _result(desk: Desk, received: Message, connection: Connection) -> Message:
    job, wanted = job_of(received)

    def tell(hint: Hint) -> None:
        # Every page is told even where nobody listens: it is the sign of life that moves the deadline.
        if wanted or hint["type"] == "page":
            Message(HINT, hint).send(connection)

    try:
        return answer_message(desk.read(job, tell))
    except DocferryError as error:
        return error_message(error)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # noqa: BLE001 - the agent is told, whatever it is
        # A fault of ours on this document: the agent counts its attempts.
        _log.exception("%s: reading failed", job.identity.file_name)
        return Message(FAULT, {"what": f"{type(error).__name__}: {error}"[:300]})


def _desk(settings: str) -> Desk:
    from docferry.vision.memory import bound_memory
    from docferry_edge.examine import load_examiner
    from docferry_edge.reading_settings import reading_settings
    from docferry_edge.work import DirectDesk

    bound_memory()
    reading = reading_settings(json.loads(settings))
    return DirectDesk(
        lambda threads: load_examiner(threads, reading.calibration), reading.policies, reading.pictures, reading.threads
    )


def _end_with(socket_number: int) -> None:
    """End this process, whatever it does, once the other end of the socket is gone: even a killed agent leaves none."""
    poll = select.poll()
    poll.register(socket_number, 0)
    poll.poll()
    os._exit(0)


def _be_first_to_go() -> None:
    try:
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    except OSError as error:
        _log.info("the kernel's choice cannot be influenced: %s", error.strerror)


if __name__ == "__main__":
    main()
