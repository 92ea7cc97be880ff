"""The agent: captures, reads, packs, sends and fetches, each at its own pace, with the outbox between them."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from docferry.client import Client, read_file
from docferry.document import Document
from docferry.errors import ConfigurationError, DocferryError, InputError, StorageFull, UnreadableImage
from docferry.markdown import render
from docferry.v1 import analysis_pb2, analysis_service_pb2, envelope_pb2
from docferry.wire import document_to_proto, route_to_proto
from docferry_edge.camera import Picture, Watch
from docferry_edge.capture import Found, Inbox, source_of
from docferry_edge.dispatch import dispatch
from docferry_edge.entry import Entry, State, elapsed_ms
from docferry_edge.examine import Examined
from docferry_edge.outbox import READ_ATTEMPTS, Outbox
from docferry_edge.pack import Identity, Pictures, pack_original
from docferry_edge.policies import Policies
from docferry_edge.prepare import Frame
from docferry_edge.rates import Meter
from docferry_edge.uplink import Pace, Uplink

_log = logging.getLogger(__name__)
_SCAN_PAUSE_S = 0.05
_CAMERA_PAUSE_S = 2.0
_METER = "route.spent"

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
        watch: The camera, if there is one; `look_pause_s` is the pause between two looks.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        inbox: Inbox,
        load_examiner: Callable[[], Examiner],
        client: Client,
        report: Report,
        policies: Policies,
        pictures: Pictures,
        ready: Callable[[], None] | None = None,
        remove_captured: bool = False,
        watch: Watch | None = None,
        look_pause_s: float = 0.15,
        pace: Pace | None = None,
    ) -> None:
        self._outbox = outbox
        self._inbox = inbox
        self._load_examiner = load_examiner
        self._report = report
        self._policies = policies
        self._meter = Meter(
            policies.hour, time.time, lambda: outbox.mark(_METER), lambda count: outbox.set_mark(_METER, count)
        )
        self._pictures = pictures
        self._ready = ready
        self._remove_captured = remove_captured
        self._watch = watch
        self._look_pause_s = look_pause_s
        self._captured = asyncio.Event()
        self._changed = asyncio.Event()
        self._uplink = Uplink(outbox, client, lambda _: self._changed.set(), pace)
        self._full = False

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._capture_all())
            if self._watch is not None:
                tasks.create_task(self._shoot_all(self._watch))
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
                        _log.error("%s: not taken: %s", found.name, error)
                    self._full = True
                    break
                self._full = False
                self._captured.set()
                self._changed.set()
            await asyncio.sleep(_SCAN_PAUSE_S if not self._full else 1.0)

    def _capture(self, found: Found) -> None:
        now = time.time()
        name = found.name
        try:
            data = read_file(found.path)
        except InputError as error:
            size = _size(found.path)
            if size is not None:
                self._outbox.refuse(
                    source=found.source, file_name=name, original_bytes=size, captured_at=now, error=error
                )
            self._inbox.taken(found)
            return
        self._outbox.capture(source=found.source, file_name=name, data=data, captured_at=now)
        self._inbox.taken(found)
        if self._remove_captured:
            self._remove(found)

    def _remove(self, found: Found) -> None:
        """Remove a captured file, unless it was written anew since: that content is a document of its own."""
        if source_of(found.path) != found.source:
            return
        try:
            found.path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("%s: captured, but it cannot be removed: %s", found.name, error.strerror)

    async def _shoot_all(self, watch: Watch) -> None:
        failed = False
        while True:
            pause = self._look_pause_s
            try:
                picture = await asyncio.to_thread(watch.look)
                failed = False
                if picture is not None:
                    await asyncio.to_thread(self._keep, watch.camera.name, picture)
                    self._captured.set()
                    self._changed.set()
            except (ConfigurationError, StorageFull) as error:
                watch.trigger.forget()
                # A camera that was unplugged may come back, and a disk may be freed: said once, tried on.
                if not failed:
                    _log.error("%s: no page taken: %s", watch.camera.name, error)
                failed = True
                pause = _CAMERA_PAUSE_S
            await asyncio.sleep(pause)

    def _keep(self, camera: str, picture: Picture) -> None:
        now = time.time()
        name = f"camera-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}.jpg"
        self._outbox.capture(
            source=f"camera|{camera}|{uuid.uuid4()}", file_name=name, data=picture.file(), captured_at=now
        )

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
            # Not read here: the cloud must see it, whatever it is that stops the reader.
            try:
                self._pack_original(entry)
            except UnreadableImage as error:
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
            # It is tried again up to READ_ATTEMPTS times, then the file goes up as it is.
            _log.exception("%s: reading failed (attempt %d)", entry.file_name, attempt)

    def _pack_original(self, entry: Entry) -> None:
        if self._policies.may_withhold:
            raise UnreadableImage(
                f"{entry.file_name}: reading it stops the agent, and a policy forbids to send it unread",
                remedy="look at it by hand, or allow pictures without masking and let it go again",
            )
        packed = pack_original(_identity(entry), self._outbox.image(entry.document_id))
        answer = edge_answer(Document(())).SerializeToString()
        self._outbox.packed(
            entry.document_id, request=packed.request, parts=packed.parts, edge_answer=answer, timings={}
        )

    def _examine_and_pack(self, entry: Entry, examiner: Examiner) -> None:
        data = self._outbox.image(entry.document_id)
        waited = elapsed_ms(entry) or 0.0
        examined = examiner(Frame(data, entry.file_name))
        made = dispatch(_identity(entry), examined, self._policies, self._pictures, room=self._meter.room())
        answer = edge_answer(made.document).SerializeToString()
        timings = {name: round(waited + value, 1) for name, value in examined.timings.items()}
        if made.packed is None:
            why = envelope_pb2.Envelope(route=route_to_proto(made.plan.route))
            request = analysis_service_pb2.SubmitRequest(envelope=why).SerializeToString()
            self._outbox.kept(entry.document_id, request=request, edge_answer=answer, timings=timings)
            return
        self._outbox.packed(
            entry.document_id,
            request=made.packed.request,
            parts=made.packed.parts,
            edge_answer=answer,
            timings=timings,
        )
        self._meter.left(made.size, page=made.plan.page is not None)

    async def _tell_all(self) -> None:
        while True:
            self._changed.clear()
            try:
                for entry in await asyncio.to_thread(self._outbox.untold):
                    self._report(entry)
                    await asyncio.to_thread(self._outbox.told, entry.document_id, entry.state)
            except StorageFull as error:
                _log.error("told, but not noted; it will be told again: %s", error)
                await asyncio.sleep(1.0)
                continue
            await self._changed.wait()


def edge_answer(document: Document) -> analysis_pb2.Interpretation:
    """What the edge can say by itself."""
    return analysis_pb2.Interpretation(document=document_to_proto(document), markdown=render(document))


def _identity(entry: Entry) -> Identity:
    return Identity(entry.request_id, entry.document_id, entry.file_name, entry.original_bytes, entry.captured_at)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
