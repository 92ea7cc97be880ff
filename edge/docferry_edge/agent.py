"""The agent: captures, reads, packs, sends and fetches, each at its own pace, with the outbox between them."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from docferry.async_client import AsyncClient
from docferry.document import Document
from docferry.errors import (
    ConfigurationError,
    DocferryError,
    InputError,
    ModelError,
    ReaderStopped,
    StorageFull,
    Unavailable,
    UnreadableImage,
)
from docferry.malloc import give_back
from docferry.tracing import Tell
from docferry.upload import read_file
from docferry_edge.capture import Found, Inbox, source_of
from docferry_edge.desk import Desk, Hint, Identity, Job, OnHint, Packed, edge_answer
from docferry_edge.entry import Entry, State, elapsed_ms
from docferry_edge.frugality import Gauge, Strain
from docferry_edge.original import pack_original
from docferry_edge.outbox import READ_ATTEMPTS, Outbox
from docferry_edge.pictures import Pictures
from docferry_edge.policies import Policies
from docferry_edge.rates import Meter
from docferry_edge.uplink import Pace, Uplink
from docferry_edge.wants import SupplyPolicy, Wants

if TYPE_CHECKING:
    # Only an agent with a camera loads OpenCV.
    from docferry_edge.camera import Picture, Watch

_log = logging.getLogger(__name__)
_SCAN_PAUSE_S = 0.05
_CAMERA_PAUSE_S = 2.0
_METER = "route.spent"

_DESK_PAUSE_S = 5.0
_NOT_THE_DOCUMENTS_FAULT = (StorageFull, Unavailable, ConfigurationError, ModelError)

Report = Callable[[Entry], None]
"""Told of a document when the edge's answer is there, and when it has ended: at least once each."""


