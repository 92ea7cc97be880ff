"""Answering what the cloud wants: pictures cut from the kept originals, sent in pieces, or refused with a reason.

What is wanted is the cloud's to remember: at a start it tells everything that is still open. What was cut is stored
before its first byte goes up, so that it goes on with the same bytes after a power cut. Each want has its own schedule.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docferry.async_client import AsyncClient
from docferry.document import Box
from docferry.errors import (
    Conflict,
    DocferryError,
    EnvelopeError,
    ImageTooLarge,
    InputError,
    NotFound,
    StorageFull,
    Unavailable,
    Unimplemented,
    UnreadableImage,
)
from docferry.v1 import analysis_pb2, device_service_pb2
from docferry.wire import box_from_proto
from docferry_edge.entry import Entry
from docferry_edge.outbox import Outbox
from docferry_edge.page_geometry import PageGeometry, from_json
from docferry_edge.pictures import Pictures
from docferry_edge.uplink import Pace

if TYPE_CHECKING:
    from docferry.vision.images import Pixels

_log = logging.getLogger(__name__)
_EXPIRE_EVERY_S = 600.0
_ANEW = 3
"""How often a picture is begun anew when the cloud has other bytes of it."""


def anything(entry: Entry, want: analysis_pb2.Want) -> str:  # noqa: ARG001 - the shape of a rule
    """The rule that refuses nothing."""
    return ""


def unmasked(entry: Entry, page: int, box: Box | None, pixels: Pixels) -> Pixels:  # noqa: ARG001
    """The mask that hides nothing."""
    return pixels


@dataclass(frozen=True, slots=True)
class SupplyPolicy:
    """What may leave the device when the cloud asks for it.

    Attributes:
        refusal: Why a want must not be answered, in plain words that the cloud will store; empty lets it go.
        mask: What a picture looks like when it leaves; given the document, the page's number and the piece of it (None
            for all). It must give the same pixels for the same picture.
    """

    refusal: Callable[[Entry, analysis_pb2.Want], str] = anything
    mask: Callable[[Entry, int, Box | None, Pixels], Pixels] = unmasked


class _Refused(Exception):
    """This want will never be answered."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(slots=True)
class _Open:
    """One want that is still to be answered: what is known to have been received, and when it is due again."""

    wanted: device_service_pb2.PartWanted
    received: int
    due: float = 0.0
    tries: int = 0


