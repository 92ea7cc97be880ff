"""The reader in a process of its own, and its watchdog.

A reader that hangs is killed at a deadline, one that swells past the ceiling is killed at once, one that has merely
grown is exchanged between two documents. The agent itself holds no network and no pixels, and stays small.
"""

from __future__ import annotations

import logging
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from docferry.errors import DocferryError, ReaderStopped, Unavailable
from docferry_edge.desk import Answer, Job, OnHint
from docferry_edge.reader_wire import ANSWER, ERROR, FAULT, HINT, READY, Message, answer_of, error_of, job_message

_log = logging.getLogger(__name__)

_WATCH_S = 0.1
"""Pause between two looks at the reader's memory while it is silent."""

_PIECE = struct.pack("ll", 10, 0)
"""A `struct timeval`: what is being sent has to move on within ten seconds."""


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """What a reader may take.

    Attributes:
        deadline_s: Seconds without any sign of life on a document, after which it counts as hung.
        start_s: The same for loading.
        recycle_mb: Resident memory above which it is exchanged once a document is done.
        memory_mb: Resident memory above which it is killed at once: the stated ceiling.
    """

    deadline_s: float = 60.0
    start_s: float = 120.0
    recycle_mb: int = 450
    memory_mb: int = 600


class ReaderProcess:
    """A `Desk` whose work is done by a child process, started by the first `ready` and kept.

    Args:
        program: A command that calls `docferry_edge.reader_child.serve`; the socket's number is appended.
        limits: When the child is exchanged or killed.
    """

    def __init__(self, program: Sequence[str], limits: ReaderLimits | None = None) -> None:
        self._program = tuple(program)
        self._limits = limits or ReaderLimits()
        self._guard = threading.Lock()
        self._child: _Child | None = None
        self._closed = False
        self.exchanged = 0

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        child = self._child
        return None if child is None else child.process.pid

    def ready(self) -> None:
        """See `Desk`."""
        child = self._child
        if child is not None and child.process.poll() is not None:
            # Nothing was in work: whatever ended it was no document.
            self._stop()
            child = None
        if child is None:
            child = self._start()
        if child.loaded:
            return
        try:
            message = self._next(child, time.monotonic() + self._limits.start_s)
        except ReaderStopped as stopped:
            self._stop()
            raise Unavailable(
                f"the reader did not start: {stopped.reason}", remedy="see its messages above; run `edge doctor`"
            ) from None
        if message.kind != READY:
            self._stop()
            raise _raised(message)
        child.loaded = True

    def read(self, job: Job, on_hint: OnHint | None = None) -> Answer:
        """See `Desk`. A document's deadline begins anew with every hint: what makes progress does not hang."""
        self.ready()
        child = self._child
        if child is None:
            raise Unavailable("the reader was closed", remedy="start the agent again")
        try:
            answer = self._answer(child, job, on_hint)
        except ReaderStopped:
            self._stop()
            if self._closed:
                raise Unavailable("the reader was closed", remedy="start the agent again") from None
            raise
        self._exchange_if_swollen(child)
        return answer

    def close(self) -> None:
        """See `Desk`."""
        with self._guard:
            self._closed = True
            if self._child is not None:
                # Its socket is left to whoever may be waiting at it.
                self._child.process.kill()
                self._child.process.wait()

    def _answer(self, child: _Child, job: Job, on_hint: OnHint | None) -> Answer:
        name = job.identity.file_name
        try:
            job_message(job, hints=on_hint is not None).send(child.connection)
        except OSError:
            raise child.died(name) from None
        while True:
            message = self._next(child, time.monotonic() + self._limits.deadline_s, name)
            if message.kind == HINT:
                if on_hint is not None:
                    on_hint(message.head)
            elif message.kind == ANSWER:
                return answer_of(message)
            else:
                raise _raised(message)

    def _next(self, child: _Child, deadline: float, name: str = "") -> Message:
        """The child's next message.

        Raises:
            ReaderStopped: It died, said nothing until the deadline, or holds more memory than it may.
        """
        while True:
            try:
                heard = child.connection.poll(max(0.0, min(_WATCH_S, deadline - time.monotonic())))
                self._check_memory(child, name)
                if heard:
                    return Message.receive(child.connection)
            except (EOFError, OSError):
                raise child.died(name) from None
            except ValueError as error:
                raise ReaderStopped(f"{name}: the reader speaks nonsense: {error}", remedy="report this") from None
            if time.monotonic() > deadline:
                raise ReaderStopped(
                    f"{name or 'loading'}: the reader gave no sign of life in time", remedy="see read.deadline_s"
                )

    def _check_memory(self, child: _Child, name: str) -> None:
        now = time.monotonic()
        if now < child.looked_at + _WATCH_S:
            return
        child.looked_at = now
        held = resident_mb(child.process.pid)
        if held > self._limits.memory_mb:
            raise ReaderStopped(
                f"{name or 'loading'}: the reader holds {held:.0f} MB, more than {self._limits.memory_mb}",
                remedy="send a smaller picture, or raise read.memory_mb",
            )

    def _exchange_if_swollen(self, child: _Child) -> None:
        held = resident_mb(child.process.pid)
        if held <= self._limits.recycle_mb:
            return
        _log.info("the reader holds %.0f MB, more than %d: exchanged for a new one", held, self._limits.recycle_mb)
        self._stop()
        self.exchanged += 1
        # It loads while the agent does other things; the next document waits for what is left of that.
        try:
            self._start()
        except Unavailable as error:
            _log.warning("%s", error)

    def _start(self) -> _Child:
        with self._guard:
            if self._closed:
                raise Unavailable("the reader was closed", remedy="start the agent again")
            try:
                self._child = _Child.started(self._program)
            except OSError as error:
                raise Unavailable(
                    f"the reader cannot be started: {error.strerror}", remedy="free memory, check the installation"
                ) from None
            return self._child

    def _stop(self) -> None:
        with self._guard:
            child, self._child = self._child, None
        if child is not None:
            child.end()


@dataclass(slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    connection: Connection
    loaded: bool = False
    looked_at: float = 0.0

    @classmethod
    def started(cls, program: Sequence[str]) -> _Child:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            # A child that stops in the middle of a message, or takes none, must not stop the agent.
            for which in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                ours.setsockopt(socket.SOL_SOCKET, which, _PIECE)
            number = theirs.fileno()
            # A session of its own: Ctrl-C at a terminal is for the agent to hear.
            process = subprocess.Popen(
                [*program, str(number)], stdin=subprocess.DEVNULL, pass_fds=(number,), start_new_session=True
            )
            return cls(process, Connection(ours.detach()))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()

    def died(self, name: str) -> ReaderStopped:
        self.process.kill()
        status = self.process.wait()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return ReaderStopped(f"{name or 'loading'}: the reader ended with {how}", remedy="see the messages above")


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MiB; 0 for one that has just ended."""
    try:
        rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith("VmRSS:")), 0.0)


def _raised(message: Message) -> DocferryError:
    """The exception that a message which is no answer stands for."""
    if message.kind == ERROR:
        return error_of(message)
    if message.kind == FAULT:
        return ReaderStopped(f"a fault of the reader: {message.head.get('what', '')}", remedy="see its messages above")
    return ReaderStopped(f"the reader said {message.kind!r} out of turn", remedy="report this")