class Agent:
    """One device's agent.

    Args:
        outbox: Where everything captured is safe.
        inbox: The watched folder.
        desk: Where documents are read; got ready, in a thread, while capturing already goes on.
        client: Talks to the cloud.
        report: Hears of every document.
        ready: Called once the reader is loaded.
        tell: Hears, from any thread, what the kiosk's page shows: `captured` when the camera has taken a page,
            `document` when its reading begins, then what becomes known of it (`docferry_edge.work.hint_of`), `state`
            when that has changed, `camera` when it goes or comes.
        gauge: Tells how much the reader must spare the device; without one it never does.
        watch: The camera, if there is one; `look_pause_s` is the pause between two looks.
        pictures: How pictures that the cloud asks for are encoded; the defaults when None.
        policies: What may leave; the desk has the same ones. The defaults when None.
        supply_policy: What may leave when the cloud asks for more; when None, everything, unless `policies` withhold
            or mask pictures: then nothing.
        keep_s: How long a captured file is kept after its document was settled, for those who ask for the page.
        spans: Takes spans (`docferry.tracing`); None if nobody traces.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        inbox: Inbox,
        desk: Desk,
        client: AsyncClient,
        report: Report,
        ready: Callable[[], None] | None = None,
        remove_captured: bool = False,
        gauge: Gauge | None = None,
        watch: Watch | None = None,
        look_pause_s: float = 0.15,
        pace: Pace | None = None,
        tell: OnHint | None = None,
        policies: Policies | None = None,
        pictures: Pictures | None = None,
        supply_policy: SupplyPolicy | None = None,
        keep_s: float = 0.0,
        spans: Tell | None = None,
    ) -> None:
        self._outbox = outbox
        self._inbox = inbox
        self._desk = desk
        self._report = report
        self._on_hint = tell
        self._tell = tell or (lambda _: None)
        self._ready = ready
        self._remove_captured = remove_captured
        self._gauge = gauge
        self._watch = watch
        self._look_pause_s = look_pause_s
        self._captured = asyncio.Event()
        self._changed = asyncio.Event()
        self._uplink = Uplink(
            outbox, client, lambda _: self._changed.set(), pace, keep_originals=keep_s > 0, spans=spans
        )
        self._policies = policies or Policies()
        self._meter = Meter(
            self._policies.hour, time.time, lambda: outbox.mark(_METER), lambda count: outbox.set_mark(_METER, count)
        )
        if supply_policy is None and self._policies.may_withhold:
            supply_policy = SupplyPolicy(refusal=lambda *_: "a policy of this device withholds or masks pictures")
        self._wants = Wants(outbox, client, pictures or Pictures(), policy=supply_policy, pace=pace, keep_s=keep_s)
        self._full = False

    def wake(self) -> None:
        """Something was put into the outbox; call it within the event loop."""
        self._captured.set()
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._capture_all())
                if self._watch is not None:
                    tasks.create_task(self._shoot_all(self._watch))
                tasks.create_task(self._read_all())
                tasks.create_task(self._uplink.run())
                tasks.create_task(self._wants.run())
                tasks.create_task(self._tell_all())
        finally:
            self._desk.close()

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
                if failed:
                    self._tell({"type": "camera", "state": "back"})
                failed = False
                if picture is not None:
                    captured_at = await asyncio.to_thread(self._keep, watch.camera.name, picture)
                    self._tell({"type": "captured", "captured_at": captured_at})
                    self._captured.set()
                    self._changed.set()
            except (ConfigurationError, StorageFull) as error:
                watch.trigger.forget()
                # A camera that was unplugged may come back, and a disk may be freed: said once, tried on.
                if not failed:
                    _log.error("%s: no page taken: %s", watch.camera.name, error)
                    self._tell({"type": "camera", "state": "away", "reason": error.reason})
                failed = True
                pause = _CAMERA_PAUSE_S
            await asyncio.sleep(pause)

    def _keep(self, camera: str, picture: Picture) -> float:
        """When it was captured, in Unix time."""
        now = time.time()
        name = f"camera-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}.jpg"
        self._outbox.capture(
            source=f"camera|{camera}|{uuid.uuid4()}", file_name=name, data=picture.file(), captured_at=now
        )
        return now

    async def _read_all(self) -> None:
        await self._at_desk(self._desk.ready)
        if self._ready is not None:
            self._ready()
        while True:
            self._captured.clear()
            waiting = await asyncio.to_thread(self._outbox.in_state, State.CAPTURED, limit=1)
            if not waiting:
                await self._captured.wait()
                continue
            entry = waiting[0]
            try:
                await self._at_desk(self._desk.ready)
                await self._at_desk(partial(self._read, entry))
            except StorageFull as error:
                _log.error("%s: read, but not kept: %s", entry.file_name, error)
                await asyncio.sleep(1.0)
            except DocferryError as error:
                # The reader itself: captured documents are safe and wait, and what is packed goes on being sent.
                _log.error("no reading: %s", error)
                await asyncio.sleep(_DESK_PAUSE_S)
            else:
                self._changed.set()
                self._uplink.wake()
                await asyncio.to_thread(give_back)

    async def _at_desk(self, work: Callable[[], None]) -> None:
        """Do blocking work at the desk in a thread. When the agent stops meanwhile, the desk does, and the thread."""
        thread = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError:
            self._desk.close()
            await asyncio.gather(thread, return_exceptions=True)
            raise

    def _read(self, entry: Entry) -> None:
        document_id = entry.document_id
        head = {"type": "document", "document_id": document_id, "file": entry.file_name}
        self._tell({**head, "captured_at": entry.captured_at, "handed_in": entry.handed_in})
        attempt = self._outbox.begin_reading(document_id)
        if attempt > READ_ATTEMPTS:
            # Not read here: the cloud must see it, whatever it is that stops the reader.
            self._pack_original(entry)
            return
        try:
            self._read_and_keep(entry)
        except _NOT_THE_DOCUMENTS_FAULT:
            self._outbox.reading_excused(document_id)
            raise
        except ReaderStopped as error:
            # It is tried again up to READ_ATTEMPTS times, then the file goes up as it is.
            _log.error("reading failed (attempt %d): %s", attempt, error)
        except DocferryError as error:
            self._outbox.failed(document_id, error)
        except Exception:  # noqa: BLE001 - a fault of ours on this document must not stop the others
            _log.exception("%s: reading failed (attempt %d)", entry.file_name, attempt)

    def _read_and_keep(self, entry: Entry) -> None:
        data = self._outbox.image(entry.document_id)
        waited = elapsed_ms(entry) or 0.0
        strain = self._gauge.look() if self._gauge is not None else Strain()
        answer = self._desk.read(Job(_identity(entry), data, strain, self._meter.room()), self._on_hint)
        packed = answer.packed
        timings = {name: round(waited + value, 1) for name, value in packed.timings.items()}
        if answer.leaves:
            self._keep_packed(entry.document_id, replace(packed, timings=timings), answer.edge_answer)
            self._meter.left(answer.size, page=answer.page)
        else:
            self._outbox.kept(
                entry.document_id, request=packed.request, edge_answer=answer.edge_answer, timings=timings
            )

    def _pack_original(self, entry: Entry) -> None:
        if self._policies.may_withhold:
            error = UnreadableImage(
                f"{entry.file_name}: reading it stops the reader, and a policy forbids to send it unread",
                remedy="look at it by hand, or allow pictures without masking and let it go again",
            )
            self._outbox.failed(entry.document_id, error)
            return
        packed = pack_original(_identity(entry), self._outbox.image(entry.document_id))
        self._keep_packed(entry.document_id, packed, edge_answer(Document(())))

    def _keep_packed(self, document_id: str, packed: Packed, answer: bytes) -> None:
        self._outbox.packed(
            document_id,
            request=packed.request,
            parts=packed.parts,
            edge_answer=answer,
            timings=packed.timings,
            pages=packed.pages,
        )

    async def _tell_all(self) -> None:
        while True:
            self._changed.clear()
            try:
                for entry in await asyncio.to_thread(self._outbox.untold):
                    self._report(entry)
                    self._tell(_state(entry))
                    await asyncio.to_thread(self._outbox.told, entry.document_id, entry.state)
            except StorageFull as error:
                _log.error("told, but not noted; it will be told again: %s", error)
                await asyncio.sleep(1.0)
                continue
            await self._changed.wait()


def _state(entry: Entry) -> Hint:
    head = {"type": "state", "document_id": entry.document_id, "file": entry.file_name, "state": entry.state.value}
    return {**head, "reason": entry.error["reason"]} if entry.error else head


def _identity(entry: Entry) -> Identity:
    return Identity(entry.request_id, entry.document_id, entry.file_name, entry.original_bytes, entry.captured_at)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