class Wants:
    """Answers the wants about one outbox's documents over one client. Run `run`.

    Args:
        keep_s: How long originals are kept after their document was settled.
    """

    def __init__(
        self,
        outbox: Outbox,
        client: AsyncClient,
        pictures: Pictures,
        *,
        policy: SupplyPolicy | None = None,
        pace: Pace | None = None,
        keep_s: float = 0.0,
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._pictures = pictures
        self._policy = policy or SupplyPolicy()
        self._pace = pace or Pace()
        self._keep_s = keep_s
        self._open: dict[tuple[str, str], _Open] = {}
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Listen and answer until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hear_all())
            tasks.create_task(self._answer_all())
            tasks.create_task(self._expire_all())

    async def _hear_all(self) -> None:
        while True:
            try:
                async with aclosing(self._client.wanted()) as told:
                    async for wanted in told:
                        key = (wanted.analysis_id, wanted.want.part_id)
                        self._open.setdefault(key, _Open(wanted, wanted.want.received))
                        self._news.set()
            except Unimplemented:
                _log.info("the service asks for nothing: it is older than this agent")
            except DocferryError as error:
                _log.warning("listening for wants stopped: %s", error)
            await asyncio.sleep(random.uniform(0, self._pace.longest))  # noqa: S311 - jitter, no secret

    async def _answer_all(self) -> None:
        while True:
            self._news.clear()
            now = time.monotonic()
            for key, item in list(self._open.items()):
                if item.due <= now and await self._answer(item):
                    del self._open[key]
            soonest = min((item.due for item in self._open.values()), default=now + self._pace.longest)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.02, soonest - time.monotonic())):
                    await self._news.wait()

    async def _expire_all(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._outbox.originals.expire, self._keep_s)
            except StorageFull as error:
                _log.error("originals stay longer: %s", error)
            await asyncio.sleep(_EXPIRE_EVERY_S)

    async def _answer(self, item: _Open) -> bool:
        """Supply or refuse one want; True when it is over, False when it is to be tried again."""
        wanted = item.wanted
        document_id, part_id = wanted.document_id, wanted.want.part_id
        try:
            entry = await asyncio.to_thread(self._outbox.get, document_id)
        except NotFound:
            # While no tokens are configured all agents are one device to the cloud: another one has it.
            _log.info("document %s is wanted, but it is not from here", document_id)
            return True
        try:
            await self._supply_or_refuse(entry, item)
        except (Conflict, NotFound) as error:
            _log.info("document %s, part %s: no longer wanted: %s", document_id, part_id, error)
        except DocferryError as error:
            self._postpone(item, error)
            return False
        with contextlib.suppress(StorageFull):
            await asyncio.to_thread(self._outbox.originals.drop_supply, document_id, part_id)
        return True

    async def _supply_or_refuse(self, entry: Entry, item: _Open) -> None:
        wanted = item.wanted
        analysis_id, part_id = wanted.analysis_id, wanted.want.part_id
        try:
            data = await asyncio.to_thread(self._picture, entry, wanted.want)
            await self._supply(item, data)
        except _Refused as refused:
            _log.info("document %s, part %s: refused: %s", entry.document_id, part_id, refused.detail)
            await self._client.refuse(analysis_id, part_id, refused.code, refused.detail[:500])
        else:
            _log.info("document %s, part %s: supplied, %d bytes", entry.document_id, part_id, len(data))

    async def _supply(self, item: _Open, data: bytes) -> None:
        def progress(received: int, _total: int) -> None:
            item.received = received

        wanted = item.wanted
        try:
            await self._client.supply(
                wanted.analysis_id, wanted.want.part_id, data, offset=item.received, progress=progress
            )
        except (UnreadableImage, ImageTooLarge) as error:
            raise _Refused("REJECTED", f"the service did not take it: {error}") from None
        except EnvelopeError as error:
            if not item.received or item.tries >= _ANEW:
                raise _Refused("REJECTED", f"the service did not take it: {error}") from None
            # What was received is of other bytes, or less of these: begin where the cloud says, or anew.
            item.received = int(error.metadata.get("received", "0"))
            raise Unavailable(f"begun anew at {item.received}: {error}", remedy="none needed") from None

    def _picture(self, entry: Entry, want: analysis_pb2.Want) -> bytes:
        """The bytes that answer a want, stored before they are given."""
        reason = self._policy.refusal(entry, want)
        if reason:
            raise _Refused("POLICY", reason)
        originals = self._outbox.originals
        stored = originals.supply(entry.document_id, want.part_id)
        if stored is not None:
            return stored
        pages = from_json(originals.pages(entry.document_id))
        if want.page >= len(pages):
            raise _Refused("NO_SUCH_PAGE", f"this device has prepared {len(pages)} pages of the document")
        data = originals.image(entry.document_id)
        if data is None:
            raise _Refused("NOT_KEPT", "the original is no longer kept on the device")
        try:
            picture = self._cut(entry, want, data, pages[want.page])
        except InputError as error:
            raise _Refused("UNREADABLE", f"the original cannot be cut: {error}") from None
        except Exception as error:
            # A fault of ours on this picture must not stop the agent, nor be met again and again.
            _log.exception("document %s, part %s: cutting failed", entry.document_id, want.part_id)
            raise _Refused("FAULT", "cutting it failed on the device; its log says more") from error
        originals.store_supply(entry.document_id, want.part_id, picture)
        return picture

    def _cut(self, entry: Entry, want: analysis_pb2.Want, data: bytes, page: PageGeometry) -> bytes:
        # Only a device that is asked for more loads OpenCV into its agent.
        from docferry.vision.images import encode_webp
        from docferry_edge.cutting import cut
        from docferry_edge.prepare import Frame

        box = box_from_proto(want.box) if want.HasField("box") else None
        pixels = cut(Frame(data, entry.file_name), page, box, want.scale or 1.0)
        quality = self._pictures.page_quality if box is None else self._pictures.crop_quality
        return encode_webp(self._policy.mask(entry, want.page, box, pixels), quality, grey=True)

    def _postpone(self, item: _Open, error: DocferryError) -> None:
        ceiling = min(self._pace.longest, self._pace.first * 2**item.tries)
        pause = max(getattr(error, "retry_after", 0.0), random.uniform(0, ceiling))  # noqa: S311 - jitter, no secret
        item.due, item.tries = time.monotonic() + pause, min(item.tries + 1, 16)
        _log.info("part %s: again in %.1f s: %s", item.wanted.want.part_id, pause, error)
