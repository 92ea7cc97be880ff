"""The agent: captures, reads, packs, sends and fetches, each at its own pace, with the outbox between them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from docferry.client import Client, read_file
from docferry.document import Document
from docferry.errors import DocferryError, EngineError, InputError, StorageFull
from docferry.markdown import render
from docferry.v1 import analysis_pb2
from docferry.wire import document_to_proto
from docferry_edge.capture import Found, Inbox
from docferry_edge.examine import Examined
from docferry_edge.outbox import READ_ATTEMPTS, Entry, Outbox, State
from docferry_edge.pack import Identity, Pictures, pack
from docferry_edge.prepare import Frame
from docferry_edge.route import Policy, plan
from docferry_edge.uplink import Pace, Uplink

_log = logging.getLogger(__name__)
_SCAN_PAUSE_S = 0.05

Examiner = Callable[[Frame], Examined]
Report = Callable[[Entry], None]
"""Told of a document when the edge's answer is there, and when it has ended: at least once each."""


class Agent:
    """One device's agent.

    Args:
        outbox: Where everything captured is safe.
        inbox: The watched folder.
        load_examiner: Loads the reader; called once, in a thread, while capturing already goes on.
        client: Talks to the cloud.
        report: Hears of every document.
        ready: Called once the reader is loaded.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        inbox: Inbox,
        load_examiner: Callable[[], Examiner],
        client: Client,
        report: Report,
        policy: Policy,
        pictures: Pictures,
        ready: Callable[[], None] | None = None,
        remove_captured: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._outbox = outbox
        self._inbox = inbox
        self._load_examiner = load_examiner
        self._report = report
        self._policy = policy
        self._pictures = pictures
        self._ready = ready
        self._remove_captured = remove_captured
        self._captured = asyncio.Event()
        self._changed = asyncio.Event()
        self._uplink = Uplink(outbox, client, lambda _: self._changed.set(), pace)
        self._full = False

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._capture_all())
            tasks.create_task(self._read_all())
            tasks.create_task(self._uplink.run())
            tasks.create_task(self._tell_all())

    async def _capture_all(self) -> None:
        while True:
            for found in await asyncio.to_thread(self._inbox.scan):
                try:
                    await asyncio.to_thread(self._capture, found)
                except StorageFull as error:
                    if not self._full:
                        _log.error("%s: not taken: %s", found.path, error)
                    self._full = True
                    break
                self._full = False
                self._captured.set()
                self._changed.set()
            await asyncio.sleep(_SCAN_PAUSE_S if not self._full else 1.0)

    def _capture(self, found: Found) -> None:
        now = time.time()
        try:
            data = found.path.read_bytes() if found.path.stat().st_size == 0 else read_file(found.path)
        except InputError as error:
            size = _size(found.path)
            if size is not None:
                self._outbox.refuse(
                    source=found.source, file_name=found.path.name, original_bytes=size, captured_at=now, error=error
                )
            self._inbox.taken(found)
            return
        self._outbox.capture(source=found.source, file_name=found.path.name, data=data, captured_at=now)
        self._inbox.taken(found)
        if self._remove_captured:
            found.path.unlink(missing_ok=True)

    async def _read_all(self) -> None:
        examiner = await asyncio.to_thread(self._load_examiner)
        if self._ready is not None:
            self._ready()
        while True:
            self._captured.clear()
            waiting = await asyncio.to_thread(self._outbox.in_state, State.CAPTURED, limit=1)
            if not waiting:
                await self._captured.wait()
                continue
            try:
                await asyncio.to_thread(self._read, waiting[0], examiner)
            except StorageFull as error:
                _log.error("%s: read, but not kept: %s", waiting[0].file_name, error)
                await asyncio.sleep(1.0)
                continue
            self._changed.set()
            self._uplink.wake()

    def _read(self, entry: Entry, examiner: Examiner) -> None:
        document_id = entry.document_id
        attempt = self._outbox.begin_reading(document_id)
        if attempt > READ_ATTEMPTS:
            error = EngineError(
                f"{entry.file_name}: reading it has stopped the agent {READ_ATTEMPTS} times",
                remedy="send the file to the cloud as it is, and report it",
            )
            self._outbox.failed(document_id, error)
            return
        try:
            self._examine_and_pack(entry, examiner)
        except StorageFull:
            self._outbox.reading_excused(document_id)
            raise
        except DocferryError as error:
            self._outbox.failed(document_id, error)
        except Exception:  # noqa: BLE001 - a fault of ours on this document must not stop the others
            # It is tried again up to READ_ATTEMPTS times, then given up with a reason.
            _log.exception("%s: reading failed (attempt %d)", entry.file_name, attempt)

    def _examine_and_pack(self, entry: Entry, examiner: Examiner) -> None:
        data = self._outbox.image(entry.document_id)
        waited = max(0.0, (time.time() - entry.captured_at) * 1000)
        examined = examiner(Frame(data, entry.file_name))
        chosen = plan(examined.assessment, self._policy, entry.document_id)
        identity = Identity(
            entry.request_id, entry.document_id, entry.file_name, entry.original_bytes, entry.captured_at
        )
        packed = pack(identity, examined, chosen, self._pictures)
        self._outbox.packed(
            entry.document_id,
            request=packed.request,
            parts=packed.parts,
            edge_answer=edge_answer(examined.assessment.reading.document).SerializeToString(),
            timings={name: round(waited + value, 1) for name, value in examined.timings.items()},
        )

    async def _tell_all(self) -> None:
        while True:
            self._changed.clear()
            for entry in await asyncio.to_thread(self._outbox.untold):
                self._report(entry)
                await asyncio.to_thread(self._outbox.told, entry.document_id, entry.state)
            await self._changed.wait()


def edge_answer(document: Document) -> analysis_pb2.Interpretation:
    """What the edge can say by itself."""
    return analysis_pb2.Interpretation(document=document_to_proto(document), markdown=render(document))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
